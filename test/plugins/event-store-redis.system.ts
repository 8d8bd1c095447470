// Event streams in Redis beyond the event store contract: limits, idempotent appends, gaps, outages and ACL.
import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import type { EventStore, StoredEvents, StreamWriter } from '../../core/sessions/event-store.ts'
import type { StreamLimits } from '../../core/transport.ts'
import { type RedisConnection, STORE_COMMANDS } from '../../plugins/families/redis/index.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, type RedisServerSettings, startRedis } from '../support/redis-server.ts'
import { createRedisEventStore } from '../support/redis-stores.ts'

const BOUNDS: StreamLimits = { ttl: 60_000, maxEvents: 1_000, maxBytes: 1_000_000 }

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

interface Opened {
  readonly redis: RedisServer
  readonly connection: RedisConnection
  readonly store: EventStore
  readonly shared: NonNullable<EventStore['shared']>
}

interface Settings extends RedisServerSettings {
  readonly bounds?: Partial<StreamLimits>
  readonly commandTimeout?: number
  /** Where the host connects; default: the server itself. */
  readonly through?: (redis: RedisServer) => Promise<string>
}

async function open({ bounds, commandTimeout = 5_000, through, ...server }: Settings = {}): Promise<Opened> {
  const redis = await startRedis(server)
  const url = through ? await through(redis) : redis.url
  const { connection } = await startRedisHost({ url, commandTimeout })
  const store = createRedisEventStore(connection, { ...BOUNDS, ...bounds })
  if (!store.shared) throw new Error('not shared')
  return { redis, connection, store, shared: store.shared }
}

const refusal = (promise: unknown): Promise<unknown> =>
  Promise.resolve(promise).then(
    value => expect.fail(`resolved with ${JSON.stringify(value)}`),
    error => error,
  )

const isUnavailable = (error: unknown) => HostError.is(error) && error.status === 503

const texts = (events: StoredEvents) => events?.map(({ message }) => message)
const numbers = (events: StoredEvents) => events?.map(({ seq }) => seq)

/** The keys of the log and of the record. */
const [LOG, RECORD] = ['l:stream', 'r:stream:stream'].map(key => `mcp-host:{session:session}:${key}`) as [
  string,
  string,
]

/** Appends `count` messages, each named after its number. */
async function fill(store: EventStore, count: number, { session = 'session', stream = 'stream', from = 0 } = {}) {
  for (let known = from; known < from + count; known++) await store.append(session, stream, `m${known + 1}`, known)
}

