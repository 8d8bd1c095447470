import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import {
  REDIS_SECTIONS,
  type RedisConnection,
  type RedisSections,
  redisConnection,
} from '../../plugins/families/redis/index.ts'
import { needsRedis, stopRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { at, startCluster } from './support/nodes.ts'

/** A plugin that shows the test the connection of its host. */
const watching = (connections: RedisConnection[]) =>
  definePlugin<Record<never, never>, RedisSections>({
    sections: REDIS_SECTIONS,
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => void connections.push(redisConnection(host)),
  })()

describe('Redis round trips', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('tools/call in a session takes at most two at any node', async () => {
    const connections: RedisConnection[] = []
    const counts: number[] = []
    let inHandler = 0
    const tool = defineTool({
      name: 'count',
      handler() {
        inHandler = connections.reduce((sum, { roundTrips }) => sum + roundTrips, 0)
        return 'counted'
      },
    })
    const cluster = await startCluster(2, {
      toolsets: { all: [tool] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { watching: watching(connections) },
    })
    const session = await openSession(`${cluster.nodes[0]?.url}/`)
    const total = () => connections.reduce((sum, { roundTrips }) => sum + roundTrips, 0)
    const calls = 40
    const before: number[] = []
    for (const { url } of cluster.nodes) await at(`${url}/`, session).request('ping')
    const began = performance.now()
    for (let call = 0; call < calls; call++) {
      const start = total()
      const { status } = await at(`${cluster.nodes[call % 2]?.url}/`, session).request('tools/call', { name: 'count' })
      expect(status).to.equal(200)
      before.push(inHandler - start)
      counts.push(total() - start)
    }
    const quarters = Math.ceil((performance.now() - began) / 250)
    // Heartbeats and the use of sessions, told four times a second, are no call's: on a fast machine most calls see none of them.
    const usual = counts.toSorted((a, b) => a - b)[Math.floor(calls / 10)]
    console.log(
      `${calls} calls at 2 nodes: ${before.toSorted((a, b) => a - b)[calls / 2]} round trip before the handler, ` +
        `${usual} in all; with what nodes tell by the clock ${counts.reduce((sum, count) => sum + count, 0)} in all`,
    )
    expect(Math.min(...before)).to.equal(1)
    expect(usual).to.be.at.most(2)
    const told = 2 * cluster.nodes.length * quarters
    expect(counts.filter(count => count > 2).length, 'calls that met a heartbeat').to.be.at.most(told)
  })

  it('a forged session id or one of another user takes none', async () => {
    const connections: RedisConnection[] = []
    const cluster = await startCluster(1, {
      toolsets: { all: [] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { watching: watching(connections) },
    })
    const url = `${cluster.nodes[0]?.url}/`
    const session = await openSession(url, { headers: { 'X-User': 'ann' } })
    const [other] = [await openSession(url, { headers: { 'X-User': 'ann' } })]
    await other.end()
    const last = session.id.endsWith('A') ? 'B' : 'A'
    const forged = { ...session, id: `${session.id.slice(0, -1)}${last}` }
    let least = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < 10; attempt++) {
      const start = connections[0]?.roundTrips ?? 0
      expect((await at(url, forged, { 'X-User': 'ann' }).request('ping')).status).to.equal(404)
      expect((await at(url, session, { 'X-User': 'bob' }).request('ping')).status).to.equal(403)
      expect((await at(url, other, { 'X-User': 'bob' }).request('ping')).status).to.equal(403)
      least = Math.min(least, (connections[0]?.roundTrips ?? 0) - start)
    }
    expect(least).to.equal(0)
  })
})
