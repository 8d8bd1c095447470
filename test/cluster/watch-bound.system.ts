// How many resources a session watches is counted in Redis, for all nodes together: what is past it is refused, not
// forgotten.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'
import { openAtAll, startCluster } from './support/nodes.ts'

const MOST = 1_000
const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })

describe('the resources that a session watches', () => {
  before(function () {
    needsRedis(this)
  })
  after(stopHostsAndRedis)

  it('are 1,000 at most, however many nodes are asked for the last of them at once', async () => {
    const cluster = await startCluster(2, { toolsets: { all: [page] }, routes: { '/': { toolsets: 'all' } } })
    const sessions = await openAtAll(cluster)
    const watch = (index: number) => sessions[index % 2]?.request('resources/subscribe', { uri: `page://${index}` })
    const [left, asked] = [10, 40]
    const [key = ''] = cluster.redis.cli('--scan', '--pattern', '*:session')
    // As if it watched that many already.
    cluster.redis.cli('HSET', key, 'wn', String(MOST - left))
    const answers = await Promise.all(Array.from({ length: asked }, (_, index) => watch(index)))
    const done = answers.filter(answer => answer?.message.error === undefined).length
    const kept = Number(cluster.redis.cli('HGET', key, 'wn')[0])
    console.log(
      `room for ${left}, asked at 2 nodes at once: ${asked}, answered as done: ${done}, watched in all: ${kept}`,
    )
    expect([done, kept]).to.deep.equal([left, MOST])
  })
})
