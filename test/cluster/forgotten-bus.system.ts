// Tests that a node detects missed changes after Redis lost its data twice while the node was disconnected.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { listen, nextMessage } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { startNode } from './support/nodes.ts'

const [FIRST, SECOND] = ['page://first', 'page://second']
const page = (uri: string) => defineResource({ name: uri, uri, handler: () => 'text' })
const config = {
  toolsets: { all: [page(FIRST), page(SECOND)] },
  routes: { '/': { toolsets: 'all', listen: true } },
}

describe('change bus after data loss in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  after(stopHostsAndRedis)

  it('notifies a disconnected node that it missed changes', async () => {
    const redis = await startRedis()
    let isCut = false
    const line = await startCuttingProxy(redis.url, { cutter: () => () => (isCut ? 0 : undefined) })
    const cut = () => {
      isCut = true
      line.cutAll()
    }
    const [a, b] = [
      await startNode(redis, config),
      await startNode({ url: line.url.replace('http:', 'redis:') }, config),
    ]
    const stream = await listen(`${b.url}/`, { resourceSubscriptions: [FIRST, SECOND] })
    await nextMessage(stream)
    const heard = async () => (await nextMessage(stream)).params.uri
    const publish = async (uri: string) => {
      a.host.runtime.resourceUpdated(uri)
      await eventually(
        'one change on the bus',
        () => redis.cli('XLEN', 'mcp-host:{bus}:changes')[0],
        length => length === '1',
      )
    }

    await publish(FIRST)
    expect(await heard()).to.equal(FIRST)
    cut()
    redis.cli('FLUSHALL')
    isCut = false
    // Everything may have changed.
    expect([await heard(), await heard()]).to.deep.equal([FIRST, SECOND])
    cut()
    await publish(FIRST)
    redis.cli('FLUSHALL')
    await publish(SECOND)
    isCut = false
    expect([await heard(), await heard()]).to.have.members([FIRST, SECOND])
    stream.drop()
    await stopHosts()
    await line.stop()
  })
})
