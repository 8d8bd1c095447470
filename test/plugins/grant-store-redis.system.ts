// Grants in Redis beyond the grant store contract: limits for pending grants, the index, Redis Cluster and ACL.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { GrantStore } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { createRedisGrantStore, type PendingBounds } from '../../plugins/grant-store-redis/store.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { serviceContract } from '../support/contracts/index.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const MINUTE = 60_000
const MIB = 1_048_576
const INDEX = 'mcp-host:grants:{pending}:'

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

/** As each of `count` nodes has it. */
async function open(bounds: Partial<PendingBounds> = {}, count = 1) {
  const redis = await startRedis()
  const hosts = await Promise.all(Array.from({ length: count }, () => startRedisHost({ url: redis.url })))
  const stores = hosts.map(({ connection }) =>
    createRedisGrantStore(connection, { entries: 50_000, bytes: 128 * MIB, ...bounds }),
  )
  return { redis, stores, store: stores[0] as GrantStore, hosts }
}

const names = (kind: string, count: number) => Array.from({ length: count }, (_, index) => `${kind}:${index}`)

/** All at once, by turns at each node. */
const atAll = (
  stores: readonly GrantStore[],
  keys: readonly string[],
  act: (store: GrantStore, key: string) => unknown,
) => Promise.all(keys.map((key, index) => act(stores[index % stores.length] as GrantStore, key)))

const present = async (store: GrantStore, keys: readonly string[]) =>
  (await Promise.all(keys.map(key => store.get(key)))).filter(text => text !== undefined).length

/** What the index says, and what is there. */
function indexOf(redis: RedisServer) {
  const listed = (part: string) => redis.cli('ZRANGE', `${INDEX}${part}`, '0', '-1').sort()
  return {
    there: redis.cli('KEYS', `${INDEX}*:pending:*`).sort(),
    ordered: listed('order'),
    ending: listed('ends'),
    // The sum has no name, and redis-cli shows an empty line, which is left out here.
    sized: redis.cli('HKEYS', `${INDEX}sizes`).sort(),
    sum: Number(redis.cli('HGET', `${INDEX}sizes`, '')[0] ?? 0),
  }
}

