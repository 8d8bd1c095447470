// The Fastify plugin @platformatic/mcp, without logs. Argument: `sessions` enables SSE and sessions.
import mcpPlugin from '@platformatic/mcp'
import Fastify from 'fastify'
import { INPUT_SCHEMA, makeTools, SERVER_INFO } from './tools.mjs'

const [tool] = makeTools(1)
const app = Fastify({ logger: false })
await app.register(mcpPlugin, {
  serverInfo: SERVER_INFO,
  capabilities: { tools: {} },
  enableSSE: process.argv[2] === 'sessions',
})
app.mcpAddTool({ ...tool, inputSchema: INPUT_SCHEMA }, async ({ message }) => ({
  content: [{ type: 'text', text: message }],
}))
console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}`)
