import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopRedis } from '../support/redis-server.ts'
import { nextMessage, readRest, type SessionClient } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { type Cluster, needsStore, openAtAll, startCluster } from './support/nodes.ts'

const puppet = createPuppet()
const page = (name: string) => defineResource({ name, uri: `page://${name}`, handler: () => name })
const config = {
  toolsets: { all: [puppet.tool, page('one'), page('two')] },
  routes: { '/': { toolsets: 'all' } },
}

const update = ({ nodes }: Cluster, index: number, name = 'one') =>
  nodes[index]?.host.runtime.resourceUpdated(`page://${name}`)

/** Reads up to this many messages, with the ids of their events. */
async function read(stream: StreamExchange, count: number) {
  const events = []
  while (events.length < count) {
    const event = await stream.next()
    if (!event) break
    if (event.message) events.push({ id: event.id, uri: event.message.params?.uri, message: event.message })
  }
  return events
}

const watch = (session: SessionClient | undefined, name = 'one') =>
  session?.request('resources/subscribe', { uri: `page://${name}` })

describe('stream resumption across nodes', () => {
  before(function () {
    needsStore(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('delivers a change made at another node to a GET stream', async () => {
    const cluster = await startCluster(3, config)
    const [a, b, c] = await openAtAll(cluster)
    const stream = await (b as SessionClient).get()
    await stream.next()
    expect((await watch(c))?.status).to.equal(200)
    update(cluster, 0)
    expect((await nextMessage(stream)).params.uri).to.equal('page://one')
    cluster.nodes[2]?.host.runtime.tools.add(defineTool({ name: 'new', handler: () => 'new' }))
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
    await a.request('resources/unsubscribe', { uri: 'page://one' })
    await watch(a, 'two')
    update(cluster, 2, 'one')
    update(cluster, 2, 'two')
    expect((await nextMessage(stream)).params.uri).to.equal('page://two')
    stream.drop()
  })

  it('delivers each change once when a GET moves, with and without Last-Event-ID', async () => {
    const cluster = await startCluster(3, config)
    const sessions = await openAtAll(cluster)
    await watch(sessions[0])
    let stream = await sessions[0].get()
    let lastId = (await stream.next())?.id
    const rounds = 12
    let received = 0
    for (let round = 0; round < rounds; round++) {
      const next = (round + 1) % 3
      update(cluster, round % 3)
      const [first] = await read(stream, 1)
      expect(first?.uri).to.equal('page://one')
      lastId = first?.id
      stream.drop()
      // While nobody reads, at every node.
      for (let index = 0; index < 3; index++) update(cluster, index)
      update(cluster, next, 'two')
      stream = await (sessions[next] as SessionClient).get({ 'Last-Event-ID': String(lastId) })
      expect(stream.status).to.equal(200)
      update(cluster, (next + 1) % 3)
      const missed = await read(stream, 4)
      received += missed.length + 1
      lastId = missed.at(-1)?.id
      expect(missed.map(({ uri }) => uri)).to.deep.equal(Array(4).fill('page://one'))
    }
    // Nothing more than that: the next message is the next change.
    await watch(sessions[1], 'two')
    update(cluster, 2, 'two')
    expect((await read(stream, 1))[0]?.uri).to.equal('page://two')
    expect(received).to.equal(rounds * 5)
    stream.drop()
    // Without an id a client wants what comes, and what came since the last node told.
    const fresh = await sessions[0].get()
    await fresh.next()
    update(cluster, 1)
    expect((await read(fresh, 1))[0]?.uri).to.equal('page://one')
    fresh.drop()
  })

  it('only the latest GET receives events; the previous one stays open', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = await openAtAll(cluster)
    await watch(a)
    const first = await a.get()
    await first.next()
    const second = await (b as SessionClient).get()
    await second.next()
    for (let count = 0; count < 5; count++) update(cluster, count % 2)
    expect(await read(second, 5)).to.have.length(5)
    await (b as SessionClient).end()
    expect(await readRest(first)).to.deep.equal([])
    expect(await readRest(second)).to.deep.equal([])
  })

  it('resumes the stream of a call at another node, while it runs and afterwards', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = await openAtAll(cluster)
    const call = await a.call('puppet', { name: 'moving' }, { id: 'moving' })
    const { ctx, finish } = await puppet.call('moving')
    const [primed] = [await call.next()]
    ctx.progress(1)
    const [seen] = await read(call, 1)
    call.drop()
    ctx.progress(2)
    const resumed = await (b as SessionClient).get({ 'Last-Event-ID': String(seen?.id) })
    expect((await nextMessage(resumed)).params.progress).to.equal(2)
    ctx.progress(3)
    expect((await nextMessage(resumed)).params.progress).to.equal(3)
    finish('moved')
    expect((await nextMessage(resumed)).result.content[0].text).to.equal('moved')
    expect(await resumed.next()).to.equal(undefined)
    const again = await readRest(await (b as SessionClient).get({ 'Last-Event-ID': String(primed?.id) }))
    expect(again.map(({ params, id }) => params?.progress ?? id)).to.deep.equal([1, 2, 3, 'moving'])
  })

  it('ends streams at a closing node with a retry hint; they resume elsewhere', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = await openAtAll(cluster)
    const call = await a.call('puppet', { name: 'followed' }, { id: 'followed' })
    const { ctx, finish } = await puppet.call('followed')
    const primed = await call.next()
    call.drop()
    const followed = await (b as SessionClient).get({ 'Last-Event-ID': String(primed?.id) })
    ctx.progress(1)
    expect((await nextMessage(followed)).params.progress).to.equal(1)
    await cluster.nodes[1]?.host.close({ grace: 2_000 })
    expect((await followed.rest()).at(-1)).to.include({ retry: 1_000 })
    expect(await followed.whole).to.equal(true)
    const resumed = await a.get({ 'Last-Event-ID': String(primed?.id) })
    finish('elsewhere')
    expect((await readRest(resumed)).at(-1)?.result.content[0].text).to.equal('elsewhere')
  })

  it('answers calls or reports them lost at once when their node closes', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = await openAtAll(cluster, 0)
    await watch(a)
    const get = await a.get()
    const getId = (await get.next())?.id
    const answered = await a.call('puppet', { name: 'answered' }, { id: 1 })
    const lost = await a.call('puppet', { name: 'not answered' }, { id: 2 })
    const ids = [(await answered.next())?.id, (await lost.next())?.id]
    const closing = cluster.nodes[0]?.host.close({ grace: 300 })
    ;(await puppet.call('answered')).finish('in time')
    expect((await nextMessage(answered)).result.content[0].text).to.equal('in time')
    expect((await get.rest()).at(-1)?.retry).to.equal(1_000)
    await closing
    const [one, two] = await Promise.all(ids.map(id => (b as SessionClient).get({ 'Last-Event-ID': String(id) })))
    expect((await readRest(one as StreamExchange)).map(({ result }) => result?.content[0].text)).to.deep.equal([
      'in time',
    ])
    const [error, ...more] = await readRest(two as StreamExchange)
    expect(error).to.deep.include({ id: 2 })
    expect(error.error.code).to.equal(-32603)
    expect(error.error.data).to.deep.equal({ reason: 'node-lost', retryable: true })
    expect(more).to.deep.equal([])
    update(cluster, 1)
    const moved = await (b as SessionClient).get({ 'Last-Event-ID': String(getId) })
    expect((await read(moved, 1))[0]?.uri).to.equal('page://one')
    expect((await (b as SessionClient).request('ping')).status).to.equal(200)
    moved.drop()
  })

  it('rejects an unavailable stream with 404', async () => {
    const cluster = await startCluster(2, {
      ...config,
      plugins: { 'cluster-redis': { maxEvents: 2 } },
    })
    const [a, b] = await openAtAll(cluster)
    const call = await a.call('puppet', { name: 'long' }, { id: 1 })
    const { ctx, finish } = await puppet.call('long')
    for (let count = 1; count <= 5; count++) ctx.progress(count)
    finish('done')
    const events = await call.rest()
    const statuses = []
    for (const { id } of events) statuses.push((await (b as SessionClient).get({ 'Last-Event-ID': String(id) })).status)
    expect(statuses).to.deep.equal([404, 404, 404, 404, 200, 200, 200])
    const [other] = await openAtAll(cluster)
    const foreign = await other.get()
    const foreignId = String((await foreign.next())?.id)
    foreign.drop()
    for (const id of [foreignId, 'AAAAAAAAAAAAAAAA.1', 'nonsense']) {
      expect((await (b as SessionClient).get({ 'Last-Event-ID': id })).status, id).to.equal(400)
    }
  })
})
