import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { initialize, nextMessage, openSession, type SessionClient } from '../support/session-client.ts'
import { startHost } from '../support/start-host.ts'
import { at, openAtAll, startCluster, startNode } from './support/nodes.ts'

const puppet = createPuppet()
const config = {
  toolsets: {
    all: [
      puppet.tool,
      defineTool({ name: 'hello', handler: () => 'hello' }),
      defineResource({ name: 'page', uri: 'page://one', handler: () => 'one' }),
    ],
  },
  routes: { '/': { toolsets: 'all' } },
}

/** Asks until the answer is not 503. */
const untilServed = (ask: () => Promise<{ status: number }>) =>
  eventually('an answer that is not 503', ask, ({ status }) => status !== 503)

describe('cluster with Redis faults', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('unavailable Redis: answers 503 with Retry-After, finishes running calls and recovers', async () => {
    const cluster = await startCluster(2, config, await startRedis({ persistent: true }))
    const [a, b] = (await openAtAll(cluster)) as [SessionClient, SessionClient]
    const running = a.call('puppet', { name: 'through' }, { id: 1 })
    const { finish } = await puppet.call('through')
    await cluster.redis.kill()
    const refused = []
    for (const session of [a, b] as SessionClient[])
      refused.push(await session.request('tools/call', { name: 'hello' }))
    refused.push(await initialize(a.url), await a.end())
    for (const { status, headers } of refused) {
      expect(status).to.equal(503)
      expect(Number(headers['retry-after'])).to.be.above(0)
    }
    const health = await fetch(`${cluster.nodes[0]?.url}/health`)
    const { checks } = (await health.json()) as { checks: Record<string, boolean> }
    expect([health.status, checks['redis']]).to.deep.equal([503, false])
    finish('it went on')
    expect((await nextMessage(await running)).result.content[0].text).to.equal('it went on')
    await cluster.redis.start()
    const served = []
    for (const session of [a, b]) {
      served.push(await untilServed(() => session.request('tools/call', { name: 'hello' })))
    }
    expect(served.map(({ status }) => status)).to.deep.equal([200, 200])
    expect((await fetch(`${cluster.nodes[0]?.url}/health`)).status).to.equal(200)
    // What was answered meanwhile is not taken for running.
    expect((await b.request('ping', {}, { id: 1 })).status).to.equal(200)
  })

  it('data loss: keeps live sessions, their settings and streams', async () => {
    const cluster = await startCluster(3, config)
    const count = 20
    const sessions = []
    for (let index = 0; index < count; index++) sessions.push(await openAtAll(cluster, index % 3))
    const first = sessions[0] as readonly SessionClient[]
    await first[0]?.request('resources/subscribe', { uri: 'page://one' })
    const stream = await (first[1] as SessionClient).get()
    const primed = await stream.next()
    const call = await (first[0] as SessionClient).call('puppet', { name: 'survivor' }, { id: 1 })
    const { ctx, finish } = await puppet.call('survivor')
    ctx.progress(1)
    const [, seen] = [await call.next(), await call.next()]
    const ended = sessions.pop()
    await ended?.[0]?.end()

    await cluster.redis.kill()
    await cluster.redis.start()
    expect(cluster.redis.cli('DBSIZE')[0]).to.match(/^\d+$/)

    for (const [index, session] of sessions.entries()) {
      for (const offset of [2, 1, 0]) {
        const served = await untilServed(() => (session[(index + offset) % 3] as SessionClient).request('ping'))
        expect(served.status).to.equal(200)
      }
    }
    expect((await ended?.[1]?.request('ping'))?.status).to.be.oneOf([404, 503])
    cluster.nodes[2]?.host.runtime.resourceUpdated('page://one')
    let message = await nextMessage(stream)
    while (message.method !== 'notifications/resources/updated') message = await nextMessage(stream)
    stream.drop()
    const moved = await (first[2] as SessionClient).get({ 'Last-Event-ID': String(primed?.id) })
    expect(moved.status, 'what was told before the loss is gone, and said to be').to.be.oneOf([404, 200])
    call.drop()
    const resumed = await (first[1] as SessionClient).get({ 'Last-Event-ID': String(seen?.id) })
    expect(resumed.status).to.equal(200)
    ctx.progress(2)
    expect((await nextMessage(resumed)).params.progress).to.equal(2)
    finish('survived')
    expect((await nextMessage(resumed)).result.content[0].text).to.equal('survived')
    moved.drop()
  })

  it('hanging Redis: answers 503 in time and delivers each event once afterwards', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = (await openAtAll(cluster)) as [SessionClient, SessionClient]
    const call = await a.call('puppet', { name: 'patient' }, { id: 1 })
    const { ctx, finish } = await puppet.call('patient')
    ctx.progress(1)
    const seen = [await call.next(), await call.next()].map(event => event?.id)
    cluster.redis.pause()
    for (let count = 2; count <= 4; count++) ctx.progress(count)
    const refused = await Promise.all([a, b].map(session => session.request('tools/call', { name: 'hello' })))
    expect(refused.map(({ status }) => status)).to.deep.equal([503, 503])
    cluster.redis.resume()
    finish('done')
    const events = await call.rest()
    expect(events.map(({ message }) => message.params?.progress ?? message.id)).to.deep.equal([2, 3, 4, 1])
    expect((await untilServed(() => b.request('tools/call', { name: 'hello' }))).status).to.equal(200)
    const again = await (await b.get({ 'Last-Event-ID': String(seen[1]) })).rest()
    expect(again.map(({ id }) => id)).to.deep.equal(events.map(({ id }) => id))
  })

  it('one disconnected node: the other serves its sessions until it reconnects', async () => {
    const redis = await startRedis()
    const proxy = await startCuttingProxy(redis.url.replace('redis:', 'http:'))
    const one = await startNode({ url: proxy.url.replace('http:', 'redis:') }, config)
    const two = await startNode(redis, config)
    const session = await openSession(`${one.url}/`)
    const other = at(`${two.url}/`, session)
    await other.request('resources/subscribe', { uri: 'page://one' })
    const stream = await session.get()
    await stream.next()
    for (let round = 0; round < 5; round++) {
      proxy.cutAll()
      two.host.runtime.resourceUpdated('page://one')
      expect((await other.request('ping')).status).to.equal(200)
      expect((await nextMessage(stream)).params.uri).to.equal('page://one')
      expect((await untilServed(() => session.request('ping'))).status).to.equal(200)
    }
    expect(proxy.cuts).to.be.above(4)
    await proxy.stop()
  })

  it('startup fails when a node has no shared secrets', async () => {
    const start = () =>
      startHost({
        ...config,
        secrets: [],
        redis: { url: 'redis://127.0.0.1:1' },
        plugins: { 'cluster-redis': {} },
      })
    const error = (await rejectionOf(start())) as Error
    expect(error.message).to.include('openssl rand -base64 32').and.to.include('MCP_HOST_SECRETS')
  })
})

