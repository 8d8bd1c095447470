// The baseline of large messages: plain node:http with a JSON request and response.
import { createServer } from 'node:http'
import { makeRecords } from './records.mjs'
import { createResponse, listen } from './tools.mjs'

const texts = new Map([1, 10].map(megabytes => [megabytes, makeRecords(megabytes)]))

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
    const { megabytes, text } = params.arguments
    const result = text === undefined ? texts.get(megabytes) : String(text.length)
    const body = Buffer.from(JSON.stringify(createResponse(id, { content: [{ type: 'text', text: result }] })))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})

listen(server)
