// Task store while Redis is killed, hangs, is full, or the connection is cut: no lost, duplicate or late task.

import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import { redisBus, redisStore } from '../../plugins/families/redis/index.ts'
import {
  createTaskStore,
  type NewTask,
  type TaskChange,
  type TaskLimits,
  type TaskStore,
} from '../../plugins/families/task-store/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServerSettings, startRedis } from '../support/redis-server.ts'
import { repeatDuring } from '../support/repeat-during.ts'

const MINUTE = 60_000
const WIDE: TaskLimits = { openPerHolder: 10_000, keptPerHolder: 10_000, kept: 100_000 }
const OFFER = { queue: 'jobs', running: 10_000, runningPerHolder: 10_000 }

before(function () {
  needsRedis(this)
})
const closing: Array<() => void> = []
after(async () => {
  for (const close of closing) close()
  await stopHostsAndRedis()
})

async function connect(url: string, commandTimeout = 20_000) {
  const { connection, plugin } = await startRedisHost({ url, commandTimeout })
  await whenHealthy(connection)
  const bus = redisBus(connection, plugin)
  await bus.start()
  closing.push(() => void bus.close())
  const { log, clock } = plugin
  const store = createTaskStore(redisStore(connection), { log, clock, bus })
  return { connection, store }
}

async function open(settings: RedisServerSettings = {}, commandTimeout?: number) {
  const redis = await startRedis(settings)
  return { redis, ...(await connect(redis.url, commandTimeout)) }
}

const newTask = (id: string, more: Partial<NewTask> = {}): NewTask => ({
  ...{ id, holder: 'ann', owner: 'ann', queue: 'jobs', ttl: 10 * MINUTE, body: `body of ${id}` },
  ...more,
})

const isUnavailable = (error: unknown): error is HostError => HostError.is(error) && error.kind === 'unavailable'

/** What it gives; `refused` where it could not be asked. */
async function attempt<Value>(promise: Promise<Value>): Promise<Value | 'refused'> {
  return promise.catch(error => {
    if (!isUnavailable(error)) throw error
    return 'refused' as const
  })
}

/** Repeats a call until Redis answers it. */
const insist = async <Value>(act: () => Promise<Value>): Promise<Value> =>
  (await eventually(
    'an answer of Redis',
    () => attempt(act()),
    answer => answer !== 'refused',
  )) as Value

const everything = (store: TaskStore): ReadonlyArray<() => Promise<unknown>> => {
  const lease = { id: 'one', fence: 1 }
  return [
    () => store.create(newTask('one'), WIDE),
    () => store.get('one'),
    () => store.getSummary('one'),
    () => store.list('ann', 10),
    () => store.claim([OFFER], MINUTE),
    () => store.claimLapsed(MINUTE),
    () => store.renew([lease], MINUTE),
    () => store.note(lease, 'x'),
    () => store.addRequest(lease, { key: 'k', text: 'x' }),
    () => store.addResponses('one', { k: 'x' }),
    () => store.release(lease),
    () => store.end(lease, { state: 'completed' }, MINUTE),
    () => store.cancel('one'),
    () => store.depths(),
  ]
}

