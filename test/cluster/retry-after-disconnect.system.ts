// Tests retries after a lost connection: Redis registered a request, but the node answered 503, and the client retries
// at another node.
import { expect } from 'chai'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { stopHosts } from '../support/start-host.ts'
import { openAtAll, startCluster, startNode } from './support/nodes.ts'

const config = () => ({ toolsets: { all: [] }, routes: { '/': { toolsets: 'all' } } })

/** For the node that opened the one session there is, as it stays when the answer to that node is lost. */
function register(redis: RedisServer, request: string) {
  const [record = ''] = redis.cli('KEYS', '*:session')
  const [home = ''] = redis.cli('HGET', record, '.home')
  redis.cli('HSET', record.replace(/session$/, 'use'), `.r:${request}`, home)
}

describe('retry of a request whose Redis response was lost', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('is served by the next node', async () => {
    const cluster = await startCluster(2, config)
    const [a, b] = await openAtAll(cluster)
    for (const request of ['6', '7']) register(cluster.redis, request)
    expect((await b?.request('ping', {}, { id: 6 }))?.status).to.equal(200)
    expect((await a.request('ping', {}, { id: 7 })).status).to.equal(200)
  })

  it('is served in a batch with a request of a third node', async () => {
    const cluster = await startCluster(3, config)
    const [a, b, c] = await openAtAll(cluster, 0, { revision: '2025-03-26' })
    for (const session of [b, c]) await session?.request('ping')
    const [use = ''] = cluster.redis.cli('KEYS', '*:r:use')
    const nodes = cluster.redis.cli('HKEYS', use).flatMap(name => (name.startsWith('.n:') ? [name.slice(3)] : []))
    nodes.forEach((node, index) => {
      cluster.redis.cli('HSET', use, `.r:${index}`, node)
    })
    const batch = nodes.map((_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
    const answer = await a.send(batch)
    expect(answer.status).to.equal(200)
    expect(JSON.parse(answer.text)).to.have.length(3)
  })

  it('gets 503 with Retry-After until the first node confirms that it does not run', async () => {
    const redis = await startRedis()
    let isCut = false
    const line = await startCuttingProxy(redis.url, { cutter: () => () => (isCut ? 0 : undefined) })
    const nodes = [
      await startNode({ url: line.url.replace('http:', 'redis:') }, config()),
      await startNode(redis, config()),
    ]
    const [, b] = await openAtAll({ nodes })
    register(redis, '6')
    isCut = true
    line.cutAll()
    const refused = await b?.request('ping', {}, { id: 6 })
    expect(refused?.status).to.equal(503)
    expect(Number(refused?.headers['retry-after'])).to.be.above(0)
    isCut = false
    for (let status = 503; status === 503; ) status = (await b?.request('ping', {}, { id: 6 }))?.status ?? 0
    expect((await b?.request('ping', {}, { id: 6 }))?.status).to.equal(200)
    await stopHosts()
    await line.stop()
  })
})
