// A server of FastMCP (TypeScript), which `npm --prefix bench ci` installs: over stdio, or at the port of `PORT`.
import module, { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(new URL('../../../../bench/package.json', import.meta.url))
const { FastMCP } = await import(pathToFileURL(require.resolve('fastmcp')).href)
const { z } = await import(pathToFileURL(require.resolve('zod')).href)

const silent = () => undefined
const server = new FastMCP({
  name: 'fast',
  version: '1.0.0',
  logger: { debug: silent, error: silent, info: silent, log: silent, warn: silent },
})
server.addTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
})
server.addTool({
  name: 'steps',
  description: 'Reports progress.',
  execute: async (_, { reportProgress }) => {
    for (const progress of [1, 2, 3]) await reportProgress({ progress, total: 3 })
    return 'done'
  },
})
server.addResource({ uri: 'fast://page', name: 'page', mimeType: 'text/plain', load: async () => ({ text: 'a page' }) })
server.addPrompt({
  name: 'greet',
  description: 'Greets.',
  arguments: [{ name: 'who', required: true, complete: async value => ({ values: [`${value}!`] }) }],
  load: async ({ who }) => `Hello ${who}`,
})

const port = Number(process.env.PORT ?? 0)
await server.start(
  port === 0
    ? { transportType: 'stdio' }
    : { transportType: 'httpStream', httpStream: { host: '127.0.0.1', port, endpoint: '/mcp' } },
)
// A signal ends the process before Node.js writes its compile cache.
module.flushCompileCache?.()
