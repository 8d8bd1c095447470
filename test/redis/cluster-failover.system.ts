// Tests failover in a Redis Cluster of three masters and three replicas.
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { startReplicatedCluster } from '../support/redis-cluster.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'
import { countEvery } from './support/count-keys.ts'

describe('Redis Cluster failover', () => {
  // Several servers each, which elect and load at their own pace.
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('uses the replica after a master was killed, and the master after its restart', async () => {
    const cluster = await startReplicatedCluster(3_000)
    const [one] = cluster.masters
    const { connection } = await startRedisHost({ cluster: [one?.url ?? ''], commandTimeout: '5s' })
    await whenHealthy(connection)
    await countEvery(connection)
    await eventually('the replica has every write', async () => {
      const replication = String(await one?.cli('INFO', 'replication'))
      return replication.includes(`offset=${/master_repl_offset:(\d+)/.exec(replication)?.[1]},`)
    })
    // The one that the config names.
    await one?.kill()
    await whenHealthy(connection, false)
    await cluster.promoted(0)
    await whenHealthy(connection)
    const after = await countEvery(connection)
    expect(Math.min(...after)).to.be.at.least(2)
    await one?.start()
    await cluster.settled()
    await countEvery(connection)
    await whenHealthy(connection)
  })

  it('a host that starts without one master connects after the replica is promoted', async () => {
    const cluster = await startReplicatedCluster(3_000)
    const [, two, three] = cluster.masters
    await cluster.masters[0]?.kill()
    const settings = { cluster: [two?.url ?? '', three?.url ?? ''], commandTimeout: '5s' as const }
    const { connection, plugin } = await startRedisHost(settings)
    expect((await plugin.checkReadiness()).checks).to.include({ redis: false })
    await cluster.promoted(0)
    await whenHealthy(connection)
    await countEvery(connection)
  })
})
