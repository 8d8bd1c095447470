// Tests the limit of resource subscriptions per session, counted in Redis for all nodes.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'
import { openAtAll, startCluster } from './support/nodes.ts'

const MOST = 1_000
const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })

describe('resource subscription limit of a session', () => {
  before(function () {
    needsRedis(this)
  })
  after(stopHostsAndRedis)

  it('is 1,000 with concurrent requests at several nodes', async () => {
    const cluster = await startCluster(2, { toolsets: { all: [page] }, routes: { '/': { toolsets: 'all' } } })
    const sessions = await openAtAll(cluster)
    const watch = (index: number) => sessions[index % 2]?.request('resources/subscribe', { uri: `page://${index}` })
    const [left, asked] = [10, 40]
    const [key = ''] = cluster.redis.cli('--scan', '--pattern', '*:session')
    // As if it watched that many already.
    cluster.redis.cli('HSET', key, '.wn', String(MOST - left))
    const answers = await Promise.all(Array.from({ length: asked }, (_, index) => watch(index)))
    const done = answers.filter(answer => answer?.message.error === undefined).length
    const kept = Number(cluster.redis.cli('HGET', key, '.wn')[0])
    expect([done, kept]).to.deep.equal([left, MOST])
  })
})
