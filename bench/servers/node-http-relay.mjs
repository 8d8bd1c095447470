// Two bare hops: plain node:http that parses the request's JSON, calls the API by an agent of node:http, and parses its JSON.
import { Agent, createServer, request as send } from 'node:http'
import { answerOf, listen } from './tools.mjs'

const api = new URL(process.env.API_URL)
const agent = new Agent({ keepAlive: true })

function read(stream, use) {
  const chunks = []
  stream.on('data', chunk => chunks.push(chunk))
  stream.on('end', () => use(JSON.parse(Buffer.concat(chunks).toString())))
}

const server = createServer((request, response) => {
  read(request, ({ id, params }) => {
    const path = `/echo?message=${encodeURIComponent(params.arguments.message)}`
    const call = send({ host: api.hostname, port: api.port, path, agent }, answer => {
      read(answer, structuredContent => {
        const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
        const body = JSON.stringify(answerOf(id, { content, structuredContent }))
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
        response.end(body)
      })
    })
    call.end()
  })
})

listen(server)
