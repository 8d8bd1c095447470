// The TypeScript framework fastmcp, with JSON responses and optional features disabled.
// Argument: `stateless` for a server without sessions.
import { FastMCP } from 'fastmcp'
import { z } from 'zod'
import { findFreePort, makeTools, SERVER_INFO } from './tools.mjs'

const [tool] = makeTools(1)

const ignore = () => undefined
const server = new FastMCP({
  ...SERVER_INFO,
  logger: { debug: ignore, error: ignore, info: ignore, log: ignore, warn: ignore },
  health: { enabled: false },
  ping: { enabled: false },
  roots: { enabled: false },
})
server.addTool({
  ...tool,
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
