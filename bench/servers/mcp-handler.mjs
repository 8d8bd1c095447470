// mcp-handler, Vercel's wrapper of the official SDK for routes that take a Request, over the fastest adapter from node:http.
// Argument: how many tools.
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler } from 'mcp-handler'
import { z } from 'zod'
import { listen, SERVER_INFO, toolTexts } from './tools.mjs'

const texts = toolTexts(Number(process.argv[2]))
const inputSchema = z.object({ message: z.string().describe('What to return.') })

const handle = createMcpHandler(
  server => {
    for (const { name, description } of texts) {
      server.registerTool(name, { description, inputSchema }, ({ message }) => ({
        content: [{ type: 'text', text: message }],
      }))
    }
  },
  { serverInfo: SERVER_INFO, telemetry: false },
)

listen(createServer(getRequestListener(handle)))
