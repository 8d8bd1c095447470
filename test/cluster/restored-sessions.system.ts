// Tests sessions that nodes restore from their copies after Redis has lost all data.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { nextMessage, type SessionClient } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { startLine, stopCuttable } from './support/lossy-redis.ts'
import { openAtAll, startNode } from './support/nodes.ts'

const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })
const config = { toolsets: { all: [page] }, routes: { '/': { toolsets: 'all' } } }

const isReady = async (node: StartedHost) => (await fetch(`${node.url}/readyz`)).status === 200

describe('sessions restored after Redis lost all data', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopCuttable)

  for (const first of ['older', 'newer'] as const) {
    it(`keep a subscription that only one node knew, if the ${first} copy is restored first`, async () => {
      const redis = await startRedis()
      const lines = [await startLine(redis), await startLine(redis)] as const
      const [newer, older] = [await startNode(lines[0].cuttable, config), await startNode(lines[1].cuttable, config)]
      const [a, b] = (await openAtAll({ nodes: [newer, older] })) as readonly [SessionClient, SessionClient]
      await b.request('ping')
      lines[1].cut()
      await eventually(
        'a node without Redis',
        () => isReady(older),
        ready => !ready,
      )
      await a.request('resources/subscribe', { uri: 'page://one' })
      lines[0].cut()
      await eventually(
        'both nodes without Redis',
        () => isReady(newer),
        ready => !ready,
      )
      redis.cli('FLUSHALL')
      const order = [...(first === 'older' ? [lines[1], lines[0]] : lines)]
      for (const line of order) {
        line.mend()
        const node = line === lines[0] ? newer : older
        await eventually('a node with Redis', () => isReady(node), Boolean)
        await eventually('restored sessions', () => node.log.some(({ code }) => code === 'MH1421'), Boolean)
      }
      for (const session of [b, a]) {
        const stream = await session.get()
        newer.host.runtime.resourceUpdated('page://one')
        expect((await nextMessage(stream)).params.uri).to.equal('page://one')
        stream.drop()
      }
    })
  }
})
