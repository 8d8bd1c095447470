// A stdio server of the official SDK 1.x with a counter, a question, and ways to fail. It starts a child that ignores the end of stdin.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'

const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
const text = value => ({ content: [{ type: 'text', text: String(value) }] })
/** `file`: the description of `count`, and the version, or `pid`. `socket`: a socket that only one process can open. */
const [, , file, socket] = process.argv
const [description, version = '1.0.0'] = file ? readFileSync(file, 'utf8').split('|') : []
const server = new McpServer({ name: 'counter', version: version === 'pid' ? String(process.pid) : version })
let count = 0
if (socket) createServer().listen(`\0${socket}`)
server.registerTool('count', description ? { description } : {}, () => text(++count))
server.registerTool('pids', {}, () => text(`${process.pid} ${child.pid}`))
server.registerTool('environment', {}, () => text(Object.keys(process.env).sort().join(' ')))
server.registerTool('die', {}, () => {
  console.error('dying as requested')
  process.exit(3)
})
server.registerTool('ask', {}, async ({ sendRequest }) => {
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
  const params = { message: 'Your name?', requestedSchema }
  const { action, content } = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)
  return text(`${action} ${content?.name ?? ''}`)
})
await server.connect(new StdioServerTransport())
