// A Redis Cluster of three masters and three replicas: connections are kept, and slots that move are followed.
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { startReplicatedCluster } from '../support/redis-cluster.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'
import { countAll, KEYS } from './support/count-keys.ts'

describe('a Redis Cluster of three masters with a replica each', function () {
  // Several servers each, which elect and load at their own pace.
  this.timeout(60_000)
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('keeps its connections where nothing is asked of it for long', async () => {
    const cluster = await startReplicatedCluster()
    const { connection, log } = await startRedisHost({
      cluster: [cluster.masters[0]?.url ?? ''],
      commandTimeout: '1s',
    })
    await whenHealthy(connection)
    const reader = await connection.duplicate()
    const ours = () => cluster.masters.flatMap(connectionsAt)
    const first = await eventually('two connections to each', ours, ids => ids.length === 6)
    const beats = () =>
      cluster.masters.map(node =>
        Number(/cmdstat_time:calls=(\d+)/.exec(node.cli('INFO', 'commandstats').join(' '))?.[1] ?? 0),
      )
    // A socket that says nothing for a second is given up; that is five of these.
    await eventually('twelve beats of each connection at every master', beats, counts =>
      counts.every(count => count >= 24),
    )
    expect(ours()).to.deep.equal(first)
    expect(log.filter(({ level, redis }) => level === 'warn' && redis !== undefined)).to.deep.equal([])
    reader.close()
  })

  it('has its slots moved while they are in use: each call is counted once', async () => {
    const cluster = await startReplicatedCluster()
    const [one] = cluster.masters
    const { connection, log } = await startRedisHost({ cluster: [one?.url ?? ''], commandTimeout: '2s' })
    await whenHealthy(connection)
    let over = false
    const rounds: number[][] = []
    const counting = (async () => {
      while (!over) rounds.push(await countAll(connection))
    })()
    let before = 0
    try {
      await eventually('some rounds', () => rounds.length > 3)
      before = rounds.length
      // In a process of its own: this one goes on counting.
      await cluster.reshard(0, 1, 500)
      await cluster.reshard(1, 2, 500)
    } finally {
      over = true
      await counting
    }
    const answered = rounds.flat().length
    const last = rounds.at(-1) ?? []
    console.log(
      `      1,000 slots moved in ${rounds.length - before} rounds: ${answered} of ${rounds.length * KEYS} counted`,
    )
    const lost = rounds.length * KEYS - answered
    expect(rounds.length - before).to.be.at.least(2)
    expect(lost).to.equal(0)
    expect(Math.max(...last)).to.equal(rounds.length)
    expect(Math.min(...last)).to.equal(rounds.length)
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })
})
