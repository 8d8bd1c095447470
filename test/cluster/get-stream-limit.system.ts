// Tests the limit of concurrent GET streams of a session that is stored in Redis.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { stopRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { needsStore, openAtAll, startCluster } from './support/nodes.ts'

const config = {
  toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
  routes: { '/': { toolsets: 'all' } },
}

const drop = (streams: readonly StreamExchange[]) => {
  for (const stream of streams) stream.drop()
}

describe('concurrent GET streams of a session in Redis', () => {
  before(function () {
    needsStore(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('are limited to three per node; closing one frees a slot', async () => {
    const cluster = await startCluster(2, config)
    const [session] = await openAtAll(cluster)
    const count = 50
    const streams = await Promise.all(Array.from({ length: count }, () => session.get()))
    const open = streams.filter(({ status }) => status === 200)
    const refused = streams.filter(({ status }) => status === 409)
    expect([open.length, refused.length]).to.deep.equal([3, count - 3])
    drop(streams)
    const next = await eventually(
      'room for another one',
      () => session.get(),
      ({ status }) => status !== 409,
    )
    expect(next.status).to.equal(200)
    drop([next])
  })

  it('do not count when Redis rejected them', async () => {
    const cluster = await startCluster(1, config)
    const session = await openSession(`${cluster.nodes[0]?.url}/`)
    cluster.redis.pause()
    const refused = await Promise.all(Array.from({ length: 6 }, () => session.get()))
    expect(new Set(refused.map(({ status }) => status))).to.deep.equal(new Set([503]))
    cluster.redis.resume()
    await eventually(
      'the session is served',
      async () => (await session.request('ping')).status,
      status => status === 200,
    )
    const streams = [await session.get(), await session.get(), await session.get()]
    expect(streams.map(({ status }) => status)).to.deep.equal([200, 200, 200])
    drop(streams)
  })
})
