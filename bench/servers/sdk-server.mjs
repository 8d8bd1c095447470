// The official TypeScript SDK 2.4 with a server per request and JSON responses. Argument: number of tools.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { listen, makeTools, SERVER_INFO } from './tools.mjs'

const tools = makeTools(Number(process.argv[2]))
const inputSchema = z.object({ message: z.string().describe('What to return.') })

function createMcpServer() {
  const server = new McpServer(SERVER_INFO)
  for (const { name, description } of tools) {
    server.registerTool(name, { description, inputSchema }, ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }))
  }
  return server
}

listen(createServer(toNodeHandler(createMcpHandler(createMcpServer, { responseMode: 'json' }))))
