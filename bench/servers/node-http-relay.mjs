// A relay in plain node:http: parses the JSON of the request, calls the next server, and parses its response.
// With the argument `post`, it forwards the request and returns the response, like an MCP proxy. Otherwise it calls
// `GET /echo`.
import { Agent, createServer, request as send } from 'node:http'
import { createResponse, listen } from './tools.mjs'

const api = new URL(process.env.API_URL)
const agent = new Agent({ keepAlive: true })
const forwardPosts = process.argv[2] === 'post'

function readJson(stream, onMessage) {
  const chunks = []
  stream.on('data', chunk => chunks.push(chunk))
  stream.on('end', () => onMessage(JSON.parse(Buffer.concat(chunks).toString())))
}

const createHeaders = body => ({ 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })

function callApi({ params, ...message }, onResult) {
  const target = { host: api.hostname, port: api.port, agent }
  if (forwardPosts) {
    const body = JSON.stringify({ ...message, params })
    return send({ ...target, method: 'POST', path: '/1', headers: createHeaders(body) }, response =>
      readJson(response, onResult),
    ).end(body)
  }
  const path = `/echo?message=${encodeURIComponent(params.arguments.message)}`
  return send({ ...target, path }, response =>
    readJson(response, structuredContent => {
      const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
      onResult(createResponse(message.id, { content, structuredContent }))
    }),
  ).end()
}

const server = createServer((request, response) => {
  readJson(request, message => {
    callApi(message, result => {
      const body = JSON.stringify(result)
      response.writeHead(200, createHeaders(body))
      response.end(body)
    })
  })
})

listen(server)
