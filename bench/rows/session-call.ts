// tools/call of 2025-11-25 in a session, as most clients send it.
import { fastmcp, mcpHost, platformatic, serverScript } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { inSession } from '../sessions.ts'

export const row: Row = {
  name: 'tools/call in a session',
  contestants: [
    serverScript('Koa', 'koa.mjs', [], callEcho),
    inSession(mcpHost(1, callEcho)),
    inSession(serverScript('tmcp 1.20, sessions', 'tmcp.mjs', [1], callEcho)),
    inSession(serverScript('SDK 1.32.2, sessions', 'sdk-sessions.mjs', [], callEcho)),
    inSession(platformatic('sessions', callEcho)),
    inSession(fastmcp('sessions', callEcho)),
  ],
  targets: [
    ratio('ours, 1 tool', 'Koa', '<=', 1.25),
    ratio('tmcp 1.20, sessions', 'ours, 1 tool', '>=', 5),
    // Even Koa is only six times cheaper, and 1.25 times Koa corresponds to this ratio.
    ratio('SDK 1.32.2, sessions', 'ours, 1 tool', '>=', 4.5),
  ],
  quick: ['Koa', 'ours, 1 tool', 'tmcp 1.20, sessions'],
}