describe('Task store in Redis: cut connection', () => {
  it('leases each task to one worker, even if a claim response was lost', async () => {
    const { redis, store } = await open()
    const count = 200
    for (let index = 0; index < count; index++) await store.create(newTask(`t${index}`), WIDE)
    let packets = 0
    const proxies = await Promise.all(
      [17, 23].map(every =>
        startCuttingProxy(redis.url, { cutter: () => () => (++packets % every === 0 ? 2 : undefined) }),
      ),
    )
    const nodes = await Promise.all(proxies.map(({ url }) => connect(url.replace('http:', 'redis:'))))
    const given = new Map<string, number>()
    const tally = { ended: 0, twice: 0 }
    const work = async (one: TaskStore) => {
      for (let claims = 0; claims <= count; claims++) {
        const task = await insist(() => one.claim([OFFER], MINUTE))
        if (!task) return
        given.set(task.id, (given.get(task.id) ?? 0) + 1)
        const ended = await insist(() =>
          one.end({ id: task.id, fence: task.fence }, { state: 'completed', outcome: task.body }, MINUTE),
        )
        if (ended) tally.ended++
      }
    }
    await Promise.all(nodes.flatMap(({ store: one }) => [work(one), work(one)]))
    tally.twice = [...given.values()].filter(times => times > 1).length
    const cuts = proxies.reduce((sum, proxy) => sum + proxy.cuts, 0)
    const left = await store.depths()
    await Promise.all(proxies.map(proxy => proxy.stop()))
    expect(cuts).to.be.above(20)
    expect([given.size, tally.twice, tally.ended]).to.deep.equal([count, 0, count])
    expect(left).to.deep.equal([])
  })

  it('creates each task at most once', async () => {
    const { redis, store } = await open()
    let packets = 0
    const proxy = await startCuttingProxy(redis.url, { cutter: () => () => (++packets % 11 === 0 ? 2 : undefined) })
    const { store: cut } = await connect(proxy.url.replace('http:', 'redis:'))
    const tally = { created: 0, unknown: 0 }
    for (let index = 0; index < 200; index++) {
      const outcome = await attempt(cut.create(newTask(`t${index}`), WIDE))
      const there = (await store.get(`t${index}`)) !== undefined
      if (outcome === 'created') {
        tally.created++
        expect(there, `t${index}, which was acknowledged`).to.equal(true)
      } else if (there) tally.unknown++
    }
    const kept = await store.list('ann', 1_000)
    await proxy.stop()
    expect(kept).to.have.length(tally.created + tally.unknown)
    expect(proxy.cuts).to.be.above(10)
    expect(tally.created).to.be.above(150)
  })
})

describe('Task store in Redis: killed Redis', () => {
  it('keeps every acknowledged task, and each ends once', async () => {
    const { redis, store, connection } = await open({ persistent: true })
    const { store: other } = await connect(redis.url)
    const told: Array<TaskChange | undefined> = []
    other.watch(news => told.push(news))
    const acknowledged: string[] = []
    let index = 0
    const ended = new Map<string, number>()
    const create = async () => {
      const id = `t${index++}`
      if ((await attempt(store.create(newTask(id), WIDE))) === 'created') acknowledged.push(id)
      // Operations that are refused at once would keep the processor busy.
      else await whenHealthy(connection)
    }
    const runOne = async () => {
      const task = await insist(() => other.claim([OFFER], MINUTE))
      if (task && (await insist(() => other.end(task, { state: 'completed' }, 10 * MINUTE))))
        ended.set(task.id, (ended.get(task.id) ?? 0) + 1)
      return task !== undefined
    }
    const killThrice = async () => {
      for (const most of [50, 100, 150]) {
        await eventually(
          'some acknowledged',
          () => acknowledged.length,
          count => count >= most,
        )
        await redis.kill()
        await whenHealthy(connection, false)
        await redis.start()
        await whenHealthy(connection)
      }
    }
    await repeatDuring(create, () => repeatDuring(runOne, killThrice))
    for (let left = index; left > 0 && (await runOne()); left--);
    const lost: string[] = []
    for (const id of acknowledged) if ((await store.get(id))?.state !== 'completed') lost.push(id)
    const twice = [...ended.values()].filter(times => times > 1).length
    expect(lost).to.deep.equal([])
    expect(twice).to.equal(0)
    const heard = new Set(told.flatMap(news => (news?.state === 'completed' ? [news.id] : [])))
    expect(told.filter(news => !news).length + heard.size).to.be.at.least(1)
  })

  it('answers every operation with 503 and Retry-After during the outage', async () => {
    const { redis, store, connection } = await open({}, 3_000)
    await redis.kill()
    await whenHealthy(connection, false)
    for (const error of await Promise.all(everything(store).map(act => rejectionOf(act())))) {
      expect(isUnavailable(error), String(error)).to.equal(true)
      expect((error as HostError).headers).to.have.property('Retry-After')
    }
    await redis.start()
    await whenHealthy(connection)
    for (const act of everything(store)) await act()
  })

  it('reports lost leases and missed events after data loss, and continues empty', async () => {
    const { redis, store, connection } = await open()
    const told: Array<TaskChange | undefined> = []
    store.watch(news => told.push(news))
    for (let index = 0; index < 20; index++) await store.create(newTask(`t${index}`), WIDE)
    const run = await store.claim([OFFER], MINUTE)
    const lease = { id: run?.id ?? '', fence: run?.fence ?? 0 }
    await eventually(
      'all told',
      () => told.length,
      count => count >= 21,
    )
    const before = told.length
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    await whenHealthy(connection)
    const missed = await eventually(
      'word that something was missed',
      () => told.slice(before).filter(news => news === undefined).length,
      count => count > 0,
    )
    expect(missed).to.be.above(0)
    expect(await store.renew([lease], MINUTE)).to.deep.equal([undefined])
    expect(await store.end(lease, { state: 'completed' }, MINUTE)).to.equal(false)
    expect(await store.list('ann', 100)).to.deep.equal([])
    expect(await store.create(newTask('t1'), WIDE)).to.equal('created')
    await eventually(
      'word of the new one',
      () => told.at(-1)?.id,
      id => id === 't1',
    )
    expect((await store.claim([OFFER], MINUTE))?.id).to.equal('t1')
  })
})

