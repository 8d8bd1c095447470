// A stdio server that ends during some calls. It writes the tag of each call to the file of its argument.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const [, , file = ''] = process.argv
const handshake = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'dying' } }
const listed = { tools: [{ name: 'do', inputSchema: { type: 'object' } }] }

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') return send({ id, result: handshake })
  if (method === 'tools/list') return send({ id, result: listed })
  if (method !== 'tools/call') return id !== undefined && send({ id, error: { code: -32_601, message: 'unknown' } })
  const { tag, fate } = params.arguments
  appendFileSync(file, `${tag}\n`)
  if (fate === 0) process.kill(process.pid, 'SIGKILL')
  send({ id, result: { content: [{ type: 'text', text: tag }] } })
})
