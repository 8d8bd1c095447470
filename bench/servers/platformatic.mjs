// @platformatic/mcp, the plugin for Fastify, without its log. Argument: `sessions` for SSE and the sessions that come with it.
import mcpPlugin from '@platformatic/mcp'
import Fastify from 'fastify'
import { INPUT_SCHEMA, SERVER_INFO, toolTexts } from './tools.mjs'

const [text] = toolTexts(1)
const app = Fastify({ logger: false })
await app.register(mcpPlugin, {
  serverInfo: SERVER_INFO,
  capabilities: { tools: {} },
  enableSSE: process.argv[2] === 'sessions',
})
app.mcpAddTool({ ...text, inputSchema: INPUT_SCHEMA }, async ({ message }) => ({
  content: [{ type: 'text', text: message }],
}))
console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}`)
