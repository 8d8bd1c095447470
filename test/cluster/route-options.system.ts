// Tests cluster plugins with per-route options: separate session stores, and routes whose sessions stay at one node.
import { expect } from 'chai'
import { createPuppet } from '../support/puppet-tool.ts'
import { needsRedis, stopRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { at, startCluster } from './support/nodes.ts'

const puppet = createPuppet()
const config = {
  toolsets: { all: [puppet.tool] },
  routes: {
    '/': { toolsets: 'all' },
    '/own': { toolsets: 'all', plugins: { 'cluster-redis': { ttl: '1m' } } },
    '/alone': { toolsets: 'all', plugins: { 'cluster-redis': false as const } },
  },
}

describe('per-route options of cluster plugins', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('serves each session at every node and forwards messages to the right node', async () => {
    const { nodes } = await startCluster(2, config)
    const told: string[] = []
    for (const path of ['/', '/own']) {
      for (const [index, { url }] of nodes.entries()) {
        const session = await openSession(url + path)
        const other = at(`${nodes[1 - index]?.url}${path}`, session)
        const name = `${path} of ${index}`
        const call = await session.call('puppet', { name }, { id: 7 })
        const { ctx } = await puppet.call(name)
        const cancelled = new Promise(resolve => ctx.signal.addEventListener('abort', resolve, { once: true }))
        expect((await other.request('ping')).status).to.equal(200)
        // The same id runs already, at the node before: it is asked whether it does.
        expect((await other.request('ping', {}, { id: 7 })).status).to.equal(400)
        expect(
          (await other.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })).status,
        ).to.equal(202)
        await cancelled
        await call.rest()
        told.push(name)
      }
    }
    expect(told).to.have.length(4)
  })

  it('keeps sessions at their node on routes where the plugin is off', async () => {
    const { nodes, redis } = await startCluster(2, config)
    const before = redis.cli('KEYS', '*:session').length
    const session = await openSession(`${nodes[0]?.url}/alone`)
    expect((await session.request('ping')).status).to.equal(200)
    expect((await at(`${nodes[1]?.url}/alone`, session).request('ping')).status).to.equal(404)
    expect(redis.cli('KEYS', '*:session')).to.have.length(before)
  })

  it('startup fails when a route uses another name for the node', async () => {
    const { redis } = await startCluster(1, config)
    const plugins = {
      'transport-streamable': {},
      'session-store-redis': {},
      'change-bus-redis': {},
      'event-store-redis': {},
    }
    const routes = {
      '/': { toolsets: 'all' },
      '/own': { toolsets: 'all', plugins: { 'change-bus-redis': { commandTimeout: '2s' } } },
    }
    const started = startHost({ ...config, redis: { url: redis.url }, routes, plugins })
    const error = await started.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(String(error)).to.match(/routes\['\/own'\]/)
  })
})
