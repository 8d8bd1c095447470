// Tests concurrent resource subscriptions of one session at several nodes.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import type { RpcMessage } from '../support/rpc.ts'
import type { SessionClient } from '../support/session-client.ts'
import { type Cluster, needsStore, openAtAll, startCluster } from './support/nodes.ts'

const NODES = 3
const PAGES = 120
const ROUNDS = 3
/** Sent at the same time. */
const BATCH = 24
const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })
const uriOf = (index: number) => `page://${index}`

/** The pages that a change of all of them is told of, on a new stream of one node. */
async function heardAt({ nodes }: Cluster, session: SessionClient): Promise<Set<string>> {
  const stream = await session.get()
  for (let index = 0; index < PAGES; index++) nodes[0]?.host.runtime.resourceUpdated(uriOf(index))
  nodes[0]?.host.runtime.resourceUpdated('page://last')
  const told = await stream.until(({ message }) => message?.params?.uri === 'page://last')
  stream.drop()
  const uriIn = (message: RpcMessage | undefined) => message?.params?.uri as string
  return new Set(told.map(({ message }) => uriIn(message)).filter(uri => uri !== undefined))
}

describe('concurrent resource subscriptions at several nodes', () => {
  before(function () {
    needsStore(this)
  })
  after(stopHostsAndRedis)

  it('are all active at every node, except unsubscribed ones', async () => {
    const cluster = await startCluster(NODES, { toolsets: { all: [page] }, routes: { '/': { toolsets: 'all' } } })
    let missed = 0
    let wrong = 0
    for (let round = 0; round < ROUNDS; round++) {
      const sessions = await openAtAll(cluster)
      const ask = (method: string, index: number, turn = index) =>
        sessions[turn % NODES]?.request(`resources/${method}`, { uri: uriOf(index) })
      await sessions[0].request('resources/subscribe', { uri: 'page://last' })
      for (let first = 0; first < PAGES; first += BATCH) {
        const subscribing = Array.from({ length: BATCH }, (_, index) => ask('subscribe', first + index))
        // One of the batch before is given up meanwhile, at another node.
        await Promise.all([...subscribing, first > 0 && ask('unsubscribe', first - BATCH, first + 1)])
      }
      const givenUp = (index: number) => index % BATCH === 0 && index < PAGES - BATCH
      for (const session of sessions) {
        const heard = await heardAt(cluster, session)
        for (let index = 0; index < PAGES; index++) {
          if (heard.has(uriOf(index)) && givenUp(index)) wrong++
          else if (!heard.has(uriOf(index)) && !givenUp(index)) missed++
        }
      }
    }
    expect({ missed, wrong }).to.deep.equal({ missed: 0, wrong: 0 })
  })
})
