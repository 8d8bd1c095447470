// tmcp, the fastest other framework. Arguments: number of tools, and `hono` for Hono's node:http adapter instead of the
// adapter in the README of tmcp.
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod'
import { HttpTransport } from '@tmcp/transport-http'
import { McpServer } from 'tmcp'
import { z } from 'zod'
import { listen, makeTools, SERVER_INFO } from './tools.mjs'

const schema = z.object({ message: z.string().describe('What to return.') })
const server = new McpServer(SERVER_INFO, { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } })
for (const { name, description } of makeTools(Number(process.argv[2]))) {
  server.tool({ name, description, schema }, ({ message }) => ({ content: [{ type: 'text', text: message }] }))
}

const transport = new HttpTransport(server, { path: '/mcp' })
const respond = async request => (await transport.respond(request)) ?? new Response(null, { status: 404 })

const adapt = process.argv[3] === 'hono' ? getRequestListener : createRequestListener
listen(createServer(adapt(respond)))
