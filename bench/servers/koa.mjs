// The baseline of tools/call: Koa as its guides write it, with the body parsed and the answer given as an object.
import { createServer } from 'node:http'
import Koa from 'koa'
import { answerOf, listen } from './tools.mjs'

const app = new Koa()
app.use(async ctx => {
  const chunks = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  const { id, params } = JSON.parse(Buffer.concat(chunks).toString())
  ctx.body = answerOf(id, { content: [{ type: 'text', text: params.arguments.message }] })
})

listen(createServer(app.callback()))
