// A relay in plain node:http: parses the JSON of the request, calls the next server, and parses its response.
// With the argument `post`, it forwards the request and returns the response, as for MCP. Otherwise it calls `GET /echo`.
import { Agent, createServer, request as send } from 'node:http'
import { answerOf, listen } from './tools.mjs'

const api = new URL(process.env.API_URL)
const agent = new Agent({ keepAlive: true })
const relaysPosts = process.argv[2] === 'post'

function read(stream, use) {
  const chunks = []
  stream.on('data', chunk => chunks.push(chunk))
  stream.on('end', () => use(JSON.parse(Buffer.concat(chunks).toString())))
}

const headersOf = body => ({ 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })

function call({ params, ...message }, use) {
  const to = { host: api.hostname, port: api.port, agent }
  if (relaysPosts) {
    const body = JSON.stringify({ ...message, params })
    return send({ ...to, method: 'POST', path: '/1', headers: headersOf(body) }, answer => read(answer, use)).end(body)
  }
  const path = `/echo?message=${encodeURIComponent(params.arguments.message)}`
  return send({ ...to, path }, answer =>
    read(answer, structuredContent => {
      const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
      use(answerOf(message.id, { content, structuredContent }))
    }),
  ).end()
}

const server = createServer((request, response) => {
  read(request, message => {
    call(message, answer => {
      const body = JSON.stringify(answer)
      response.writeHead(200, headersOf(body))
      response.end(body)
    })
  })
})

listen(server)
