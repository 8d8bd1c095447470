// Grant store while Redis is killed, hangs, is full, or the connection is cut: no double use and no late writes.

import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import { createGrantStore, type GrantStore } from '../../plugins/families/grant-store/index.ts'
import { redisStore } from '../../plugins/families/redis/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, type RedisServerSettings, startRedis } from '../support/redis-server.ts'

const MINUTE = 60_000

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

async function connect(url: string, commandTimeout = 20_000) {
  const { connection } = await startRedisHost({ url, commandTimeout })
  await whenHealthy(connection)
  return { connection, store: createGrantStore(redisStore(connection)) }
}

async function open(settings: RedisServerSettings = {}, commandTimeout?: number) {
  const redis = await startRedis(settings)
  return { redis, ...(await connect(redis.url, commandTimeout)) }
}

const isUnavailable = (error: unknown): error is HostError => HostError.is(error) && error.kind === 'unavailable'

/** What it gives; `refused` where it could not be asked. */
async function attempt<Value>(promise: Promise<Value>): Promise<Value | 'refused'> {
  return promise.catch(error => {
    if (!isUnavailable(error)) throw error
    return 'refused' as const
  })
}

const BOTH = ['pending', 'granted'] as const

/** Two nodes whose lines to Redis are cut after every few packets. */
async function behindCuts(redis: RedisServer) {
  let packets = 0
  const proxies = await Promise.all(
    [11, 13].map(every =>
      startCuttingProxy(redis.url, { cutter: () => () => (++packets % every === 0 ? 2 : undefined) }),
    ),
  )
  const nodes = await Promise.all(proxies.map(({ url }) => connect(url.replace('http:', 'redis:'))))
  return {
    stores: nodes.map(({ store }) => store),
    cuts: () => proxies.reduce((sum, proxy) => sum + proxy.cuts, 0),
    stop: () => Promise.all(proxies.map(proxy => proxy.stop())),
  }
}

/** Six at once, by turns at the nodes. */
const six = <Value>(stores: readonly GrantStore[], act: (store: GrantStore, index: number) => Promise<Value>) =>
  Promise.all([0, 1, 2, 3, 4, 5].map(index => attempt(act(stores[index % stores.length] as GrantStore, index))))

describe('Grant store in Redis: cut connection', () => {
  it('takes, adds and replaces each grant at most once, with retries', async () => {
    // 120 rounds, one after the other, most of them with a line to make anew.
    const { redis, store } = await open()
    const { stores, cuts, stop } = await behindCuts(redis)
    const tally = { taken: 0, twice: 0 }
    for (let round = 0; round < 120; round++) {
      const key = `${BOTH[round % 2]}:${round}`
      await store.set(key, 'code', MINUTE)
      const taken = [...(await six(stores, one => one.take(key))), ...(await six(stores, one => one.take(key)))]
      const got = taken.filter(text => text === 'code').length
      if (got > 0) tally.taken++
      const added = await six(stores, (one, index) => one.add(`${key}-added`, `${index}`, MINUTE))
      const adders = added.filter(answer => answer === true).length
      await store.set(`${key}-replaced`, 'from', MINUTE)
      const replaced = await six(stores, (one, index) => one.replace(`${key}-replaced`, 'from', `${index}`, MINUTE))
      const replacers = replaced.filter(answer => answer === true).length
      tally.twice += [got, adders, replacers].filter(count => count > 1).length
      if (replacers === 1) expect(await store.get(`${key}-replaced`)).to.equal(`${replaced.indexOf(true)}`)
    }
    await stop()
    expect(tally.twice).to.equal(0)
    expect(cuts()).to.be.above(20)
    expect(tally.taken).to.be.above(0)
  })

  it('retries reads, so that few of them fail', async () => {
    const { redis, store } = await open()
    const { stores, cuts, stop } = await behindCuts(redis)
    await store.set('granted:one', 'x', MINUTE)
    await store.join('granted:one', 'member', MINUTE, 10)
    const read = { texts: 0, sets: 0, refused: 0 }
    for (let round = 0; round < 60; round++) {
      for (const text of await six(stores, one => one.get('granted:one'))) {
        if (text === 'refused') read.refused++
        else read.texts += text === 'x' ? 1 : 0
      }
      for (const members of await six(stores, one => one.members('granted:one'))) {
        if (members === 'refused') read.refused++
        else read.sets += members.join() === 'member' ? 1 : 0
      }
    }
    await stop()
    expect(read.texts + read.sets + read.refused).to.equal(720)
    expect(read.refused).to.be.below(cuts())
    expect(cuts()).to.be.above(0)
  })
})

