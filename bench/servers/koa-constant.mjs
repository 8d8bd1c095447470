// The baseline of tools/list: idiomatic Koa with a constant body of the same size.
import { createServer } from 'node:http'
import Koa from 'koa'
import { createResponse, INPUT_SCHEMA, listen, makeTools } from './tools.mjs'

const tools = makeTools(Number(process.argv[2])).map(tool => ({ ...tool, inputSchema: INPUT_SCHEMA }))
const body = JSON.stringify(createResponse(1, { tools, ttlMs: 60_000, cacheScope: 'public' }))

const app = new Koa()
app.use(async ctx => {
  const chunks = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  ctx.type = 'application/json'
  ctx.body = body
})

listen(createServer(app.callback()))