describe('Redis permissions for clusters', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('match the list in docs/plugins/cluster-redis.md', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/plugins/cluster-redis.md'), 'utf8')
    const rule = /^user mcp on >password (.*)$/m.exec(page)?.[1] ?? ''
    const redis = await startRedis({ acl: [`default off`, `mcp on >password ${rule}`, `admin on >admin ~* &* +@all`] })
    const url = redis.url.replace('redis://', 'redis://mcp:password@')
    const [one, two] = [await startNode({ url }, config), await startNode({ url }, config)]
    const session = await openSession(`${one.url}/`)
    const other = at(`${two.url}/`, session)
    await other.request('resources/subscribe', { uri: 'page://one' })
    const stream = await session.get()
    const first = await stream.next()
    two.host.runtime.resourceUpdated('page://one')
    expect((await nextMessage(stream)).params.uri).to.equal('page://one')
    const moved = await other.get({ 'Last-Event-ID': String(first?.id) })
    expect((await nextMessage(moved)).params.uri).to.equal('page://one')
    const call = await session.call('puppet', { name: 'of few rights' }, { id: 1 })
    ;(await puppet.call('of few rights')).ctx.progress(1)
    await call.next()
    await other.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    await call.rest()
    expect((await session.end()).status).to.equal(204)
    await one.host.close({ grace: 0 })
    const refusals = [...one.log, ...two.log].filter(
      ({ level, err }) => level !== 'info' && /NOPERM/.test(String((err as Error)?.cause ?? err)),
    )
    expect(refusals).to.deep.equal([])
  })
})
