// The HTTP API of the relayed calls: returns the query parameter `message` as JSON.
import { createServer } from 'node:http'
import { listen } from './tools.mjs'

const server = createServer((request, response) => {
  const query = request.url.slice(request.url.indexOf('?') + 1)
  const body = JSON.stringify({ message: new URLSearchParams(query).get('message') })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
})

listen(server)
