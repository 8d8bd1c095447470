// tools/call of 2025-11-25 without a session, as in deployments behind a load balancer. Has no target: shows the lowest
// cost of servers without a newer protocol version.
import { fastmcp, mcpHandler, mcpHost, platformatic, serverScript } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import type { Row } from '../row.ts'
import { statelessCall } from '../sessions.ts'

export const row: Row = {
  name: 'tools/call of 2025-11-25, stateless',
  contestants: [
    serverScript('Koa', 'koa.mjs', [], callEcho),
    mcpHost(1, statelessCall, { stateless: true }, 'stateless'),
    platformatic('stateless', statelessCall),
    mcpHandler(1, statelessCall),
    fastmcp('stateless', statelessCall),
  ],
  targets: [],
}
