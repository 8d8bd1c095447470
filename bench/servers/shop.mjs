// The other servers of the shop workload, set up as in their guides.
// Argument: node, sdk, sdk-sessions, tmcp or fastmcp.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { z } from 'zod'
import { SHOP_TOOLS } from './shop-tools.mjs'
import { findFreePort, listen, SERVER_INFO } from './tools.mjs'

const asContent = run => async input => ({ content: [{ type: 'text', text: await run(input) }] })

/** The official SDK 2.4, with a server per request. */
async function startSdk() {
  const { toNodeHandler } = await import('@modelcontextprotocol/node')
  const { createMcpHandler, McpServer } = await import('@modelcontextprotocol/server')
  const tools = SHOP_TOOLS.map(tool => ({ ...tool, inputSchema: z.object(tool.zod(z)) }))
  const createMcpServer = () => {
    const server = new McpServer(SERVER_INFO)
    for (const { name, description, inputSchema, run } of tools) {
      server.registerTool(name, { description, inputSchema }, asContent(run))
    }
    return server
  }
  listen(createServer(toNodeHandler(createMcpHandler(createMcpServer, { responseMode: 'json' }))))
}

/** The official SDK 1.32, with a session per client. */
async function startSdkSessions() {
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js')
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js')
  const transports = new Map()
  const openTransport = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: id => transports.set(id, transport),
      onsessionclosed: id => transports.delete(id),
    })
    const server = new McpServer(SERVER_INFO)
    for (const { name, description, zod, run } of SHOP_TOOLS) {
      server.registerTool(name, { description, inputSchema: zod(z) }, asContent(run))
    }
    await server.connect(transport)
    return transport
  }
  listen(
    createServer(async (req, res) => {
      const chunks = []
      for await (const chunk of req) chunks.push(chunk)
      const transport = transports.get(req.headers['mcp-session-id']) ?? (await openTransport())
      const text = Buffer.concat(chunks).toString()
      await transport.handleRequest(req, res, text === '' ? undefined : JSON.parse(text))
    }),
  )
}

/** tmcp with the Hono adapter, the fastest known. */
async function startTmcp() {
  const { getRequestListener } = await import('@hono/node-server')
  const { ZodJsonSchemaAdapter } = await import('@tmcp/adapter-zod')
  const { HttpTransport } = await import('@tmcp/transport-http')
  const { McpServer } = await import('tmcp')
  const server = new McpServer(SERVER_INFO, { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } })
  for (const { name, description, zod, run } of SHOP_TOOLS) {
    server.tool({ name, description, schema: z.object(zod(z)) }, asContent(run))
  }
  const transport = new HttpTransport(server, { path: '/mcp' })
  listen(
    createServer(
      getRequestListener(async request => (await transport.respond(request)) ?? new Response(null, { status: 404 })),
    ),
  )
}

async function startFastmcp() {
  const { FastMCP } = await import('fastmcp')
  const ignore = () => undefined
  const server = new FastMCP({
    ...SERVER_INFO,
    logger: { debug: ignore, error: ignore, info: ignore, log: ignore, warn: ignore },
    health: { enabled: false },
    ping: { enabled: false },
    roots: { enabled: false },
  })
  for (const { name, description, zod, run } of SHOP_TOOLS) {
    server.addTool({ name, description, parameters: z.object(zod(z)), execute: run })
  }
  const port = await findFreePort()
  const httpStream = { host: '127.0.0.1', port, endpoint: '/mcp', enableJsonResponse: true }
  await server.start({ transportType: 'httpStream', httpStream })
  console.log(`listening on http://127.0.0.1:${port}`)
}

/** The same tools on node:http without sessions and validation: the lower limit of the cost. */
function startNode() {
  const run = new Map(SHOP_TOOLS.map(({ name, run }) => [name, run]))
  const tools = SHOP_TOOLS.map(({ name, description, input }) => ({ name, description, inputSchema: input }))
  const results = {
    initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: SERVER_INFO }),
    'tools/list': () => ({ tools }),
    'tools/call': async ({ name, arguments: input }) => ({
      content: [{ type: 'text', text: await run.get(name)(input) }],
    }),
  }
  listen(
    createServer(async (req, res) => {
      const chunks = []
      for await (const chunk of req) chunks.push(chunk)
      if (req.method === 'DELETE') return res.writeHead(204).end()
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString())
      if (id === undefined) return res.writeHead(202, { 'Content-Length': 0 }).end()
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: await results[method](params) })
      const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
      res.writeHead(200, { ...headers, 'Mcp-Session-Id': 'none' }).end(body)
    }),
  )
}

const starts = {
  node: startNode,
  sdk: startSdk,
  'sdk-sessions': startSdkSessions,
  tmcp: startTmcp,
  fastmcp: startFastmcp,
}
await starts[process.argv[2]]()
