// What sharing sessions costs a tools/call: the same call in memory, on Redis, and through nginx to three nodes on Redis.
// The CPU time of the nodes, of Redis and of nginx is added up; all of them have one core, so req/s is that of a core.
// The target is for the node alone.
import { cluster, nodeOnRedis, ours } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { inSession } from '../sessions.ts'

export const row: Row = {
  name: 'tools/call in a shared session',
  contestants: [ours(1, callEcho), nodeOnRedis(callEcho), cluster(1, callEcho), cluster(3, callEcho)].map(one =>
    inSession(one),
  ),
  targets: [ratio('ours on Redis, the node alone', 'ours, 1 tool', '<=', 2)],
}
