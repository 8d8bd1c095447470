// Servers of the official SDKs of both eras, and scripted servers.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

const servers: Server[] = []

/** Starts a server on a free port and returns its origin. */
export async function serve(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ readonly origin: string; readonly server: Server }> {
  const server = createServer(handle)
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/** For `after`. */
export async function stopServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    if (!server.listening) continue
    server.close()
    await once(server, 'close')
  }
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

interface Answering {
  readonly id: unknown
  readonly method: string | undefined
  readonly params: Readonly<Record<string, unknown>>
  readonly request: IncomingMessage
  readonly response: ServerResponse
  json(body: unknown, status?: number, headers?: Record<string, string>): void
}

/** A server whose answers the test writes. GET and DELETE get 405. */
export async function serveScript(answer: (answering: Answering) => void): Promise<string> {
  const { origin } = await serve(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params = {} } = JSON.parse(await bodyOf(request))
    const json: Answering['json'] = (body, status = 200, headers = {}) =>
      void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    answer({ id, method, params, request, response, json })
  })
  return `${origin}/mcp`
}

/** Answers the handshake of a modern server, and passes on everything else. */
export const serveModern = (answer: (answering: Answering) => void, capabilities: object = {}): Promise<string> =>
  serveScript(answering => {
    if (answering.method !== 'server/discover') return answer(answering)
    const result = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities }
    answering.json({ jsonrpc: '2.0', id: answering.id, result })
  })

export interface LegacyHttp {
  readonly url: string
  readonly sseUrl: string
  readonly sessions: Map<string, StreamableHTTPServerTransport>
  readonly made: LegacyServer[]
  readonly ended: string[]
  readonly calls: string[]
}

function makeLegacyServer(calls: string[]): LegacyServer {
  const server = new LegacyServer(
    { name: 'legacy', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } }, instructions: 'Use add.' },
  )
  const text = (value: unknown) => ({ content: [{ type: 'text' as const, text: String(value) }] })
  server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => {
    calls.push('add')
    return text(a + b)
  })
  server.registerTool('steps', {}, async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken ?? ''
    for (const progress of [1, 2])
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } })
    await sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'stepping' } })
    return text('done')
  })
  server.registerTool('askLong', {}, async ({ sendRequest }) => {
    const params = { message: 'x'.repeat(60_000), requestedSchema: { type: 'object' as const, properties: {} } }
    return text((await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)).action)
  })
  server.registerTool('ask', {}, async ({ sendRequest }) => {
    const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } }
    const params = { message: 'Your name?', requestedSchema }
    const { action, content } = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)
    return text(`${action} ${content?.['name'] ?? ''}`)
  })
  server.registerTool('roots', {}, async () => text(JSON.stringify((await server.server.listRoots()).roots)))
  server.registerTool('wait', {}, async ({ signal }) => {
    calls.push('wait')
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    calls.push('cancelled')
    return text('late')
  })
  return server
}

/** SDK 1.x: Streamable HTTP with sessions at `url`, HTTP+SSE at `sseUrl`. */
export async function serveLegacy(): Promise<LegacyHttp> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const streams = new Map<string, SSEServerTransport>()
  const [made, ended, calls]: [LegacyServer[], string[], string[]] = [[], [], []]
  const { origin } = await serve(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/sse' && request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response)
      streams.set(transport.sessionId, transport)
      const server = makeLegacyServer(calls)
      made.push(server)
      return server.connect(transport)
    }
    if (pathname === '/messages')
      return streams.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response)
    if (pathname !== '/mcp') return void response.writeHead(404).end()
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? sessions.get(id) : undefined
    if (typeof id === 'string' && !known) return void response.writeHead(404).end()
    if (known) return known.handleRequest(request, response)
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: session => void sessions.set(session, transport),
      onsessionclosed: session => void ended.push(session),
    })
    const server = makeLegacyServer(calls)
    made.push(server)
    // Its types do not know `exactOptionalPropertyTypes`.
    await server.connect(transport as Parameters<LegacyServer['connect']>[0])
    await transport.handleRequest(request, response)
  })
  return { url: `${origin}/mcp`, sseUrl: `${origin}/sse`, sessions, made, ended, calls }
}

export interface ModernHttp {
  readonly url: string
  readonly handler: ReturnType<typeof createMcpHandler>
  readonly calls: string[]
}

/** SDK 2.x, 2026-07-28 only. */
export async function serveModernSdk(): Promise<ModernHttp> {
  const calls: string[] = []
  const handler = createMcpHandler(
    () => {
      const server = new McpServer(
        { name: 'modern', version: '2.0.0' },
        { capabilities: { tools: { listChanged: true }, logging: {} }, instructions: 'Modern.' },
      )
      const text = (value: unknown) => ({ content: [{ type: 'text' as const, text: String(value) }] })
      server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => {
        calls.push('add')
        return text(a + b)
      })
      server.registerTool('steps', {}, async context => {
        const progressToken = context.mcpReq._meta?.progressToken ?? ''
        for (const progress of [1, 2])
          await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } })
        return text('done')
      })
      server.registerTool('ask', {}, async context => {
        const { inputResponses } = context.mcpReq
        if (inputResponses) return text(JSON.stringify(inputResponses))
        const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } }
        return inputRequired({
          inputRequests: { name: inputRequired.elicit({ message: 'Your name?', requestedSchema }) },
        })
      })
      server.registerTool('wait', {}, async context => {
        calls.push('wait')
        await new Promise(resolve => context.mcpReq.signal.addEventListener('abort', resolve))
        calls.push('cancelled')
        return text('late')
      })
      return server
    },
    { legacy: 'reject' },
  )
  const { origin } = await serve(async (request, response) => {
    const body = request.method === 'POST' ? await bodyOf(request) : undefined
    const headers = new Headers()
    for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value))
    const abort = new AbortController()
    response.once('close', () => abort.abort())
    const answer = await handler.fetch(
      new Request(`http://${request.headers.host}${request.url}`, {
        method: request.method ?? 'GET',
        headers,
        signal: abort.signal,
        ...(body !== undefined && { body }),
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk)
    } catch {
      // The client has closed the response.
    }
    response.end()
  })
  return { url: `${origin}/mcp`, handler, calls }
}
