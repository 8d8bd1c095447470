// A node that dies between keeping an event and sending it: whatever a client was given the id of is in Redis, and what
// it did not see is there once, in order.
import { expect } from 'chai'
import type { EventStore } from '../../core/transport.ts'
import { createRedisEventStore } from '../../plugins/event-store-redis/store.ts'
import { numbered, startCrashHost, stopCrashHosts, storedAfter, watchCall } from '../support/crash.ts'
import { startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

const COUNT = 40
const EVENT = 7

let redis: RedisServer
let store: EventStore

before(async function () {
  needsRedis(this)
  redis = await startRedis()
  const { connection } = await startRedisHost({ url: redis.url })
  store = createRedisEventStore(connection, { ttl: 60_000, maxEvents: 1_000, maxBytes: 1_000_000 })
})
after(async () => {
  stopCrashHosts()
  await stopHostsAndRedis()
})

describe('a host that is killed', () => {
  for (const when of ['before it is stored', 'before it is sent'] as const) {
    it(`at an event, ${when}, has sent nothing that is not stored`, async () => {
      const { url, died } = await startCrashHost({ redis: redis.url, event: EVENT, when })
      const call = await watchCall(await openStreamingSession(url), COUNT)
      expect(await died).to.equal('SIGKILL')
      const last = call.seen.length
      const missed = (await storedAfter(store, call, last, COUNT)) ?? []
      const kept = when === 'before it is sent' ? EVENT : EVENT - 1
      expect(last).to.be.below(EVENT)
      expect([...call.seen, ...missed]).to.deep.equal(numbered(1, kept))
      expect(await storedAfter(store, call, 0, COUNT)).to.deep.equal(numbered(1, kept))
    })
  }
})
