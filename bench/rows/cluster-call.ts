// Compares a tools/call with sessions in memory, in Redis, and on three nodes behind nginx with sessions in Redis.
// All processes share one CPU. The cost includes Redis and nginx, except for "without the Redis process".
import { cluster, mcpHost, nodeOnRedis } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { inSession } from '../sessions.ts'

export const row: Row = {
  name: 'tools/call in a shared session',
  contestants: [mcpHost(1, callEcho), nodeOnRedis(callEcho), cluster(1, callEcho), cluster(3, callEcho)].map(
    contestant => inSession(contestant),
  ),
  targets: [ratio('ours on Redis, without the Redis process', 'ours, 1 tool', '<=', 2)],
}
