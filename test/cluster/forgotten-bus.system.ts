// Tests that a node detects missed changes after Redis lost its data twice while the node was disconnected.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { needsRedis, type RedisServer } from '../support/redis-server.ts'
import { listen, nextMessage } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { keepKeys, startCuttable, startLine, stopCuttable } from './support/losing-redis.ts'
import { startNode } from './support/nodes.ts'

const [FIRST, SECOND] = ['page://first', 'page://second']
const page = (uri: string) => defineResource({ name: uri, uri, handler: () => 'text' })
const config = {
  toolsets: { all: [page(FIRST), page(SECOND)] },
  routes: { '/': { toolsets: 'all', listen: true } },
}

/** Publishes a change and waits until Redis has `count`. */
async function publish(redis: RedisServer, { host }: StartedHost, uri: string, count: string) {
  host.runtime.resourceUpdated(uri)
  await eventually(
    'the change on the bus',
    () => redis.cli('XLEN', 'mcp-host:{bus}:changes')[0],
    length => length === count,
  )
}

async function listenAt({ url }: StartedHost) {
  const stream = await listen(`${url}/`, { resourceSubscriptions: [FIRST, SECOND] })
  await nextMessage(stream)
  return async () => (await nextMessage(stream)).params.uri
}

describe('change bus after data loss in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopCuttable)

  it('notifies a disconnected node that it missed changes', async () => {
    const { redis, cuttable, cut, mend } = await startCuttable()
    const [a, b] = [await startNode(redis, config), await startNode(cuttable, config)]
    const heard = await listenAt(b)
    await publish(redis, a, FIRST, '1')
    expect(await heard()).to.equal(FIRST)
    cut()
    redis.cli('FLUSHALL')
    mend()
    // Everything may have changed.
    expect([await heard(), await heard()]).to.deep.equal([FIRST, SECOND])
    cut()
    await publish(redis, a, FIRST, '1')
    redis.cli('FLUSHALL')
    await publish(redis, a, SECOND, '1')
    mend()
    expect([await heard(), await heard()]).to.have.members([FIRST, SECOND])
  })

  for (const isFirst of [true, false])
    for (const next of ['reconnects', 'publishes again'])
      it(`notifies a node that did not receive ${isFirst ? 'the first' : 'a'} change when its publisher ${next}`, async () => {
        const { redis, cuttable, cut, mend } = await startCuttable()
        const own = await startLine(redis)
        const [a, b] = [await startNode(own.cuttable, config), await startNode(cuttable, config)]
        const heard = await listenAt(b)
        if (!isFirst) {
          await publish(redis, a, FIRST, '1')
          expect(await heard()).to.equal(FIRST)
        }
        const lose = keepKeys(redis, '*{bus}:changes', '*{bus}:count')
        cut()
        await publish(redis, a, SECOND, isFirst ? '1' : '2')
        // A failover to a replica that has not received the last change.
        if (isFirst) redis.cli('DEL', 'mcp-host:{bus}:changes')
        lose()
        mend()
        if (next === 'reconnects') {
          own.cut()
          own.mend()
        } else a.host.runtime.resourceUpdated(FIRST)
        expect([await heard(), await heard()]).to.deep.equal([FIRST, SECOND])
      })
})
