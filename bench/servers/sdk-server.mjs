// The official TypeScript SDK, as its README sets it up for per-request service over node:http, with JSON answers.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { listen, SERVER_INFO, toolTexts } from './tools.mjs'

const texts = toolTexts(Number(process.argv[2]))
const inputSchema = z.object({ message: z.string().describe('What to return.') })

function createMcpServer() {
  const server = new McpServer(SERVER_INFO)
  for (const { name, description } of texts) {
    server.registerTool(name, { description, inputSchema }, ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }))
  }
  return server
}

listen(createServer(toNodeHandler(createMcpHandler(createMcpServer, { responseMode: 'json' }))))
