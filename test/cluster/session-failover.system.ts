import { expect } from 'chai'
import { type Config, defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { startRedis, stopRedis } from '../support/redis-server.ts'
import { nextMessage, openSession, postMessage, readRest } from '../support/session-client.ts'
import { connectSse, openSseSession } from '../support/sse-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { type NodeProcess, startNode as startProcess } from './support/node-process.ts'
import { at, needsStore, startCluster, startNode } from './support/nodes.ts'
import { createRemotePuppet } from './support/remote-puppet.ts'

const SECRETS = 'a secret for tests that is long enough to be one'
const where = (index: number) => defineTool({ name: 'where', handler: () => `node ${index}` })

describe('session failover', () => {
  let dying: NodeProcess | undefined
  before(function () {
    needsStore(this)
  })
  afterEach(stopHosts)
  after(async () => {
    await dying?.kill()
    await stopRedis()
  })

  it('restores a session at the next node and calls runSession with the restored flag', async () => {
    const trace: string[] = []
    const runSession =
      (index: number): NonNullable<Config['runSession']> =>
      async ({ user, headers }, { id, restored }, run) => {
        trace.push(
          `begins at ${index}, restored: ${restored}, ${user?.subject}, ${headers['x-team']}, ${headers.cookie}`,
        )
        expect(id).to.be.a('string')
        await run()
        trace.push(`ends at ${index}`)
      }
    const configured: string[] = []
    const cluster = await startCluster(2, index => ({
      toolsets: { all: [where(index)], gold: [defineTool({ name: 'gold', handler: () => 'gold' })] },
      routes: { '/': { toolsets: 'all' } },
      configureSession({ user }, session) {
        configured.push(`${index} ${session.id?.length}`)
        if (user?.claims['tier'] === 'gold') session.addToolset('gold')
      },
      runSession: runSession(index),
    }))
    const headers = { 'X-User': 'ann', 'X-Tier': 'gold', 'X-Team': 'blue', Cookie: 'secret=1' }
    const session = await openSession(`${cluster.nodes[0]?.url}/`, { headers })
    // Tokens of hers, without the other headers that the session was opened with.
    const other = at(`${cluster.nodes[1]?.url}/`, session, { 'X-User': 'ann', 'X-Tier': 'gold' })
    expect((await other.request('tools/call', { name: 'gold' })).message.result.content[0].text).to.equal('gold')
    const weaker = at(`${cluster.nodes[1]?.url}/`, session, { 'X-User': 'ann' })
    expect((await weaker.request('tools/call', { name: 'gold' })).message.error.code).to.equal(-32602)
    expect(trace).to.deep.equal(['begins at 0, restored: false, ann, blue, secret=1'])
    await cluster.nodes[0]?.host.close({ grace: 0 })
    expect(trace.slice(1)).to.deep.equal(['ends at 0'])
    // It is known of a node for a second that it was there.
    const begins = 'begins at 1, restored: true, ann, blue, undefined'
    await eventually(begins, async () => {
      expect((await other.request('ping')).status).to.equal(200)
      return trace.includes(begins)
    })
    expect((await other.end()).status).to.equal(204)
    expect(trace.slice(2)).to.deep.equal([begins, 'ends at 1'])
    expect(configured).to.deep.equal(['0 76', '1 76', '1 76', '1 76'])
  })

  it('answers a call of a killed node with node-lost', async () => {
    const redis = await startRedis()
    const env = { REDIS_URL: redis.url, MCP_HOST_SECRETS: SECRETS }
    const config = 'test/cluster/support/journey.config.ts'
    const one = await startProcess({ config, port: 0, env })
    dying = one
    const toolsets = { all: [where(1)] }
    const two = await startNode(redis, { secrets: [SECRETS], toolsets, routes: { '/mcp': { toolsets: 'all' } } })
    const puppet = createRemotePuppet([one])
    const session = await openSession(`${one.url}/mcp`)
    const other = at(`${two.url}/mcp`, session)
    const call = await session.call('puppet', { name: 'doomed' }, { id: 'doomed' })
    const { ctx } = await puppet.call('doomed')
    ctx.progress(1)
    const [primed, first] = [await call.next(), await call.next()]
    const follower = await other.get({ 'Last-Event-ID': String(first?.id) })
    ctx.progress(2)
    expect((await nextMessage(follower)).params.progress).to.equal(2)
    await one.kill()
    // As after 15 seconds in which nobody heard of it; test/slow/node-lost.slow.ts waits for them.
    redis.cli('DEL', ...redis.cli('KEYS', '*:node:*'))
    const error = await nextMessage(follower)
    expect(error).to.deep.include({ id: 'doomed' })
    expect(error.error.data).to.deep.equal({ reason: 'node-lost', retryable: true })
    expect(await follower.next()).to.equal(undefined)
    const again = await readRest(await other.get({ 'Last-Event-ID': String(primed?.id) }))
    expect(again.map(({ params, error }) => params?.progress ?? error.data.reason)).to.deep.equal([1, 2, 'node-lost'])
    expect((await other.request('ping')).status).to.equal(200)
  })
})

describe('HTTP+SSE in a cluster', () => {
  before(function () {
    needsStore(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  const start = () =>
    startCluster(2, index => ({
      toolsets: { all: [where(index)] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-sse': {} },
    }))

  it('accepts messages at any node and responds on the one stream', async () => {
    const { nodes } = await start()
    const [one, two] = nodes.map(({ url }) => url) as [string, string]
    const client = await openSseSession(`${one}/`)
    const post = (url: string, message: object) => postMessage(new URL(client.endpoint, url).href, message)
    for (const [id, url] of [two, one, two].entries()) {
      expect((await post(url, { id, method: 'tools/call', params: { name: 'where' } })).status).to.equal(202)
      const answer = await client.next()
      expect([answer.id, answer.result.content[0].text]).to.deep.equal([id, 'node 0'])
    }
    expect((await post(two, { nonsense: true })).status).to.equal(400)
    client.stream.drop()
    const { status } = await eventually(
      'the end of the session',
      () => post(two, { method: 'notifications/initialized' }),
      answer => answer.status !== 202,
    )
    expect(status).to.equal(404)
  })

  it('opens at one node and initializes at another', async () => {
    const { nodes } = await start()
    const [one, two] = nodes.map(({ url }) => url) as [string, string]
    const client = await connectSse(`${one}/`)
    const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    const { status } = await postMessage(new URL(client.endpoint, two).href, { id: 1, method: 'initialize', params })
    expect(status).to.equal(202)
    expect((await client.next()).result.protocolVersion).to.equal('2024-11-05')
    client.stream.drop()
  })
})
