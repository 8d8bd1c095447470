// tools/call of 2026-07-28 with 1 to 1,000 tools.
import { mcpHandler, mcpHost, sdkServer, serverScript, tmcp, tmcpOnHono } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

export const row: Row = {
  name: 'tools/call',
  contestants: [
    serverScript('Koa', 'koa.mjs', [], callEcho),
    serverScript('node:http', 'node-http.mjs', [], callEcho),
    mcpHost(1, callEcho),
    mcpHost(100, callEcho),
    mcpHost(1000, callEcho),
    tmcp(1, callEcho),
    tmcp(100, callEcho),
    tmcpOnHono(1, callEcho),
    mcpHandler(1, callEcho),
    mcpHandler(100, callEcho),
    sdkServer(1, callEcho),
    sdkServer(100, callEcho),
  ],
  targets: [
    ratio('ours, 1 tool', 'Koa', '<=', 1.1),
    ratio('tmcp 1.20, 1 tool', 'ours, 1 tool', '>=', 5),
    ratio('tmcp 1.20 on Hono, 1 tool', 'ours, 1 tool', '>=', 5),
    ratio('SDK server 2.4.0, 1 tool', 'ours, 1 tool', '>=', 12),
    ratio('SDK server 2.4.0, 100 tools', 'ours, 100 tools', '>=', 25),
    ratio('ours, 1,000 tools', 'ours, 1 tool', '<=', 1.05),
  ],
  quick: ['Koa', 'ours, 1 tool', 'tmcp 1.20 on Hono, 1 tool'],
}
