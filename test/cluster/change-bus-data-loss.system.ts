// Tests that a node detects missed changes after Redis lost its data twice while the node was disconnected.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { needsRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { listen, nextMessage } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { keepKeys, startCuttable, startLine, stopCuttable } from './support/lossy-redis.ts'
import { startNode } from './support/nodes.ts'

const [FIRST, SECOND] = ['page://first', 'page://second']
const page = (uri: string) => defineResource({ name: uri, uri, handler: () => 'text' })
const change = defineTool({
  name: 'change',
  input: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] },
  handler({ uri }, { host }) {
    host.resourceUpdated(uri)
    return 'done'
  },
})
const config = {
  toolsets: { all: [change, page(FIRST), page(SECOND)] },
  routes: { '/': { toolsets: 'all', listen: true } },
}

/** Resolves when Redis has acknowledged the change. */
const publish = ({ url }: StartedHost, uri: string) =>
  modern(`${url}/`, 'tools/call', { name: 'change', arguments: { uri } })

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
    await publish(a, FIRST)
    expect(await heard()).to.equal(FIRST)
    cut()
    redis.cli('FLUSHALL')
    mend()
    // Everything may have changed.
    expect([await heard(), await heard()]).to.deep.equal([FIRST, SECOND])
    cut()
    await publish(a, FIRST)
    redis.cli('FLUSHALL')
    await publish(a, SECOND)
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
          await publish(a, FIRST)
          expect(await heard()).to.equal(FIRST)
        }
        const lose = keepKeys(redis, '*{bus}:changes', '*{bus}:count')
        cut()
        await publish(a, SECOND)
        // A failover to a replica that has not received the last change.
        if (isFirst) redis.cli('DEL', 'mcp-host:{bus}:changes')
        lose()
        mend()
        if (next === 'reconnects') {
          own.cut()
          own.mend()
        } else await publish(a, FIRST)
        expect([await heard(), await heard()]).to.deep.equal([FIRST, SECOND])
      })
})
