// Tasks in Redis beyond the contract of its store: memory and round trips, key names, the index and ACL.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { expect } from 'chai'
import { redisBus, redisStore } from '../../plugins/families/redis/index.ts'
import {
  createTaskStore,
  type NewTask,
  type TaskLimits,
  type TaskStore,
} from '../../plugins/families/task-store/index.ts'
import { eventually } from '../support/eventually.ts'
import { type RedisHost, startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const MINUTE = 60_000
const MIB = 1_048_576
const KEYS = 'mcp-host:{tasks}:'
const WIDE: TaskLimits = { openPerHolder: 10_000, keptPerHolder: 10_000, kept: 100_000 }
const OFFER = { queue: 'jobs', running: 10_000, runningPerHolder: 10_000 }

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

const opened: Array<() => void> = []
after(() => {
  for (const close of opened) close()
})

function storeOn({ connection, plugin }: RedisHost, mostBytes = 256 * MIB) {
  const { log, clock } = plugin
  return createTaskStore(redisStore(connection), { log, clock, mostBytes })
}

async function storeWithBus(host: RedisHost) {
  const { connection, plugin } = host
  const bus = redisBus(connection, plugin)
  await bus.start()
  opened.push(() => void bus.close())
  return createTaskStore(redisStore(connection), { log: plugin.log, clock: plugin.clock, bus })
}

/** As each of `count` nodes has it. */
async function open(count = 1, mostBytes?: number) {
  const redis = await startRedis()
  const hosts = await Promise.all(Array.from({ length: count }, () => startRedisHost({ url: redis.url })))
  const stores = hosts.map(host => storeOn(host, mostBytes))
  return { redis, stores, store: stores[0] as TaskStore }
}

let made = 0
const newTask = (given: Partial<NewTask> = {}): NewTask => ({
  ...{ id: `task-${++made}`, holder: 'ann', owner: 'ann', queue: 'jobs', ttl: MINUTE, body: '{}' },
  ...given,
})

async function connectTo({ url }: RedisServer) {
  const client = createClient({ url })
  client.on('error', () => undefined)
  await client.connect()
  opened.push(() => client.destroy())
  return client
}

/** The tasks, and the sorted sets and counters that describe them. */
async function indexOf(client: Awaited<ReturnType<typeof connectTo>>) {
  const records = await client.keys(`${KEYS}r:t:*`)
  const tasks = await Promise.all(records.map(key => client.hGetAll(key)))
  const sets = async (pattern: string) => {
    const keys = await client.keys(`${KEYS}s:${pattern}`)
    return (await Promise.all(keys.map(key => client.zRange(key, 0, -1)))).flat().sort()
  }
  const counted = async (pattern: string) => {
    const keys = await client.keys(`${KEYS}r:${pattern}`)
    const bytes = await Promise.all(keys.map(key => client.hGet(key, '.bytes')))
    return bytes.reduce((sum, one) => sum + Number(one ?? 0), 0)
  }
  const inState = (...states: string[]) =>
    tasks
      .filter(task => states.includes(task['.state'] ?? ''))
      .map(task => task['.id'] ?? '')
      .sort()
  return {
    all: tasks.map(task => task['.id'] ?? '').sort(),
    queued: inState('queued'),
    running: inState('running'),
    open: inState('queued', 'running'),
    sets: {
      ends: await sets('ends'),
      all: await sets('all:*'),
      open: await sets('open:*'),
      queued: await sets('queued:*'),
      lanes: await sets('lane:*'),
      running: await sets('running:*'),
      busy: await sets('busy:*'),
      leases: await sets('leases'),
    },
    bytes: [
      tasks.reduce((sum, task) => sum + Number(task['.bytes']), 0),
      await counted('sums'),
      await counted('bytes:*'),
    ],
  }
}

async function expectWhole(client: Awaited<ReturnType<typeof connectTo>>) {
  const { all, queued, running, open, sets, bytes } = await indexOf(client)
  expect(sets).to.deep.equal({
    ends: all,
    all,
    // Expired tasks are removed with the next task of their holder.
    open: sets.open,
    queued,
    lanes: queued,
    running,
    busy: running,
    leases: running,
  })
  expect(open.filter(id => !sets.open.includes(id)).length, 'open tasks that are not counted').to.be.at.most(
    open.length,
  )
  expect(sets.open.filter(id => !open.includes(id))).to.deep.equal([])
  expect(new Set(bytes).size, String(bytes)).to.equal(1)
  return { q: queued.length, r: running.length, e: all.length - open.length }
}

describe('Task store in Redis: cost', () => {
  for (const size of [10, 20_000]) {
    it(`limits the bytes that Redis uses: bodies of ${size} bytes`, async () => {
      const bytes = MIB
      const { redis, store } = await open(1, bytes)
      const used = () => Number(/^used_memory_dataset:(\d+)/m.exec(redis.cli('INFO', 'memory').join('\n'))?.[1])
      await store.create(newTask({ ttl: 1 }), WIDE)
      const before = used()
      let kept = 0
      let outcome = 'created'
      while (outcome === 'created' && kept * size <= bytes) {
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            store.create(newTask({ holder: `h${index}`, body: 'x'.repeat(size) }), WIDE),
          ),
        )
        kept += outcomes.filter(one => one === 'created').length
        outcome = outcomes.at(-1) ?? ''
      }
      const held = used() - before
      expect(outcome).to.equal('full')
      expect(held / bytes).to.be.within(0.3, 1.1)
      const [last] = await store.list('h0', 1)
      const run = await store.claim([OFFER], MINUTE)
      expect(last).to.not.equal(undefined)
      expect(
        await store.end({ id: run?.id ?? '', fence: 1 }, { state: 'completed', outcome: 'y'.repeat(size) }, 1),
      ).to.equal(true)
    })
  }

  it('takes three round trips per claim and two per end', async () => {
    const redis = await startRedis()
    const host = await startRedisHost({ url: redis.url })
    const store = storeOn(host)
    for (let index = 0; index < 200; index++) await store.create(newTask({ holder: `holder ${index % 20}` }), WIDE)
    const before = host.connection.roundTrips
    for (let index = 0; index < 50; index++) {
      const run = await store.claim([OFFER], MINUTE)
      await store.end({ id: run?.id ?? '', fence: 1 }, { state: 'completed', outcome: 'done' }, MINUTE)
    }
    const trips = host.connection.roundTrips - before
    expect(trips).to.be.within(250, 255)
  })
})

