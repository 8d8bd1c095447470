// The limit of the runtime: plain node:http with a JSON request and response.
import { createServer } from 'node:http'
import { createResponse, listen } from './tools.mjs'

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
    const body = JSON.stringify(createResponse(id, { content: [{ type: 'text', text: params.arguments.message }] }))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})

listen(server)
