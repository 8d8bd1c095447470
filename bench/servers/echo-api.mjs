// The server behind relayed calls. `GET /echo` returns the query parameter `message` as JSON. A POST is MCP of 2026-07-28, with as many
// tools as its path says: `/50`.
import { createServer } from 'node:http'
import { answerOf, INPUT_SCHEMA, listen, toolTexts } from './tools.mjs'

const DISCOVERED = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }

function resultOf(method, params, path) {
  if (method === 'server/discover') return DISCOVERED
  if (method === 'tools/list') {
    return { tools: toolTexts(Number(path.slice(1))).map(text => ({ ...text, inputSchema: INPUT_SCHEMA })) }
  }
  if (method !== 'tools/call') return undefined
  const structuredContent = { message: params.arguments.message }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}

function send(response, value) {
  const body = JSON.stringify(value)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const query = request.url.slice(request.url.indexOf('?') + 1)
    return send(response, { message: new URLSearchParams(query).get('message') })
  }
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString())
    const result = resultOf(method, params, request.url)
    send(response, result ? answerOf(id, result) : { jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } })
  })
})

listen(server)