describe('Grant store in Redis: killed Redis', () => {
  it('redeems each code once and keeps stored grants after the restart', async () => {
    const { redis, store, connection } = await open({ persistent: true })
    const { store: other } = await connect(redis.url)
    const keys = Array.from({ length: 300 }, (_, index) => `${BOTH[index % 2]}:${index}`)
    await Promise.all(keys.map(key => store.set(key, key, MINUTE)))
    await store.join('granted:set', 'member', MINUTE, 10)
    const given = new Map<string, number>()
    let refused = 0
    /** Until it is answered. */
    async function redeem(one: GrantStore, key: string) {
      for (;;) {
        const text = await attempt(one.take(key))
        if (text === key) given.set(key, (given.get(key) ?? 0) + 1)
        if (text !== 'refused') return
        refused++
        await whenHealthy(connection)
      }
    }
    const redeeming = (async () => {
      for (let from = 0; from < keys.length; from += 20)
        await Promise.all(keys.slice(from, from + 20).flatMap(key => [redeem(store, key), redeem(other, key)]))
    })()
    await eventually(
      'half of them redeemed',
      () => given.size,
      size => size >= 100,
    )
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    await redeeming
    const twice = [...given.values()].filter(count => count > 1).length
    expect(twice).to.equal(0)
    expect(refused).to.be.above(0)
    expect(given.size).to.be.above(250)
    expect(await store.members('granted:set')).to.deep.equal(['member'])
  })

  it('answers every operation with 503 and Retry-After during the outage', async () => {
    const { redis, store, connection } = await open({}, 3_000)
    await redis.kill()
    await whenHealthy(connection, false)
    const everything = (key: string): Promise<unknown>[] => [
      store.get(key),
      store.set(key, 'x', MINUTE),
      store.add(key, 'x', MINUTE),
      store.replace(key, 'x', 'y', MINUTE),
      store.take(key),
      store.delete(key, `${key}-other`),
      store.join('granted:set', 'x', MINUTE, 10),
      store.leave('granted:set', 'x'),
      store.members('granted:set'),
    ]
    const rejections = ['pending:one', 'granted:one'].flatMap(everything).map(rejectionOf)
    for (const error of await Promise.all(rejections)) {
      expect(isUnavailable(error), String(error)).to.equal(true)
      expect((error as HostError).headers).to.have.property('Retry-After')
    }
    await redis.start()
    await whenHealthy(connection)
    expect(await store.get('granted:one')).to.equal(undefined)
    expect(await store.add('pending:one', 'x', MINUTE)).to.equal(true)
  })

  it('continues with an empty store after Redis lost all data', async () => {
    const { redis, store, connection } = await open()
    for (let index = 0; index < 20; index++) await store.set(`pending:${index}`, 'x', MINUTE)
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    await whenHealthy(connection)
    expect(await store.take('pending:1')).to.equal(undefined)
    await store.set('pending:2', 'y', MINUTE)
    expect(await store.get('pending:2')).to.equal('y')
  })
})

describe('Grant store in Redis: hanging Redis', () => {
  it('does not execute refused operations later, and executes a retry', async () => {
    const { redis, store, connection } = await open({}, 3_000)
    const keys = Array.from({ length: 40 }, (_, index) => `${BOTH[index % 2]}:${index}`)
    await Promise.all(keys.map(key => store.set(`${key}-there`, 'x', MINUTE)))
    redis.pause()
    const refused = await Promise.all(
      keys.flatMap(key => [
        attempt(store.set(key, 'late', MINUTE)),
        attempt(store.take(`${key}-there`)),
        attempt(store.join(`granted:${key}`, 'late', MINUTE, 10)),
      ]),
    )
    redis.resume()
    await whenHealthy(connection)
    const texts = await Promise.all(keys.map(key => store.get(key)))
    const members = await Promise.all(keys.map(key => store.members(`granted:${key}`)))
    const there = await Promise.all(keys.map(key => store.take(`${key}-there`)))
    const late = texts.filter(text => text !== undefined).length + members.flat().length
    const left = there.filter(text => text === 'x').length
    expect(refused.filter(answer => answer === 'refused')).to.have.length(120)
    expect(late).to.equal(0)
    expect(left).to.equal(40)
  })
})

describe('Grant store in Redis: full Redis', () => {
  it('refuses writes, but reads, takes and deletes entries, which frees memory', async () => {
    const { store } = await open({ maxmemory: '4mb' })
    let stored = 0
    let refused = 0
    const text = 'x'.repeat(20_000)
    while (refused < 10 && stored < 1_000) {
      const answer = await attempt(store.set(`${BOTH[stored % 2]}:${stored}`, text, MINUTE))
      if (answer === 'refused') refused++
      else stored++
    }
    expect(refused).to.equal(10)
    const keys = Array.from({ length: stored }, (_, index) => `${BOTH[index % 2]}:${index}`)
    const read = (await Promise.all(keys.map(key => store.get(key)))).filter(found => found === text).length
    const [first = '', second = '', ...others] = keys
    const taken = [await store.take(first), await store.take(second)].filter(found => found === text).length
    await store.delete(...others)
    await eventually(
      'what is kept again',
      () => attempt(store.set('pending:again', text, MINUTE)),
      answer => answer !== 'refused',
    )
    expect(read).to.equal(stored)
    expect(taken).to.equal(2)
  })
})
