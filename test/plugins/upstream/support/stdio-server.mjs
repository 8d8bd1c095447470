// A legacy stdio server with a counter, a question, and ways to fail. It starts a child that ignores the end of stdin. Without an
// SDK, because the tests start it often.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const child = spawn('sleep', ['100000'], { stdio: 'ignore' })
/** `file`: the description of `count`, and the version, or `pid`. `socket`: a socket that only one process can open. */
const [, , file, socket] = process.argv
const [description, version = '1.0.0'] = file ? readFileSync(file, 'utf8').split('|') : []
if (socket) createServer().listen(`\0${socket}`)

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
/** Called with the response of the client to the question of `ask`. */
let answer
let count = 0
const tools = {
  count: () => ++count,
  pids: () => `${process.pid} ${child.pid}`,
  environment: () => Object.keys(process.env).sort().join(' '),
  die() {
    console.error('dying as requested')
    process.exit(3)
  },
  async ask() {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
    send({ id: 'question', method: 'elicitation/create', params: { message: 'Your name?', requestedSchema } })
    const { action, content } = await new Promise(resolve => {
      answer = resolve
    })
    return `${action} ${content?.name ?? ''}`
  },
}
const methods = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'counter', version: version === 'pid' ? String(process.pid) : version },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: Object.keys(tools).map(name => ({
      name,
      ...(name === 'count' && description && { description }),
      inputSchema: { type: 'object' },
    })),
  }),
  'tools/call': async ({ name }) => ({ content: [{ type: 'text', text: String(await tools[name]()) }] }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line)
  if (id === 'question') answer(result)
  else if (method in methods) Promise.resolve(methods[method](params)).then(made => send({ id, result: made }))
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'unknown' } })
}