describe('Grant store in Redis: limit of pending logins', () => {
  it('keeps the newest pending logins across two nodes, and all granted entries', async () => {
    const { redis, stores, store } = await open({ entries: 100 }, 2)
    const granted = names('granted', 300)
    await atAll(stores, granted, (one, key) => one.set(key, 'x'.repeat(100), MINUTE))
    const pending = names('pending', 3_000)
    for (let from = 0; from < pending.length; from += 20)
      await atAll(stores, pending.slice(from, from + 20), (one, key) => one.add(key, 'y'.repeat(100), MINUTE))
    const lasting = await present(store, granted)
    const left = redis.cli('KEYS', `${INDEX}*:pending:*`).length
    expect(lasting).to.equal(300)
    expect(left).to.equal(100)
    expect(await present(store, pending.slice(-100))).to.equal(100)
  })

  for (const size of [10, 1_000, 20_000]) {
    it(`limits the bytes that Redis uses: entries of ${size} bytes`, async () => {
      const bytes = 2 * MIB
      const { redis, stores, store } = await open({ bytes }, 2)
      const used = () => Number(/^used_memory_dataset:(\d+)/m.exec(redis.cli('INFO', 'memory').join('\n'))?.[1])
      const before = used()
      const pending = names(`pending:${size}`, Math.ceil((2 * bytes) / (size + 700)))
      for (let from = 0; from < pending.length; from += 500)
        await atAll(stores, pending.slice(from, from + 500), (one, key) => one.set(key, 'y'.repeat(size), MINUTE))
      const held = used() - before
      const left = await present(store, pending)
      expect(left).to.be.above(90).and.below(pending.length)
      expect(held / bytes).to.be.within(0.3, 1.3)
    })
  }

  it('counts sets by the size of their members', async () => {
    const { redis, store } = await open({ bytes: 20_000 })
    await store.set('pending:first', 'x', MINUTE)
    for (let index = 0; index < 300; index++)
      await store.join('pending:set', `member ${index}`.padEnd(50, 'x'), MINUTE, 200)
    expect(await store.members('pending:set')).to.have.length(200)
    expect(await store.get('pending:first')).to.equal('x')
    for (let index = 0; index < 20; index++) await store.set(`pending:${index}`, 'y'.repeat(300), MINUTE)
    expect(await store.members('pending:set')).to.deep.equal([])
    const { sum } = indexOf(redis)
    expect(sum).to.be.above(0).and.below(20_000)
  })

  it('evicts by the last write', async () => {
    const { store } = await open({ entries: 3 })
    for (const name of ['a', 'b', 'c']) await store.set(`pending:${name}`, name, MINUTE)
    await store.replace('pending:a', 'a', 'a', MINUTE)
    await store.set('pending:d', 'd', MINUTE)
    const left = await Promise.all(['a', 'b', 'c', 'd'].map(name => store.get(`pending:${name}`)))
    expect(left).to.deep.equal(['a', undefined, 'c', 'd'])
  })

  it('does not count expired entries', async () => {
    const { redis, store } = await open({ entries: 60 })
    await store.set('pending:lasting', 'x', MINUTE)
    for (const key of names('pending', 50)) await store.set(key, 'x', 200)
    await eventually(
      'only one left',
      () => redis.cli('KEYS', `${INDEX}*:pending:*`).length,
      left => left === 1,
    )
    for (const key of names('pending:next', 59)) await store.set(key, 'x', MINUTE)
    expect(await present(store, ['pending:lasting'])).to.equal(1)
    expect(redis.cli('ZCARD', `${INDEX}order`)).to.deep.equal(['60'])
  })

  it('refuses an entry larger than the limit, and keeps the existing entry', async () => {
    const { store } = await open({ bytes: 10_000 })
    await store.set('pending:one', 'small', MINUTE)
    await store.join('pending:one', 'small', MINUTE, 10)
    const large = 'x'.repeat(10_000)
    for (const act of [
      () => store.set('pending:one', large, MINUTE),
      () => store.add('pending:new', large, MINUTE),
      () => store.replace('pending:one', 'small', large, MINUTE),
      () => store.join('pending:one', large, MINUTE, 10),
    ]) {
      const error = await rejectionOf(act())
      expect(HostError.is(error) && error.kind, String(error)).to.equal('unavailable')
    }
    expect(await store.get('pending:one')).to.equal('small')
    expect(await store.get('pending:new')).to.equal(undefined)
    expect(await store.members('pending:one')).to.deep.equal(['small'])
    await store.set('granted:one', large, MINUTE)
  })
})

describe('Grant store in Redis: index of pending entries', () => {
  it('is deleted with the last entry, and no key is left', async () => {
    const { redis, store } = await open()
    await store.set('pending:a', 'a', MINUTE)
    await store.join('pending:b', 'b', MINUTE, 10)
    await store.set('granted:a', 'a', MINUTE)
    await store.join('granted:b', 'b', MINUTE, 10)
    await store.take('pending:a')
    await store.leave('pending:b', 'b')
    await store.take('granted:a')
    await store.leave('granted:b', 'b')
    expect(redis.cli('KEYS', '*')).to.deep.equal([])
  })

  it('matches the entries after concurrent operations on two nodes', async () => {
    const { redis, stores, store } = await open({ entries: 30, bytes: 40_000 }, 2)
    const random = createSeededRandom(7)
    const key = () => `pending:${random.below(60)}`
    const text = () => 'x'.repeat(random.below(3_000))
    const acts: ReadonlyArray<(one: GrantStore) => Promise<unknown>> = [
      one => one.set(key(), text(), MINUTE),
      one => one.set(key(), text(), 0),
      one => one.add(key(), text(), MINUTE),
      one => one.take(key()),
      one => one.delete(key(), key()),
      one => one.replace('pending:1', 'x', text(), MINUTE),
      one => one.join(key(), `member ${random.below(9)}`, MINUTE, 1 + random.below(5)),
      one => one.leave(key(), `member ${random.below(9)}`),
    ]
    for (let round = 0; round < 60; round++) {
      await Promise.all(
        Array.from({ length: 50 }, () => {
          const one = stores[random.below(2)] as GrantStore
          return (acts[random.below(acts.length)] as (one: GrantStore) => Promise<unknown>)(one)
        }),
      )
    }
    const { there, ordered, ending, sized, sum } = indexOf(redis)
    const sizes = await Promise.all(there.map(name => Number(redis.cli('HGET', `${INDEX}sizes`, name)[0])))
    expect(there).to.have.length.within(5, 30)
    expect(ordered).to.deep.equal(there)
    expect(ending).to.deep.equal(there)
    expect(sized).to.deep.equal(there)
    expect(sum)
      .to.equal(sizes.reduce((all, size) => all + size, 0))
      .and.be.at.most(40_000)
    await store.delete(...names('pending', 60))
    expect(indexOf(redis)).to.deep.equal({ there: [], ordered: [], ending: [], sized: [], sum: 0 })
  })
})

