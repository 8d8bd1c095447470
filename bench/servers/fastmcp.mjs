// fastmcp, the framework of that name for TypeScript, with JSON answers and nothing switched on that can be off.
// Argument: `stateless` for a server without sessions.
import { FastMCP } from 'fastmcp'
import { z } from 'zod'
import { findFreePort, SERVER_INFO, toolTexts } from './tools.mjs'

const [text] = toolTexts(1)

const silent = () => undefined
const server = new FastMCP({
  ...SERVER_INFO,
  logger: { debug: silent, error: silent, info: silent, log: silent, warn: silent },
  health: { enabled: false },
  ping: { enabled: false },
  roots: { enabled: false },
})
server.addTool({
  ...text,
  parameters: z.object({ message: z.string().describe('What to return.') }),
  execute: async ({ message }) => message,
})

const port = await findFreePort()
const stateless = process.argv[2] === 'stateless'
await server.start({
  transportType: 'httpStream',
  httpStream: { host: '127.0.0.1', port, endpoint: '/mcp', enableJsonResponse: true, stateless },
})
console.log(`listening on http://127.0.0.1:${port}`)
