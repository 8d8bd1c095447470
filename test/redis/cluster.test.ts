// A Redis Cluster of three masters and three replicas: a master that dies is replaced, and slots that move are followed.
import { expect } from 'chai'
import type { RedisConnection } from '../../plugins/families/redis/index.ts'
import { eventually } from '../support/eventually.ts'
import { startReplicatedCluster } from '../support/redis-cluster.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'

const KEYS = 200

/** Counts up one key in each of many slots, so that every master has some. */
async function countAll(connection: RedisConnection) {
  const counted = await Promise.allSettled(
    Array.from({ length: KEYS }, (_, index) => connection.run(client => client.incr(connection.key(`n${index}`)))),
  )
  return counted.flatMap(outcome => (outcome.status === 'fulfilled' ? [Number(outcome.value)] : []))
}

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

  it('goes on with a replica in the place of a master that was killed, and with the master when it is back', async () => {
    const cluster = await startReplicatedCluster()
    const [one] = cluster.masters
    const { connection } = await startRedisHost({ cluster: [one?.url ?? ''], commandTimeout: '2s' })
    await whenHealthy(connection)
    expect(await countAll(connection)).to.have.lengthOf(KEYS)
    // The one that the config names.
    await one?.kill()
    await whenHealthy(connection, false)
    await cluster.promoted(0)
    await whenHealthy(connection)
    const after = await eventually(
      'every key counted',
      () => countAll(connection),
      counts => counts.length === KEYS,
    )
    expect(Math.min(...after)).to.be.at.least(2)
    await one?.start()
    await cluster.settled()
    await eventually(
      'every key counted',
      () => countAll(connection),
      counts => counts.length === KEYS,
    )
    await whenHealthy(connection)
  })

  it('is found by a host that starts while a master is gone, once its replica has its place', async () => {
    const cluster = await startReplicatedCluster()
    const [, two, three] = cluster.masters
    await cluster.masters[0]?.kill()
    const settings = { cluster: [two?.url ?? '', three?.url ?? ''], commandTimeout: '1s' as const }
    const { connection, plugin } = await startRedisHost(settings)
    expect((await plugin.readiness()).checks).to.include({ redis: false })
    await cluster.promoted(0)
    await whenHealthy(connection)
    expect(
      await eventually(
        'every key counted',
        () => countAll(connection),
        counts => counts.length === KEYS,
      ),
    ).to.have.lengthOf(KEYS)
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
