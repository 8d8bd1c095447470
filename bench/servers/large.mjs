// The limit for large messages on this runtime: plain node:http that parses the request's JSON, and answers with JSON.
import { createServer } from 'node:http'
import { makeRecords } from './records.mjs'
import { answerOf, listen } from './tools.mjs'

const texts = new Map([1, 10].map(megabytes => [megabytes, makeRecords(megabytes)]))

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
    const { megabytes, text } = params.arguments
    const found = text === undefined ? texts.get(megabytes) : String(text.length)
    const answer = Buffer.from(JSON.stringify(answerOf(id, { content: [{ type: 'text', text: found }] })))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    response.end(answer)
  })
})

listen(server)