describe('Task store in Redis: hanging Redis', () => {
  it('does not execute refused operations later', async () => {
    const { redis, store, connection } = await open({}, 3_000)
    for (let index = 0; index < 10; index++) await store.create(newTask(`there-${index}`), WIDE)
    const runs = [await store.claim([OFFER], MINUTE), await store.claim([OFFER], MINUTE)]
    redis.pause()
    const refused = await Promise.all([
      ...Array.from({ length: 20 }, (_, index) => attempt(store.create(newTask(`late-${index}`), WIDE))),
      ...Array.from({ length: 5 }, (_, index) => attempt(store.cancel(`there-${index + 5}`))),
      ...runs.map(run => attempt(store.end({ id: run?.id ?? '', fence: 1 }, { state: 'completed' }, MINUTE))),
      ...Array.from({ length: 3 }, () => attempt(store.claim([OFFER], MINUTE))),
    ])
    redis.resume()
    await whenHealthy(connection)
    const all = await store.list('ann', 100)
    const states = all.map(({ state }) => state)
    expect(refused.filter(answer => answer === 'refused')).to.have.length(30)
    expect(all).to.have.length(10)
    expect(states.filter(state => state === 'running')).to.have.length(2)
    expect(states.filter(state => state === 'queued')).to.have.length(8)
  })
})

describe('Task store in Redis: full Redis', () => {
  it('refuses new tasks, while running tasks renew leases, end, release and cancel', async () => {
    const { store } = await open({ maxmemory: '6mb' })
    for (let index = 0; index < 6; index++) await store.create(newTask(`first-${index}`), WIDE)
    const runs = []
    for (let index = 0; index < 4; index++) runs.push(await store.claim([OFFER], MINUTE))
    const leases = runs.map(run => ({ id: run?.id ?? '', fence: run?.fence ?? 0 }))
    let stored = 0
    let refused = 0
    while (refused < 10 && stored < 1_000) {
      const outcome = await attempt(store.create(newTask(`t${stored}`, { body: 'x'.repeat(20_000) }), WIDE))
      if (outcome === 'refused') refused++
      else stored++
    }
    expect(refused).to.equal(10)
    const [one, two, three, four] = leases as [
      (typeof leases)[0],
      (typeof leases)[0],
      (typeof leases)[0],
      (typeof leases)[0],
    ]
    expect(await store.renew(leases, MINUTE))
      .to.have.length(4)
      .and.not.include(undefined)
    expect(await store.end(one, { state: 'completed', outcome: 'y'.repeat(5_000) }, MINUTE)).to.equal(true)
    expect(await store.release(two)).to.equal(true)
    expect(await store.cancel(three.id)).to.equal(true)
    expect((await store.claim([OFFER], MINUTE))?.id).to.equal(two.id)
    expect((await store.get(four.id))?.state).to.equal('running')
    await attempt(store.note(four, 'still here'))
    for (let index = 0; index < stored; index++) await store.cancel(`t${index}`)
    const [depth] = await store.depths()
    expect([depth?.queued, depth?.running]).to.deep.equal([2, 2])
  })
})
