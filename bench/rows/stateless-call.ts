// tools/call of 2025-11-25 without a session, as servers of that revision are deployed behind balancers. No target is set:
// it shows servers that speak nothing newer at their cheapest.
import { fastmcp, mcpHandler, ours, peer, platformatic } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import type { Row } from '../row.ts'
import { statelessCall } from '../sessions.ts'

export const row: Row = {
  name: 'tools/call of 2025-11-25, stateless',
  contestants: [
    peer('Koa', 'koa.mjs', [], callEcho),
    ours(1, statelessCall, { stateless: true }, 'stateless'),
    platformatic('stateless', statelessCall),
    mcpHandler(1, statelessCall),
    fastmcp('stateless', statelessCall),
  ],
  targets: [],
}
