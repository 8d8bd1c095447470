// tools/list of 2026-07-28 with 100 tools. The baseline is Koa with a constant body of that size.
import { mcpHandler, mcpHost, sdkServer, serverScript, tmcp, tmcpOnHono } from '../contestants.ts'
import { listTools } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const TOOLS = 100
const list = listTools(TOOLS)

export const row: Row = {
  name: 'tools/list',
  contestants: [
    serverScript('Koa, constant body', 'koa-constant.mjs', [TOOLS], list),
    mcpHost(TOOLS, list),
    tmcp(TOOLS, list),
    tmcpOnHono(TOOLS, list),
    mcpHandler(TOOLS, list),
    sdkServer(TOOLS, list),
  ],
  targets: [
    ratio('ours, 100 tools', 'Koa, constant body', '<=', 1.25),
    ratio('tmcp 1.20, 100 tools', 'ours, 100 tools', '>=', 30),
    ratio('tmcp 1.20 on Hono, 100 tools', 'ours, 100 tools', '>=', 30),
    ratio('SDK server 2.4.0, 100 tools', 'ours, 100 tools', '>=', 50),
  ],
  quick: ['Koa, constant body', 'ours, 100 tools'],
}