describe('Task store in Redis: keys', () => {
  it('are short and contain no ids, holders or queues', async () => {
    const { redis, store } = await open()
    const long = newTask({
      id: 'i'.repeat(5_000),
      holder: `https://issuer.example|ann@example.com ${'{}'.repeat(40)}`,
      queue: `/route tool ${'q'.repeat(5_000)}`,
      body: 'the body',
    })
    await store.create(long, WIDE)
    await store.claim([{ ...OFFER, queue: long.queue }], MINUTE)
    await store.create({ ...long, id: 'second' }, WIDE)
    const keys = redis.cli('KEYS', '*').filter(key => key.startsWith(KEYS))
    const longest = Math.max(...keys.map(key => key.length))
    expect(longest).to.be.below(90)
    expect(keys.join(' ')).to.not.match(/ann|issuer|iiii|qqqq|second/)
    expect((await store.get(long.id))?.holder).to.equal(long.holder)
    expect(await store.list(long.holder, 10)).to.have.length(2)
  })

  it('expire without any running node', async () => {
    const { redis, store } = await open()
    const ids = Array.from({ length: 6 }, (_, index) => `left-${index}`)
    for (const id of ids) await store.create(newTask({ id, holder: id, ttl: MINUTE }), WIDE)
    await store.claim([OFFER], MINUTE)
    await store.claim([OFFER], MINUTE)
    await store.cancel('left-3')
    const client = await connectTo(redis)
    const keys = await client.keys(`${KEYS}*`)
    const lives = await Promise.all(keys.map(key => client.pTTL(key)))
    const lasting = keys.filter((_, index) => (lives[index] ?? 0) < 0)
    expect(keys.length).to.be.above(20)
    expect(lasting).to.deep.equal([])
  })
})

