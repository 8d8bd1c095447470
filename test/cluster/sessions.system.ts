import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { stopRedis } from '../support/redis-server.ts'
import { initialize, nextMessage, openSession, readRest } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { at, type Cluster, needsStore, openAtAll, startCluster } from './support/nodes.ts'

const puppet = createPuppet()
const where = (index: number) => defineTool({ name: 'where', handler: () => `node ${index}` })
const chatty = defineTool({
  name: 'chatty',
  handler(_args, { log, client }) {
    for (const level of ['debug', 'info', 'error'] as const) log(level, level)
    return `${client.revision} ${client.info?.name}`
  },
})
const config = (index: number) => ({
  toolsets: { all: [...sessionToolset, puppet.tool, chatty, where(index)] },
  routes: { '/': { toolsets: 'all' } },
})

const textOf = (message: { result: { content: [{ text: string }] } }) => message.result.content[0].text

describe('session shared by all nodes', () => {
  let cluster: Cluster
  before(async function () {
    needsStore(this)
    cluster = await startCluster(3, config)
  })
  after(stopHostsAndRedis)

  it('opens at one node and works at all nodes', async () => {
    const sessions = await openAtAll(cluster)
    for (const [index, session] of [...sessions, ...sessions].entries()) {
      const answer = await session.request('tools/call', { name: 'where' })
      expect(textOf(answer.message)).to.equal(`node ${index % 3}`)
    }
  })

  it('ends with DELETE at any node', async () => {
    const [a, b, c] = await openAtAll(cluster)
    expect((await b?.request('ping'))?.status).to.equal(200)
    const stream = await a.get()
    const running = await a.call('puppet', { name: 'until the end' })
    const { ctx } = await puppet.call('until the end')
    const cancelled = new Promise(resolve => ctx.signal.addEventListener('abort', resolve, { once: true }))
    expect((await c?.end())?.status).to.equal(204)
    for (const session of [a, b, c]) expect((await session?.request('ping'))?.status).to.equal(404)
    await cancelled
    expect(await readRest(stream)).to.deep.equal([])
    await running.rest()
  })

  it('is rejected for another user at every node, even with leaked ids', async () => {
    const ann = await openAtAll(cluster, 0, { headers: { 'X-User': 'ann' } })
    const bob = await openAtAll(cluster, 0, { headers: { 'X-User': 'bob' } })
    const call = await ann[0].call('puppet', { name: 'of ann' })
    const { ctx, finish } = await puppet.call('of ann')
    ctx.progress(1)
    const [primed, first] = [await call.next(), await call.next()]
    finish('secret of ann')
    await call.rest()
    for (const [index, { url }] of cluster.nodes.entries()) {
      const stolen = at(`${url}/`, ann[0], { 'X-User': 'bob' })
      for (const status of [
        (await stolen.request('ping')).status,
        (await stolen.get()).status,
        (await stolen.get({ 'Last-Event-ID': String(primed?.id) })).status,
        (await stolen.end()).status,
      ]) {
        expect(status).to.equal(403)
      }
      const other = bob[index]
      for (const id of [primed?.id, first?.id]) {
        const answer = await other?.get({ 'Last-Event-ID': String(id) })
        expect(answer?.status).to.equal(400)
        expect(await answer?.text()).not.to.include('secret')
      }
    }
    expect((await ann[1]?.request('ping'))?.status).to.equal(200)
  })

  it('keeps its log level and protocol version at every node', async () => {
    const [a, b] = await openAtAll(cluster)
    const said = async (session = a) => {
      const { messages } = await session.request('tools/call', { name: 'chatty' })
      return [messages.flatMap(({ params }) => (params ? [params.data] : [])), textOf(messages.at(-1))]
    }
    expect(await said()).to.deep.equal([['info', 'error'], '2025-11-25 session-client'])
    expect(await said(b)).to.deep.equal([['info', 'error'], '2025-11-25 session-client'])
    await b?.request('logging/setLevel', { level: 'error' })
    expect(await said()).to.deep.equal([['error'], '2025-11-25 session-client'])
    await a.request('logging/setLevel', { level: 'debug' })
    expect((await said(b))[0]).to.deep.equal(['debug', 'info', 'error'])
  })

  it('receives elicitation responses at another node', async () => {
    const [a, b] = await openAtAll(cluster, 0, { capabilities: { elicitation: { form: {}, url: {} } } })
    const call = await a.call('ask_the_user')
    for (const result of [{ action: 'accept', content: { name: 'Ada' } }, { action: 'accept' }]) {
      const question = await nextMessage(call)
      expect(question.method).to.equal('elicitation/create')
      expect((await b?.send({ id: question.id, result }))?.status).to.equal(202)
    }
    const answer = (await readRest(call)).at(-1)
    expect(answer.result.structuredContent).to.deep.equal({ name: 'Ada', consent: 'accept' })
  })

  it('accepts cancellation at another node', async () => {
    const [a, b] = await openAtAll(cluster)
    const call = a.call('puppet', { name: 'to be cancelled' }, { id: 'x-1' })
    const { ctx } = await puppet.call('to be cancelled')
    const aborted = new Promise(resolve =>
      ctx.signal.addEventListener('abort', () => resolve(ctx.signal.reason), { once: true }),
    )
    const params = { requestId: 'x-1', reason: 'not needed' }
    expect((await b?.send({ method: 'notifications/cancelled', params }))?.status).to.equal(202)
    expect(await aborted).to.have.property('message', 'not needed')
    expect(await readRest(await call)).to.deep.equal([])
  })

  it('rejects a request id that is running at another node until the request ends', async () => {
    const [a, b] = await openAtAll(cluster)
    const call = a.call('puppet', { name: 'once' }, { id: 7 })
    const { finish } = await puppet.call('once')
    const refused = await b?.request('ping', {}, { id: 7 })
    expect(refused?.status).to.equal(400)
    expect(refused?.message.error.message).to.include('request 7 is already running')
    finish('done')
    await (await call).rest()
    expect((await b?.request('ping', {}, { id: 7 }))?.status).to.equal(200)
  })
})

