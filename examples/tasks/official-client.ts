// Calls a tool as a task with the official packages. Start the server of mcp.config.ts first.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client'
import type { JsonValue } from '@modelcontextprotocol/ext-tasks/core'

const url = new URL(process.argv[2] ?? 'http://127.0.0.1:3000/mcp')
const clientInfo = { name: 'months', version: '1.0.0' }
const protocolVersion = '2026-07-28'
const clientCapabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: { pin: protocolVersion } },
})
await client.connect(new StreamableHTTPClientTransport(url))

/** Sends a request without the client, which rejects task results. */
async function rawDispatch(request: unknown) {
  const { method, params } = request as { method: string; params: Record<string, string> }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': protocolVersion,
      'Mcp-Method': method,
      'Mcp-Name': params['taskId'] ?? params['name'] ?? '',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const message = (await response.json()) as { result: JsonValue; error?: { code: number; message: string } }
  return message.error
    ? { kind: 'error' as const, error: message.error }
    : { kind: 'result' as const, result: message.result }
}

const session = createTaskSessionFromClient(client, {
  endpointId: 'months',
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async () => ({ action: 'accept', content: { confirm: true } }) as never,
})
const execution = await session.callTool('close_month', { month: 'feb' })
const { outcome } = await execution.settle()
console.log(JSON.stringify(outcome))
await client.close()