describe('Task store in Redis: index', () => {
  it('matches the tasks after concurrent operations on two nodes', async () => {
    const { redis, stores, store } = await open(2)
    const client = await connectTo(redis)
    const random = createSeededRandom(11)
    const bounds = { openPerHolder: 20, keptPerHolder: 30, kept: 60 }
    const id = () => `t${random.below(80)}`
    const leases: Array<{ id: string; fence: number }> = []
    const lease = () => leases[random.below(Math.max(1, leases.length))] ?? { id: id(), fence: 1 }
    const text = () => 'x'.repeat(random.below(2_000))
    const offer = () => ({ queue: `q${random.below(3)}`, running: 8, runningPerHolder: 4 })
    const begun = async (claim: ReturnType<TaskStore['claim']>) => {
      const run = await claim
      if (run) leases.push({ id: run.id, fence: run.fence })
    }
    const acts: ReadonlyArray<(one: TaskStore) => Promise<unknown>> = [
      one => {
        const ttl = random.below(4) === 0 ? 50 + random.below(200) : MINUTE
        const given = { id: id(), holder: `h${random.below(4)}`, queue: `q${random.below(3)}`, ttl, body: text() }
        return one.create(newTask(given), bounds)
      },
      one => begun(one.claim([offer(), offer()], random.below(300))),
      one => begun(one.claimLapsed(random.below(300))),
      one => one.note(lease(), text()),
      one => one.addRequest(lease(), { key: `k${random.below(3)}`, text: text() }),
      one => one.addResponses(id(), { k0: text(), k1: text() }),
      one => one.release(lease()),
      one => one.end(lease(), { state: 'completed', outcome: text() }, random.below(500)),
      one => one.cancel(id()),
      one => one.renew([lease(), lease()], random.below(300)),
      one => one.list(`h${random.below(4)}`, 10),
      one => one.depths(),
    ]
    const seen = { q: 0, r: 0, e: 0 }
    for (let round = 0; round < 15; round++) {
      await Promise.all(
        Array.from({ length: 60 }, () =>
          (acts[random.below(acts.length)] as (typeof acts)[number])(stores[random.below(2)] as TaskStore),
        ),
      )
      const states = await expectWhole(client)
      for (const state of ['q', 'r', 'e'] as const) seen[state] = Math.max(seen[state], states[state])
    }
    expect(Math.min(seen.q, seen.r, seen.e)).to.be.above(3)
    for (let index = 0; index < 80; index++) await store.cancel(`t${index}`)
    const look = async () => {
      // Removes expired tasks, which cannot be cancelled.
      await store.depths()
      return expectWhole(client)
    }
    await eventually('no open task', look, ({ q, r }) => q + r === 0)
  })

  it('is deleted with the last task, except for expiring counters', async () => {
    const { redis, store } = await open()
    const client = await connectTo(redis)
    for (let index = 0; index < 150; index++) await store.create(newTask({ ttl: 300, holder: `h${index % 7}` }), WIDE)
    await store.claim([OFFER], 50)
    const left = await eventually(
      'all of it gone',
      async () => {
        await store.depths()
        return (await client.keys(`${KEYS}*`)).map(key => key.slice(KEYS.length)).filter(key => key !== 'l:news')
      },
      keys => keys.length <= 1,
    )
    expect(left).to.deep.equal(['r:sums'])
    expect(redis.cli('HGET', `${KEYS}r:sums`, '.bytes')).to.deep.equal(['0'])
  })

  it('lets other holders run while many holders are at their limit', async () => {
    const { store } = await open()
    const offer = { queue: 'jobs', running: 1_000, runningPerHolder: 1 }
    for (let index = 0; index < 130; index++)
      for (let each = 0; each < 2; each++) await store.create(newTask({ holder: `many ${index}` }), WIDE)
    for (let index = 0; index < 130; index++) expect(await store.claim([offer], MINUTE)).to.not.equal(undefined)
    expect(await store.claim([offer], MINUTE)).to.equal(undefined)
    await store.create(newTask({ id: 'last', holder: 'last' }), WIDE)
    expect((await store.claim([offer], MINUTE))?.id).to.equal('last')
  })
})

describe('Task store in Redis: invalid data', () => {
  it('with a request count limits the cost to a hundred', async () => {
    const { redis, store } = await open()
    await store.create(newTask({ id: 'one' }), WIDE)
    const [key = ''] = redis.cli('KEYS', `${KEYS}r:t:*`)
    for (const [asked, length] of Object.entries({ 5000000: 100, '-1': 0, many: 0 })) {
      redis.cli('HSET', key, '.asked', asked)
      expect((await store.get('one'))?.requests).to.have.length(length)
    }
  })
})

describe('Redis ACL for the task store', () => {
  it('needs only the commands that the documentation lists', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/plugins/task-store-redis.md'), 'utf8')
    const [, rights = ''] = /^user mcp on >password (.*)$/m.exec(page) ?? []
    expect(rights).to.include('~mcp-host:* -@all')
    const redis = await startRedis({ acl: [`mcp on >secret ${rights}`] })
    const store = await storeWithBus(await startRedisHost({ url: redis.url, username: 'mcp', password: 'secret' }))
    const told: unknown[] = []
    store.watch(news => told.push(news))
    await store.create(newTask({ id: 'one' }), WIDE)
    await store.create(newTask({ id: 'two' }), WIDE)
    const run = await store.claim([OFFER], 1)
    const lease = { id: run?.id ?? '', fence: run?.fence ?? 0 }
    await eventually(
      'a lease that lapsed',
      () => store.claimLapsed(MINUTE),
      found => found !== undefined,
    )
    const again = { ...lease, fence: lease.fence + 1 }
    expect(await store.renew([again], MINUTE)).to.deep.equal([3])
    expect((await store.getSummary(lease.id))?.owner).to.equal('ann')
    expect(await store.note(again, 'half')).to.equal(true)
    expect(await store.addRequest(again, { key: 'k', text: 'x' })).to.equal(true)
    expect(await store.addResponses(lease.id, { k: 'y' })).to.equal(1)
    expect(await store.release(again)).to.equal(true)
    expect(await store.end(again, { state: 'failed' }, 1)).to.equal(false)
    for (const id of ['one', 'two']) expect(await store.cancel(id)).to.equal(true)
    expect(await store.list('ann', 10)).to.have.length(2)
    await store.create(newTask({ id: 'short', ttl: 100 }), WIDE)
    await eventually(
      'what is past its time gone',
      () => store.depths(),
      depths => depths.length === 0,
    )
    await eventually(
      'word of it',
      () => told.length,
      count => count >= 8,
    )
  })
})
