// tools/call of 2025-11-25 inside a session, as most clients in the field send it.
import { ours, peer } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'
import { openSession, sessionCall } from '../sessions.ts'

/** The same server, asked in a session that is opened first. */
const inSession = (contestant: Contestant): Contestant => ({
  ...contestant,
  request: async url => sessionCall(await openSession(url)),
})

export const row: Row = {
  name: 'tools/call in a session',
  contestants: [
    peer('Koa', 'koa.mjs', [], callEcho),
    inSession(ours(1, callEcho)),
    inSession(peer('SDK 1.32.2, sessions', 'sdk-sessions.mjs', [], callEcho)),
    inSession(peer('tmcp 1.20, session', 'tmcp.mjs', [1], callEcho)),
  ],
  targets: [
    ratio('ours, 1 tool', 'Koa', '<=', 1.25),
    ratio('tmcp 1.20, session', 'ours, 1 tool', '>=', 4),
    ratio('SDK 1.32.2, sessions', 'ours, 1 tool', '>=', 6.5),
  ],
}
