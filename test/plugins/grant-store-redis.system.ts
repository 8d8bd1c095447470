// Grants in Redis beyond the contract of its store: limits for pending grants, their order, Redis Cluster and ACL.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { createGrantStore, type GrantStore } from '../../plugins/families/grant-store/index.ts'
import { redisStore } from '../../plugins/families/redis/index.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const MINUTE = 60_000
const MIB = 1_048_576
const KIB = 1_024
const PENDING = 'mcp-host:{grants:pending}:'

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

/** As each of `count` nodes has it. */
async function open(pendingBytes?: number, count = 1) {
  const redis = await startRedis()
  const hosts = await Promise.all(Array.from({ length: count }, () => startRedisHost({ url: redis.url })))
  const limits = pendingBytes === undefined ? {} : { pendingBytes }
  const stores = hosts.map(({ connection }) => createGrantStore(redisStore(connection), limits))
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

/** The pending texts, and the members of their order. */
function pendingIn(redis: RedisServer) {
  const prefix = `${PENDING}r:`
  const there = redis.cli('KEYS', `${prefix}*`).map(key => key.slice(prefix.length))
  return { there: there.sort(), ordered: redis.cli('ZRANGE', `${PENDING}s:order`, '0', '-1').sort() }
}

describe('Grant store in Redis: limit of pending logins', () => {
  it('keeps the newest pending logins across two nodes, and all granted entries', async () => {
    const { redis, stores, store } = await open(100 * KIB, 2)
    const granted = names('granted', 100)
    await atAll(stores, granted, (one, key) => one.set(key, 'x'.repeat(100), MINUTE))
    const pending = names('pending', 600)
    for (let from = 0; from < pending.length; from += 20)
      await atAll(stores, pending.slice(from, from + 20), (one, key) => one.add(key, 'y'.repeat(100), MINUTE))
    const lasting = await present(store, granted)
    const left = pendingIn(redis).there.length
    expect(lasting).to.equal(100)
    expect(left).to.be.within(95, 100)
    // Concurrent writes have no order.
    expect(await present(store, pending.slice(-120))).to.be.within(95, 100)
  })

  for (const size of [10, 20_000]) {
    it(`limits the bytes that Redis uses: entries of ${size} bytes`, async () => {
      const bytes = MIB
      const { redis, stores, store } = await open(bytes, 2)
      const used = () => Number(/^used_memory_dataset:(\d+)/m.exec(redis.cli('INFO', 'memory').join('\n'))?.[1])
      const before = used()
      const pending = names(`pending:${size}`, Math.ceil((2 * bytes) / (size + 700)))
      for (let from = 0; from < pending.length; from += 500)
        await atAll(stores, pending.slice(from, from + 500), (one, key) => one.set(key, 'y'.repeat(size), MINUTE))
      const held = used() - before
      const left = await present(store, pending)
      expect(left).to.be.above(40).and.below(pending.length)
      expect(held / bytes).to.be.within(0.2, 1.3)
    })
  }

  it('evicts by the last write', async () => {
    const { store } = await open(3 * KIB)
    for (const name of ['a', 'b', 'c']) {
      await store.set(`pending:${name}`, name, MINUTE)
      await pause(2)
    }
    await store.replace('pending:a', 'a', 'a', MINUTE)
    await store.set('pending:d', 'd', MINUTE)
    const left = await Promise.all(['a', 'b', 'c', 'd'].map(name => store.get(`pending:${name}`)))
    expect(left).to.deep.equal(['a', undefined, 'c', 'd'])
  })
})

describe('Grant store in Redis: order of pending entries', () => {
  it('is deleted with the last entry, and no key is left', async () => {
    const { redis, store } = await open()
    await store.set('pending:a', 'a', MINUTE)
    await store.set('granted:a', 'a', MINUTE)
    await store.join('granted:b', 'b', MINUTE, 10)
    await store.take('pending:a')
    await store.take('granted:a')
    await store.leave('granted:b', 'b')
    expect(redis.cli('KEYS', '*')).to.deep.equal([])
  })

  it('matches the entries after concurrent operations on two nodes', async () => {
    const { redis, stores, store } = await open(40 * KIB, 2)
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
    ]
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 50 }, () => {
          const one = stores[random.below(2)] as GrantStore
          return (acts[random.below(acts.length)] as (one: GrantStore) => Promise<unknown>)(one)
        }),
      )
    }
    const { there, ordered } = pendingIn(redis)
    expect(there).to.have.length.within(5, 40)
    expect(ordered).to.have.length.within(5, 40)
    expect(ordered.filter(name => name.startsWith('pending:'))).to.deep.equal(there)
    await store.delete(...names('pending', 60))
    expect(pendingIn(redis)).to.deep.equal({ there: [], ordered: [] })
  })
})

describe('Grant store in Redis: set with 100 members', () => {
  it('takes one round trip per join', async () => {
    const { store, hosts } = await open()
    for (let index = 0; index < 100; index++) await store.join('granted:set', `${index}`.padStart(43, 'x'), MINUTE, 100)
    const connection = hosts[0]?.connection
    const before = connection?.roundTrips ?? 0
    for (let index = 0; index < 40; index++)
      await store.join('granted:set', `next ${index}`.padStart(43, 'x'), MINUTE, 100)
    const trips = (connection?.roundTrips ?? 0) - before
    expect(await store.members('granted:set')).to.have.length(100)
    expect(trips).to.be.within(40, 45)
  })
})

describe('Redis ACL for the grant store', () => {
  it('needs only the commands that the documentation lists', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/plugins/grant-store-redis.md'), 'utf8')
    const [, rights = ''] = /^user mcp on >password (.*)$/m.exec(page) ?? []
    const redis = await startRedis({ acl: [`mcp on >secret ${rights}`] })
    const { connection } = await startRedisHost({ url: redis.url, username: 'mcp', password: 'secret' })
    const store = createGrantStore(redisStore(connection), { pendingBytes: 2 * KIB })
    for (const kind of ['pending', 'granted']) {
      for (const key of names(kind, 4)) {
        await store.set(key, 'a', MINUTE)
        await store.replace(key, 'a', 'b', MINUTE)
        await store.add(key, 'c', MINUTE)
        expect(await store.get(key)).to.equal('b')
        if (kind === 'granted') {
          expect(await store.join(key, 'member', MINUTE, 10)).to.equal(1)
          expect(await store.members(key)).to.deep.equal(['member'])
          await store.leave(key, 'member')
        }
        expect(await store.take(key)).to.equal('b')
        await store.delete(key, 'granted:other')
      }
    }
    expect(rights).to.include('~mcp-host:* -@all')
  })
})

describe('Grant store in a Redis Cluster', () => {
  it('distributes granted entries over the slots of both nodes', async () => {
    const nodes = await startRedisCluster()
    const { connection } = await startRedisHost({ cluster: nodes.map(({ url }) => url) })
    const store = createGrantStore(redisStore(connection))
    for (const key of names('granted', 100)) await store.set(key, 'x', MINUTE)
    const counts = nodes.map(node => node.cli('KEYS', 'mcp-host:{grants:*').length)
    for (const count of counts) expect(count).to.be.above(20)
    await store.delete(...names('granted', 100))
    expect(nodes.flatMap(node => node.cli('KEYS', 'mcp-host:{grants:*'))).to.deep.equal([])
  })
})
