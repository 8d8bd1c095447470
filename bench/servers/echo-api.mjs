// The API of relayed calls. `GET /echo` returns the query parameter `message` as JSON. POST is MCP 2026-07-28: the path
// is the number of tools, for example `/50`.
import { createServer } from 'node:http'
import { createResponse, INPUT_SCHEMA, listen, makeTools } from './tools.mjs'

const DISCOVER_RESULT = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }

function createResult(method, params, path) {
  if (method === 'server/discover') return DISCOVER_RESULT
  if (method === 'tools/list') {
    return { tools: makeTools(Number(path.slice(1))).map(tool => ({ ...tool, inputSchema: INPUT_SCHEMA })) }
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
    const result = createResult(method, params, request.url)
    send(
      response,
      result
        ? createResponse(id, result)
        : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } },
    )
  })
})

listen(server)
