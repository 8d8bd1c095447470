// What sharing sessions costs a tools/call: the same call in memory, on Redis, and through nginx to three nodes on Redis.
// The CPU time of the nodes, of Redis and of nginx is added up; all of them have one core, so req/s is that of a core.
import { cluster, ours } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import type { Contestant, Row } from '../row.ts'
import { openSession, sessionCall } from '../sessions.ts'

const inSession = (contestant: Contestant): Contestant => ({
  ...contestant,
  request: async url => sessionCall(await openSession(url)),
})

export const row: Row = {
  name: 'tools/call in a shared session',
  contestants: [inSession(ours(1, callEcho)), inSession(cluster(1, callEcho)), inSession(cluster(3, callEcho))],
  targets: [],
}
