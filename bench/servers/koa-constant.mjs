// The baseline of tools/list: Koa as its guides write it, sending a constant body of the size of the list.
import { createServer } from 'node:http'
import Koa from 'koa'
import { answerOf, INPUT_SCHEMA, listen, toolTexts } from './tools.mjs'

const tools = toolTexts(Number(process.argv[2])).map(text => ({ ...text, inputSchema: INPUT_SCHEMA }))
const body = JSON.stringify(answerOf(1, { tools, ttlMs: 60_000, cacheScope: 'public' }))

const app = new Koa()
app.use(async ctx => {
  const chunks = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  ctx.type = 'application/json'
  ctx.body = body
})

listen(createServer(app.callback()))
