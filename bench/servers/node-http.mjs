// The limit on this runtime: plain node:http that parses the request's JSON and answers with JSON.
import { createServer } from 'node:http'
import { answerOf, listen } from './tools.mjs'

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
    const answer = JSON.stringify(answerOf(id, { content: [{ type: 'text', text: params.arguments.message }] }))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
    response.end(answer)
  })
})

listen(server)
