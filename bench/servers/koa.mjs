// The baseline of tools/call: idiomatic Koa that parses the body and returns an object.
import { createServer } from 'node:http'
import Koa from 'koa'
import { createResponse, listen } from './tools.mjs'

const app = new Koa()
app.use(async ctx => {
  const chunks = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
  ctx.body = createResponse(id, { content: [{ type: 'text', text: params.arguments.message }] })
})

listen(createServer(app.callback()))