describe('limits of sessions shared by all nodes', () => {
  before(function () {
    needsStore(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('opens within the session limit of an owner across all nodes', async () => {
    const cluster = await startCluster(3, index => ({ ...config(index), sessions: { maxPerOwner: 4 } }))
    const headers = { 'X-User': 'ann' }
    const urls = Array.from({ length: 12 }, (_, index) => `${cluster.nodes[index % 3]?.url}/`)
    const statuses = (await Promise.all(urls.map(url => initialize(url, { headers })))).map(({ status }) => status)
    expect(statuses.filter(status => status === 200)).to.have.length(4)
    expect(statuses.filter(status => status === 429)).to.have.length(8)
    expect((await initialize(`${cluster.nodes[0]?.url}/`, { headers: { 'X-User': 'bob' } })).status).to.equal(200)
  })

  it('eviction of an idle session at another node, of the owner with the most', async () => {
    const cluster = await startCluster(2, index => ({ ...config(index), sessions: { maxIdle: 3 } }))
    const [first, second] = cluster.nodes.map(({ url }) => `${url}/`) as [string, string]
    const { idle } = cluster.counts
    const bob = await openSession(first, { headers: { 'X-User': 'bob' } })
    await eventually('it is told', idle)
    const ann = []
    for (const url of [first, second, first]) {
      ann.push(await openSession(url, { headers: { 'X-User': 'ann' } }))
      // Nodes tell the use of sessions four times a second, each by its own clock: one that is later is told later.
      if (ann.length < 3) await eventually('it is told', idle, told => told === 1 + ann.length)
    }
    const statusOf = async (session = bob) => (await session.request('ping')).status
    // The bounds hear of a use a moment later: until then there are four.
    await eventually('three sessions are left', cluster.counts.sessions, left => left <= 3)
    expect(await Promise.all([bob, ...ann].map(statusOf))).to.deep.equal([200, 404, 200, 200])
  })

  it('idle timeout counts use at any node', async () => {
    const cluster = await startCluster(2, index => ({ ...config(index), sessions: { idleTimeout: '8s' } }))
    const { sessions } = cluster.counts
    const [a, b] = await openAtAll(cluster)
    const stream = await (await openAtAll(cluster))[0].get()
    const kept = { id: stream.headers['mcp-session-id'] }
    await openAtAll(cluster)
    const useAndCount = async () => {
      expect((await b?.request('ping'))?.status).to.equal(200)
      return sessions()
    }
    await eventually('the unused session is gone', useAndCount, left => left === 2)
    await eventually('the session without further use is gone', sessions, left => left === 1)
    expect((await a.request('ping')).status).to.equal(404)
    const open = at(`${cluster.nodes[1]?.url}/`, { ...a, id: String(kept.id) })
    expect((await open.request('ping')).status, 'a session with an open GET elsewhere').to.equal(200)
    stream.drop()
  })
})