describe('Event stream in Redis', () => {
  it('belongs to its session', async () => {
    const { store, redis } = await open()
    await fill(store, 2, { session: 'one' })
    expect(await store.after('other', 'stream', 0)).to.equal(undefined)
    await store.append('other', 'stream', 'theirs', 0)
    expect(texts(await store.after('other', 'stream', 0))).to.deep.equal(['theirs'])
    expect(texts(await store.after('one', 'stream', 0))).to.deep.equal(['m1', 'm2'])
    expect(redis.cli('keys', '*')).to.have.length(6)
  })

  it('evicts the oldest events beyond maxEvents and maxBytes, keeps the last, and reports a gap', async () => {
    const { store, redis } = await open({ bounds: { maxEvents: 10, maxBytes: 100 } })
    await fill(store, 25)
    expect(await store.after('session', 'stream', 14)).to.equal(undefined)
    expect(numbers(await store.after('session', 'stream', 15))).to.deep.equal([16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
    await store.append('session', 'stream', 'x'.repeat(80), 25)
    expect(numbers(await store.after('session', 'stream', 19))).to.deep.equal([20, 21, 22, 23, 24, 25, 26])
    expect(await store.after('session', 'stream', 18)).to.equal(undefined)
    await store.append('session', 'stream', 'x'.repeat(500), 26)
    expect(await store.after('session', 'stream', 25)).to.equal(undefined)
    expect(numbers(await store.after('session', 'stream', 26))).to.deep.equal([27])
    expect(redis.cli('hget', LOG, 'b')).to.deep.equal(['500'])
  })

  it('is deleted with its session or separately, and every key expires', async () => {
    const { store, redis } = await open()
    for (const stream of ['one', 'two', 'three']) await fill(store, 3, { stream })
    await fill(store, 1, { session: 'another' })
    const keys = redis.cli('keys', '*')
    const lives = keys.map(key => Number(redis.cli('pttl', key)[0]))
    expect(keys).to.have.length(3 * 2 + 1 + 3)
    for (const life of lives) expect(life).to.be.above(0).and.at.most(BOUNDS.ttl)
    await store.drop('session', 'one')
    expect(await store.after('session', 'one', 0)).to.equal(undefined)
    expect(texts(await store.after('session', 'two', 1))).to.deep.equal(['m2', 'm3'])
    await store.drop('session')
    expect(await store.after('session', 'two', 1)).to.equal(undefined)
    expect(redis.cli('keys', '*')).to.have.length(3)
    expect(texts(await store.after('another', 'stream', 0))).to.deep.equal(['m1'])
  })

  it('takes one round trip per append, and one for many concurrent appends', async () => {
    const { store, shared, connection } = await open()
    await fill(store, 1)
    const streams = Array.from({ length: 200 }, (_, index) => `stream ${index}`)
    for (const stream of streams) await shared.open('session', stream, { epoch: 0, facts: '' })
    const before = connection.roundTrips
    await store.append('session', 'stream', 'm2', 1)
    const one = connection.roundTrips - before
    await Promise.all(streams.map(stream => store.append('session', stream, 'first', 0)))
    const many = connection.roundTrips - before - one
    expect({ one, many }).to.deep.equal({ one: 1, many: 1 })
  })
})

describe('Retried append to a stream in Redis', () => {
  it('is refused if another message has its number', async () => {
    const { store } = await open()
    await fill(store, 3)
    expect(String(await refusal(store.append('session', 'stream', 'not m3', 2)))).to.include('has the number 3')
    expect(texts(await store.after('session', 'stream', 0))).to.deep.equal(['m1', 'm2', 'm3'])
  })

  it('is stored once and in order over a connection that is cut repeatedly', async () => {
    let packets = 0
    const cutter = () => () => (++packets % 7 === 0 ? 2 : undefined)
    let stop = async () => {}
    const { store } = await open({
      async through(redis) {
        const proxy = await startCuttingProxy(redis.url, { cutter })
        stop = proxy.stop
        return proxy.url.replace('http:', 'redis:')
      },
    })
    const [writers, count] = [20, 40]
    const names = Array.from({ length: writers }, (_, index) => `writer ${index}`)
    async function write(stream: string) {
      for (let known = 0; known < count; ) {
        const stored = await Promise.resolve(store.append('session', stream, `${stream} ${known}`, known)).catch(
          error => {
            if (!isUnavailable(error)) throw error
            return undefined
          },
        )
        if (stored === undefined) continue
        expect(stored).to.equal(++known)
      }
    }
    await Promise.all(names.map(write))
    for (const name of names) {
      const events = await eventually('the stream is read', () =>
        Promise.resolve(store.after('session', name, 0)).catch(() => undefined),
      )
      expect(texts(events ?? [])).to.deep.equal(Array.from({ length: count }, (_, index) => `${name} ${index}`))
    }
    await stop()
    expect(packets).to.be.above(50)
  })
})

describe('Unopened event stream in Redis', () => {
  it('leaves no key when it is claimed or finished', async () => {
    const { shared, redis } = await open()
    const writer: StreamWriter = { epoch: 2, facts: 'node B' }
    await shared.claim('session', 'stream', writer)
    await shared.finish('session', 'stream', writer)
    expect(redis.cli('keys', '*')).to.deep.equal([])
  })
})

const OLD: StreamWriter = { epoch: 1, facts: 'node A', bus: 'a place of A' }
const NEW: StreamWriter = { epoch: 2, facts: 'node B' }

/** Three messages of `OLD`; that `NEW` claimed the stream then, and wrote a fourth, is undone: with `undo`, once more. */
async function openUndone() {
  const { store, shared, redis } = await open()
  const keys = [LOG, RECORD]
  const undo = () => {
    for (const key of keys) redis.cli('copy', `${key}:older`, key, 'replace')
  }
  for (let known = 0; known < 3; known++) await store.append('session', 'stream', `m${known + 1}`, known, OLD)
  for (const key of keys) redis.cli('copy', key, `${key}:older`)
  await shared.claim('session', 'stream', NEW)
  await store.append('session', 'stream', 'm4', 3, NEW)
  undo()
  return { store, shared, undo }
}

describe('Event stream after data loss in Redis', () => {
  it('continues at its writer after losing all data, with a gap before', async () => {
    const { store, redis, connection } = await open()
    await fill(store, 5)
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    expect(await store.append('session', 'stream', 'm6', 5)).to.equal(6)
    expect(await store.after('session', 'stream', 4)).to.equal(undefined)
    expect(texts(await store.after('session', 'stream', 5))).to.deep.equal(['m6'])
  })

  it('reports a gap after losing the last events to an older copy', async () => {
    const { store, redis } = await open()
    const keys = [LOG, RECORD]
    await fill(store, 3)
    for (const key of keys) redis.cli('copy', key, `${key}:older`)
    await fill(store, 2, { from: 3 })
    for (const key of keys) redis.cli('copy', `${key}:older`, key, 'replace')
    expect(await store.after('session', 'stream', 5)).to.equal(undefined)
    expect(await store.append('session', 'stream', 'm6', 5)).to.equal(6)
    expect(await store.after('session', 'stream', 3)).to.equal(undefined)
    expect(texts(await store.after('session', 'stream', 5))).to.deep.equal(['m6'])
  })

  it('accepts a new writer after losing the current writer, with a gap before', async () => {
    const { store, shared, undo } = await openUndone()
    for (let known = 3; known < 6; known++) await store.append('session', 'stream', `old ${known + 1}`, known, OLD)
    await shared.open('session', 'stream', NEW, 4)
    expect(await store.append('session', 'stream', 'm5', 4, NEW)).to.equal(5)
    expect(texts(await store.after('session', 'stream', 4))).to.deep.equal(['m5'])
    expect(await store.after('session', 'stream', 3)).to.equal(undefined)
    expect(String(await refusal(store.append('session', 'stream', 'of old still', 5, OLD)))).to.include('another node')
    undo()
    for (let known = 3; known < 6; known++) await store.append('session', 'stream', `old ${known + 1}`, known, OLD)
    // Without a reopening before it, and with another message of the same number.
    expect(await store.append('session', 'stream', 'm5', 4, NEW)).to.equal(5)
    expect(texts(await store.after('session', 'stream', 4))).to.deep.equal(['m5'])
    expect(await shared.state('session', 'stream')).to.deep.include({ last: 5, epoch: NEW.epoch, bus: '' })
  })

  it('keeps the end of the previous writer after losing the current writer', async () => {
    const { store, shared } = await openUndone()
    await store.append('session', 'stream', 'answer', 3, { ...OLD, finished: true })
    for (const late of [store.append('session', 'stream', 'm5', 4, NEW), shared.open('session', 'stream', NEW, 4)]) {
      expect(String(await refusal(late))).to.include('another node')
    }
    expect(texts(await store.after('session', 'stream', 3))).to.deep.equal(['answer'])
    expect((await shared.state('session', 'stream'))?.finished).to.equal(true)
  })

  it('loses nothing with Redis persistence', async () => {
    const { store, redis, connection } = await open({ persistent: true })
    await fill(store, 5)
    await redis.kill()
    await whenHealthy(connection, false)
    const asked = store.append('session', 'stream', 'm6', 5)
    await redis.start()
    expect(await asked).to.equal(6)
    expect(numbers(await store.after('session', 'stream', 0))).to.deep.equal([1, 2, 3, 4, 5, 6])
  })
})

describe('Event store during a Redis outage', () => {
  it('queues appends while Redis loads its data', async () => {
    const { store, redis, connection } = await open({ persistent: true, slowStart: 1_000 })
    await fill(store, 50)
    redis.cli('eval', `for i = 1, 500 do redis.call('set', 'k' .. i, string.rep('x', 200)) end`, '0')
    redis.cli('bgrewriteaof')
    await eventually(
      'the file is written anew',
      () => redis.cli('info', 'persistence'),
      lines => !lines.some(line => line.startsWith('aof_rewrite_in_progress:1')),
    )
    await redis.kill()
    await whenHealthy(connection, false)
    const starting = redis.start()
    await eventually(
      'a Redis that still loads',
      () => connection.problem,
      trouble => trouble === 'Redis refuses: LOADING',
    )
    const loading = connection
      .run(client => client.get('key'))
      .then(
        () => 'answered',
        error => String(error.cause),
      )
    expect(await store.append('session', 'stream', 'm51', 50)).to.equal(51)
    expect(await loading).to.include('LOADING')
    expect(await store.after('session', 'stream', 0)).to.have.length(51)
    await starting
  })

  it('refuses appends in time while Redis hangs, and a retry stores them once', async () => {
    const { store, shared, redis, connection } = await open({ commandTimeout: 3_000 })
    const streams = Array.from({ length: 20 }, (_, index) => `stream ${index}`)
    for (const stream of streams) await fill(store, 3, { stream })
    redis.pause()
    const errors = await Promise.all(streams.map(stream => refusal(store.append('session', stream, 'm4', 3))))
    expect(errors.filter(isUnavailable)).to.have.length(20)
    redis.resume()
    await whenHealthy(connection)
    const lasts = await Promise.all(streams.map(async stream => (await shared.state('session', stream))?.last))
    const late = lasts.filter(last => last !== 3).length
    expect(late).to.equal(0)
    await Promise.all(streams.map(stream => store.append('session', stream, 'm4', 3)))
    const wholes = await Promise.all(streams.map(async stream => texts(await store.after('session', stream, 0))))
    const whole = wholes.filter(found => found?.join() === 'm1,m2,m3,m4').length
    expect(whole).to.equal(20)
  })

  it('refuses appends while Redis is full, keeps stored events, and recovers after a drop', async () => {
    const { store } = await open({ maxmemory: '3mb', bounds: { maxBytes: 10_000_000 } })
    const message = 'x'.repeat(20_000)
    let [stored, refused] = [0, 0]
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 20; index++) {
        const outcome = await Promise.resolve(store.append('session', `stream ${index}`, message, round)).catch(
          error => error,
        )
        if (typeof outcome === 'number') stored++
        else {
          expect(isUnavailable(outcome), String(outcome)).to.equal(true)
          refused++
        }
      }
      if (refused > 0) break
    }
    const replays = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => (await store.after('session', `stream ${index}`, 0))?.length ?? 0),
    )
    const whole = replays.reduce((sum, count) => sum + count, 0)
    expect(refused).to.be.above(0)
    expect(whole).to.equal(stored)
    await store.drop('session')
    expect(await store.append('session', 'stream 0', message, 0)).to.equal(1)
  })
})

describe('Redis ACL for the event store', () => {
  it('needs only the commands that the documentation lists', async () => {
    const allowed = `~mcp-host:* -@all ${[...STORE_COMMANDS, 'eval', 'evalsha', 'info'].map(name => `+${name}`).join(' ')}`
    const redis = await startRedis({ acl: [`mcp on >secret ${allowed}`] })
    const { connection } = await startRedisHost({ url: redis.url, username: 'mcp', password: 'secret' })
    const store = createRedisEventStore(connection, { ...BOUNDS, maxEvents: 2 })
    await fill(store, 4)
    await store.shared?.claim('session', 'stream', { epoch: 1, facts: 'node' })
    await store.shared?.open('session', 'stream', { epoch: 1, facts: 'node' }, 4)
    expect(numbers(await store.after('session', 'stream', 2))).to.deep.equal([3, 4])
    await store.drop('session', 'stream')
    await store.drop('session')
  })
})
