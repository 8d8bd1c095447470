// The official TypeScript SDK 1.32.2 with a session per client and JSON responses, as in its guides.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { listen, makeTools, SERVER_INFO } from './tools.mjs'

const [{ name, description }] = makeTools(1)
const transports = new Map()

async function openTransport() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: id => transports.set(id, transport),
  })
  const server = new McpServer(SERVER_INFO)
  server.registerTool(
    name,
    { description, inputSchema: { message: z.string().describe('What to return.') } },
    ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }),
  )
  await server.connect(transport)
  return transport
}

listen(
  createServer(async (req, res) => {
    const chunks = []
    for await (const chunk of req) chunks.push(chunk)
    const transport = transports.get(req.headers['mcp-session-id']) ?? (await openTransport())
    await transport.handleRequest(req, res, JSON.parse(Buffer.concat(chunks).toString()))
  }),
)
