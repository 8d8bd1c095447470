// Tests event-store-redis with killed nodes and Redis restarts: clients get each event once and in order, and replays
// are complete or gone.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { eventStoreRedis } from '../../plugins/cluster-redis/index.ts'
import { numbered, startCrashHost, stopCrashHosts, storedAfter, type WatchedCall, watchCall } from '../support/crash.ts'
import { createGate } from '../support/gate.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createRedisEventStore } from '../support/redis-stores.ts'
import { repeatDuring } from '../support/repeat-during.ts'
import { startHost } from '../support/start-host.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

/** Minimum restarts or pauses of Redis while calls run. */
const LEAST_DISTURBANCES = 3
const BOUNDS = { ttl: 600_000, maxEvents: 10_000, maxBytes: 10_000_000 }

before(function () {
  needsRedis(this)
})
after(async () => {
  stopCrashHosts()
  await stopHostsAndRedis()
})

async function openStore(redis: RedisServer) {
  const { connection } = await startRedisHost({ url: redis.url })
  return { connection, store: createRedisEventStore(connection, BOUNDS) }
}

const openSessions = (url: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => openStreamingSession(url)))

it('killed nodes have sent only stored events', async () => {
  const redis = await startRedis()
  const { store } = await openStore(redis)
  const [rounds, clients, count] = [2, 10, 60]
  let [seen, missed, answered, unanswered] = [0, 0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const host = await startCrashHost({ redis: redis.url, event: 0, when: 'before it is sent' })
    const end = Math.round(((round + 1) / (rounds + 1)) * clients * count)
    let events = 0
    const sessions = await openSessions(host.url, clients)
    const calls = await Promise.allSettled(
      sessions.map(session => watchCall(session, count, () => ++events === end && host.kill())),
    )
    host.kill()
    await host.died
    for (const settled of calls) {
      // Where the node was killed before the head of an answer had come, its client saw nothing.
      if (settled.status === 'rejected') {
        expect(settled.reason.code).to.be.oneOf(['ECONNRESET', 'ECONNREFUSED'])
        unanswered++
        continue
      }
      const call = settled.value
      const last = call.seen.length
      const rest = (await storedAfter(store, call, last, count)) ?? []
      expect([...call.seen, ...rest]).to.deep.equal(numbered(1, last + rest.length))
      seen += last
      missed += rest.length
      if (last === count + 1) answered++
    }
  }
  console.log(
    `${rounds} nodes killed, ${rounds * clients} calls: ${answered} answered whole, ${unanswered} without a head, ${seen} events seen, ${missed} resumable`,
  )
  expect(missed).to.be.above(0)
  expect(unanswered).to.be.below((rounds * clients) / 2)
})

/** Starts a host in this process whose tool awaits `step` before each notification. */
async function startTalking(redis: RedisServer, step: (number: number) => Promise<unknown>) {
  const talk = defineTool({
    name: 'talk',
    input: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
    async handler({ count }, { progress }) {
      for (let number = 1; number <= count; number++) {
        await step(number)
        progress(number, count)
      }
      return 'done'
    },
  })
  const { url, log } = await startHost({
    redis: { url: redis.url },
    toolsets: { talk: [talk] },
    routes: { '/': { toolsets: 'talk' } },
    plugins: { 'transport-streamable': {}, 'event-store-redis': eventStoreRedis({ ttl: '10m' }) },
  })
  return { url, log }
}

/** Calls while `disturb` runs over and over; whole calls, as their clients saw them. */
async function callThrough(redis: RedisServer, disturb: () => Promise<unknown>, { clients = 10, count = 150 } = {}) {
  const { connection, store } = await openStore(redis)
  let disturbances = 0
  const enough = createGate()
  // No call ends before the third disturbance, even on a slow machine.
  const { url, log } = await startTalking(redis, number => (number === count ? enough.opened : pause(20)))
  const disturbOnce = async () => {
    await disturb()
    if (++disturbances === LEAST_DISTURBANCES) enough.open()
    await whenHealthy(connection)
    await pause(200)
  }
  const calls = await repeatDuring(disturbOnce, async () => {
    const sessions = await openSessions(url, clients)
    return Promise.all(sessions.map(session => watchCall(session, count)))
  })
  await whenHealthy(connection)
  const refused = log.flatMap(({ message, err }) => (message?.includes('could not be stored') ? [String(err)] : []))
  expect(refused).to.deep.equal([])
  for (const { seen } of calls) expect(seen).to.deep.equal(numbered(1, count + 1))
  return { calls, store, disturbances, count }
}

/** Of each place in each stream: whether what comes after is whole, or said to be gone. Nothing between. */
async function tellReplays(store: EventStore, calls: readonly WatchedCall[], count: number) {
  let [whole, gone] = [0, 0]
  for (const call of calls) {
    for (let seq = 0; seq <= count + 1; seq += 10) {
      const rest = await storedAfter(store, call, seq, count)
      if (rest) {
        expect(rest).to.deep.equal(numbered(seq + 1, count + 1))
        whole++
      } else gone++
    }
  }
  return { whole, gone }
}

const pause = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds))

for (const persistent of [true, false]) {
  it(`Redis restart ${persistent ? 'with' : 'without'} persistence: replays are complete or gone`, async () => {
    const redis = await startRedis({ persistent })
    const { calls, store, disturbances, count } = await callThrough(redis, async () => {
      await redis.kill()
      await pause(100)
      await redis.start()
    })
    const { whole, gone } = await tellReplays(store, calls, count)
    console.log(
      `${disturbances} restarts, ${calls.length} calls of ${count} events each seen once: ${whole} replays whole, ${gone} gone`,
    )
    expect(disturbances).to.be.at.least(LEAST_DISTURBANCES)
    if (persistent) expect(gone).to.equal(0)
    else expect(gone).to.be.above(0)
  })
}

it('hanging Redis: replays are complete', async () => {
  const redis = await startRedis()
  const { calls, store, disturbances, count } = await callThrough(redis, async () => {
    redis.pause()
    await pause(500)
    redis.resume()
  })
  const { whole, gone } = await tellReplays(store, calls, count)
  console.log(
    `${disturbances} pauses, ${calls.length} calls of ${count} events each seen once: ${whole} replays whole, ${gone} gone`,
  )
  expect(gone).to.equal(0)
})
