// Opens sessions of protocol version 2025-11-25 and creates requests for them.
import { ok } from 'node:assert/strict'
import { type BenchRequest, callEcho, ID_PLACEHOLDER } from './requests.ts'
import type { Contestant } from './row.ts'

const PROTOCOL_VERSION = '2025-11-25'
const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
})

/** Opens a session and returns the headers of its requests. */
export async function openSession(url: string): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body: INITIALIZE })
  await response.text()
  const id = response.headers.get('mcp-session-id')
  ok(response.ok && id, `no session was opened: ${response.status}`)
  const headers = { ...HEADERS, 'MCP-Protocol-Version': PROTOCOL_VERSION, 'Mcp-Session-Id': id }
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await (await fetch(url, { method: 'POST', headers, body })).text()
  return headers
}

/** A 2025-11-25 call of `echo` to a server without sessions. */
export const statelessCall: BenchRequest = sessionCall({ ...HEADERS, 'MCP-Protocol-Version': PROTOCOL_VERSION })

/** Sends the requests in a session. */
export const inSession = (contestant: Contestant, request = callEcho): Contestant => ({
  ...contestant,
  request: async url => sessionCall(await openSession(url), request),
})

interface ModernParams {
  readonly _meta: { readonly progressToken?: string }
}

/** Converts a 2026-07-28 request to 2025-11-25. */
export function sessionCall(headers: Readonly<Record<string, string>>, request = callEcho): BenchRequest {
  const { method, params } = JSON.parse(request.body) as { method: string; params: ModernParams }
  const { _meta, ...rest } = params
  const { progressToken } = _meta
  const sessionParams = { ...rest, ...(progressToken !== undefined && { _meta: { progressToken } }) }
  return {
    ...request,
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: ID_PLACEHOLDER, method, params: sessionParams }),
  }
}
