// Rate limit counts in Redis: shared across nodes, round trips, and behaviour during a Redis outage.
import { expect } from 'chai'
import { definePlugin } from '../../../core/internal.ts'
import {
  REDIS_SECTIONS,
  type RedisConnection,
  type RedisSections,
  redisConnection,
} from '../../../plugins/families/redis/index.ts'
import { eventually } from '../../support/eventually.ts'
import { needsRedis, type RedisServer, startRedis, stopRedis } from '../../support/redis-server.ts'
import { stopHosts } from '../../support/start-host.ts'
import { atOnce, startLimited, statuses } from './limited-host.ts'

const startNode = (redis: RedisServer, options: object, plugins: object = {}, commandTimeout = '5s') =>
  startLimited(
    { store: 'redis', ...options },
    { redis: { url: redis.url, commandTimeout }, plugins: { health: {}, ...plugins } },
  )

const readiness = async (url: string) => {
  const response = await fetch(`${url}/health`)
  return { status: response.status, body: (await response.json()) as { checks: Record<string, boolean> } }
}

describe('rate-limit: counts in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('enforce exact limits across two nodes for addresses, users, clients and tools', async () => {
    const redis = await startRedis()
    const limits = { address: '400/1h', user: '60/1h', client: '40/1h', tools: { 'search*': '20/1h' } }
    // A slow machine is no Redis that is away.
    const start = () => startNode(redis, limits, {}, '15s')
    const nodes = [await start(), await start()]
    const at = (index: number) => nodes[index % 2] as (typeof nodes)[number]
    const all = (headers: Record<string, string>, tool: string, count: number) =>
      atOnce(count, index => at(index).call(headers, tool))
    const ann = { 'X-User': 'ann' }
    expect(statuses(await all(ann, 'search_web', 25))).to.deep.equal({ 200: 20, 429: 5 })
    expect(statuses(await all(ann, 'say', 85))).to.deep.equal({ 200: 35, 429: 50 })
    const client = { 'X-User': 'bob', 'X-Client': 'desktop' }
    expect(statuses(await all(client, 'say', 90))).to.deep.equal({ 200: 40, 429: 50 })
    expect(statuses(await all({}, 'say', 60))).to.deep.equal({ 200: 60 })
    const left = 400 - 25 - 85 - 90 - 60
    const everybody = atOnce(left + 50, index => at(index).call({ 'X-User': `user-${index % 9}` }))
    expect(statuses(await everybody)).to.deep.equal({ 200: left, 429: 50 })
  })

  it('use expiring keys without user names', async () => {
    const redis = await startRedis()
    const limits = { address: '9/1h', user: '9/1h', client: '9/1h', tools: { say: '9/1h' } }
    const { call } = await startNode(redis, limits, {}, '15s')
    await call({ 'X-User': 'ann@acme.example', 'X-Issuer': 'https://i.example', 'X-Client': 'desktop' })
    const keys = redis.cli('--scan').filter(key => key.endsWith(':r:count'))
    expect(keys).to.have.length(4)
    expect(keys.join(' ')).not.to.match(/acme|i\.example|desktop/)
    for (const key of keys) expect(Number(redis.cli('PTTL', key)[0])).to.be.within(3_500_000, 3_600_000)
  })

  it('take one round trip each for address, user with client, and tool', async () => {
    const redis = await startRedis()
    const connections: RedisConnection[] = []
    const watching = definePlugin<Record<never, never>, RedisSections>({
      sections: REDIS_SECTIONS,
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup: host => void connections.push(redisConnection(host)),
    })
    const limits = { address: '900/1h', user: '900/1h', client: '900/1h', tools: { say: '900/1h', '*': '900/1h' } }
    const { call } = await startNode(redis, limits, { watching: watching() }, '15s')
    await call({ 'X-User': 'ann', 'X-Client': 'desktop' })
    const counts: number[] = []
    for (let calls = 0; calls < 15; calls++) {
      const before = connections[0]?.roundTrips ?? 0
      await call({ 'X-User': 'ann', 'X-Client': 'desktop' })
      counts.push((connections[0]?.roundTrips ?? 0) - before)
    }
    // A heartbeat is no request's.
    expect(counts.toSorted((a, b) => a - b)[7]).to.equal(3)
  })

  it('are skipped during a Redis outage with one warning, and resume afterwards', async () => {
    const redis = await startRedis()
    const { url, call, log } = await startNode(redis, { address: '5/1h', tools: { say: '5/1h' } })
    expect((await call()).headers.get('ratelimit')).to.match(/r=4/)
    await redis.kill()
    const answers = await atOnce(30, () => call())
    expect(statuses(answers)).to.deep.equal({ 200: 30 })
    expect((await readiness(url)).status).to.equal(200)
    const told = () => log.filter(({ message }) => message === 'rate limits cannot be counted in Redis')
    expect(told()).to.have.length(1)
    expect(told()[0]).to.include({ onFailure: 'open', means: 'requests pass uncounted' })
    await redis.start()
    await eventually('requests to be counted', async () => (await call()).headers.get('ratelimit') !== null)
    expect(log.filter(({ message }) => message === 'rate limits are counted in Redis again')).to.have.length(1)
    expect(statuses(await atOnce(10, () => call()))).to.have.property('429')
  })

  it('are skipped while Redis hangs', async () => {
    const redis = await startRedis()
    const { call } = await startNode(redis, { address: '2/1h' })
    await call()
    redis.pause()
    try {
      expect(statuses(await atOnce(8, () => call()))).to.deep.equal({ 200: 8 })
    } finally {
      redis.resume()
    }
  })

  it('refuse with 503 during an outage with `closed`, and the host is not ready', async () => {
    const redis = await startRedis()
    const { url, call, log } = await startNode(redis, { address: '9/1h', onFailure: 'closed' })
    expect((await call()).status).to.equal(200)
    await redis.kill()
    const answers = await atOnce(10, () => call())
    expect(statuses(answers)).to.deep.equal({ 503: 10 })
    const [{ headers, message } = { headers: new Headers(), message: undefined }] = answers
    expect(headers.get('retry-after')).to.equal('2')
    expect(message.error.data).to.deep.equal({ reason: 'rate-limit-unavailable', retryable: true })
    const { status, body } = await readiness(url)
    expect([status, body.checks['redis']]).to.deep.equal([503, false])
    expect(log.filter(({ message: said }) => said === 'rate limits cannot be counted in Redis')).to.have.length(1)
    await redis.start()
    await eventually('an answer', async () => (await call()).status === 200)
  })
})
