// A node killed between storing and sending an event: every sent event id is in Redis, and unseen events are stored
// once.
import { expect } from 'chai'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { numbered, startCrashHost, stopCrashHosts, storedAfter, watchCall } from '../support/crash.ts'
import { startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createRedisEventStore } from '../support/redis-stores.ts'
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

describe('Event store in Redis: node crash', () => {
  for (const when of ['before it is stored', 'before it is sent'] as const) {
    it(`has sent only stored events when killed at an event ${when}`, async () => {
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
