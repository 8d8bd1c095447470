// A stdio server that ends during some calls. It writes the tag of each executed call to the file of its first argument.
// The tool `ask` requests a name, and is executed when the response arrives.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const [, , file = ''] = process.argv
const handshake = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'dying' } }
const listed = { tools: ['do', 'ask'].map(name => ({ name, inputSchema: { type: 'object' } })) }
const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
/** The running calls of `ask`, by the ids of their requests. */
const asking = new Map()

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params, result } = JSON.parse(line)
  const asked = method === undefined && asking.get(id)
  if (asked) {
    asking.delete(id)
    appendFileSync(file, `${asked.tag}\n`)
    const text = `${asked.tag} ${result?.content?.name}`
    return send({ id: asked.id, result: { content: [{ type: 'text', text }] } })
  }
  if (method === 'initialize') return send({ id, result: handshake })
  if (method === 'tools/list') return send({ id, result: listed })
  if (method !== 'tools/call') return id !== undefined && send({ id, error: { code: -32_601, message: 'unknown' } })
  const { tag, fate } = params.arguments
  if (params.name === 'ask') {
    asking.set(`ask ${tag}`, { id, tag })
    return send({ id: `ask ${tag}`, method: 'elicitation/create', params: { message: tag, requestedSchema } })
  }
  appendFileSync(file, `${tag}\n`)
  if (fate === 0) process.kill(process.pid, 'SIGKILL')
  send({ id, result: { content: [{ type: 'text', text: tag }] } })
})
