// A server of the official SDK 1.x, over Streamable HTTP (2025-11-25) at `/mcp` and over HTTP+SSE (2024-11-05) at `/sse`.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

export interface SdkServer {
  readonly streamable: string
  readonly sse: string
  /** Sessions that their client ended. */
  readonly ended: string[]
}

const servers: Server[] = []

function createMcpServer(): McpServer {
  const server = new McpServer({ name: 'sdk-server', version: '1.2.3' })
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: { a: z.number(), b: z.number() },
      outputSchema: { sum: z.number() },
    },
    ({ a, b }) => ({
      content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }],
      structuredContent: { sum: a + b },
    }),
  )
  server.registerTool('fail', {}, () => ({ isError: true, content: [{ type: 'text', text: 'it broke' }] }))
  server.registerTool('steps', { description: 'Takes three steps.' }, async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken
    for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
      const params = { progressToken: progressToken ?? '', progress, total: 3, message: `step ${progress}` }
      await sendNotification({ method: 'notifications/progress', params })
    }
    return { content: [{ type: 'text', text: 'done' }] }
  })
  server.registerPrompt('greeting', { description: 'Greets.' }, () => ({ messages: [] }))
  return server
}

/** Starts one on a free port. */
export async function startSdkServer(): Promise<SdkServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const streams = new Map<string, SSEServerTransport>()
  const ended: string[] = []

  async function streamable(request: IncomingMessage, response: ServerResponse) {
    const id = request.headers['mcp-session-id']
    let transport = typeof id === 'string' ? sessions.get(id) : undefined
    if (!transport) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: session => void sessions.set(session, made),
        onsessionclosed: session => void ended.push(session),
      })
      // Its types do not know `exactOptionalPropertyTypes`.
      await createMcpServer().connect(made as Parameters<McpServer['connect']>[0])
      transport = made
    }
    await transport.handleRequest(request, response)
  }

  async function stream(response: ServerResponse) {
    const transport = new SSEServerTransport('/messages', response)
    streams.set(transport.sessionId, transport)
    await createMcpServer().connect(transport)
  }

  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/mcp') return void streamable(request, response)
    if (pathname === '/sse' && request.method === 'GET') return void stream(response)
    const posted = pathname === '/messages' ? streams.get(searchParams.get('sessionId') ?? '') : undefined
    if (posted) return void posted.handlePostMessage(request, response)
    response.writeHead(404).end()
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { streamable: `${url}/mcp`, sse: `${url}/sse`, ended }
}

/** For `after`. */
export async function stopSdkServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