describe('Grant store in Redis: set with 1,000 members', () => {
  it('takes one round trip per join', async () => {
    const { store, hosts } = await open()
    for (let index = 0; index < 1_000; index++)
      await store.join('granted:set', `${index}`.padStart(43, 'x'), MINUTE, 1_000)
    const connection = hosts[0]?.connection
    const before = connection?.roundTrips ?? 0
    for (let index = 0; index < 100; index++)
      await store.join('granted:set', `next ${index}`.padStart(43, 'x'), MINUTE, 1_000)
    const trips = (connection?.roundTrips ?? 0) - before
    expect(await store.members('granted:set')).to.have.length(1_000)
    expect(trips).to.be.within(100, 110)
  })
})

describe('Redis ACL for the grant store', () => {
  it('needs only the commands that the documentation lists', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/plugins/grant-store-redis.md'), 'utf8')
    const [, rights = ''] = /^user mcp on >password (.*)$/m.exec(page) ?? []
    const redis = await startRedis({ acl: [`mcp on >secret ${rights}`] })
    const { connection } = await startRedisHost({ url: redis.url, username: 'mcp', password: 'secret' })
    const store = createRedisGrantStore(connection, { entries: 2, bytes: MIB })
    for (const kind of ['pending', 'granted']) {
      for (const key of names(kind, 4)) {
        await store.set(key, 'a', MINUTE)
        await store.replace(key, 'a', 'b', MINUTE)
        await store.add(key, 'c', MINUTE)
        expect(await store.get(key)).to.equal('b')
        expect(await store.join(key, 'member', MINUTE, 10)).to.equal(1)
        expect(await store.members(key)).to.deep.equal(['member'])
        await store.leave(key, 'member')
        expect(await store.take(key)).to.equal('b')
        await store.delete(key, 'granted:other')
      }
    }
    expect(rights).to.include('~mcp-host:* -@all')
  })
})

describe('Grant store in a Redis Cluster', () => {
  let nodes: readonly RedisServer[] = []
  let spaces = 0
  before(async () => {
    nodes = await startRedisCluster()
  })
  const checks = serviceContract('grantStore', {
    shared: true,
    async open(count) {
      const settings = { cluster: nodes.map(({ url }) => url), keyPrefix: `space-${++spaces}:` }
      const hosts = await Promise.all(Array.from({ length: count }, () => startRedisHost(settings)))
      return {
        nodes: hosts.map(({ connection }) => createRedisGrantStore(connection)),
        close: async () => void (await Promise.all(hosts.map(host => host.close()))),
      }
    },
  })
  for (const { name, run } of checks) it(name, run)

  it('distributes granted entries over the slots of both nodes', async () => {
    const { connection } = await startRedisHost({ cluster: nodes.map(({ url }) => url) })
    const store = createRedisGrantStore(connection)
    for (const key of names('granted', 100)) await store.set(key, 'x', MINUTE)
    const counts = nodes.map(node => node.cli('KEYS', 'mcp-host:grants:*').length)
    for (const count of counts) expect(count).to.be.above(20)
    await store.delete(...names('granted', 100))
    expect(nodes.flatMap(node => node.cli('KEYS', 'mcp-host:grants:*'))).to.deep.equal([])
  })
})
