// Vercel's mcp-handler, a wrapper of the official SDK, with the fastest known adapter. Argument: number of tools.
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler } from 'mcp-handler'
import { z } from 'zod'
import { listen, makeTools, SERVER_INFO } from './tools.mjs'

const tools = makeTools(Number(process.argv[2]))
const inputSchema = z.object({ message: z.string().describe('What to return.') })

const handle = createMcpHandler(
  server => {
    for (const { name, description } of tools) {
      server.registerTool(name, { description, inputSchema }, ({ message }) => ({
        content: [{ type: 'text', text: message }],
      }))
    }
  },
  { serverInfo: SERVER_INFO, telemetry: false },
)

listen(createServer(getRequestListener(handle)))
