// A Redis Cluster of three masters and three replicas: a master that dies is replaced.
import { expect } from 'chai'
import { startReplicatedCluster } from '../support/redis-cluster.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis } from '../support/redis-server.ts'
import { countEvery } from './support/count-keys.ts'

describe('a Redis Cluster of three masters with a replica each, of which one dies', function () {
  // Several servers each, which elect and load at their own pace.
  this.timeout(60_000)
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('goes on with a replica in the place of a master that was killed, and with the master when it is back', async () => {
    const cluster = await startReplicatedCluster()
    const [one] = cluster.masters
    const { connection } = await startRedisHost({ cluster: [one?.url ?? ''], commandTimeout: '2s' })
    await whenHealthy(connection)
    await countEvery(connection)
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

  it('is found by a host that starts while a master is gone, once its replica has its place', async () => {
    const cluster = await startReplicatedCluster()
    const [, two, three] = cluster.masters
    await cluster.masters[0]?.kill()
    const settings = { cluster: [two?.url ?? '', three?.url ?? ''], commandTimeout: '1s' as const }
    const { connection, plugin } = await startRedisHost(settings)
    expect((await plugin.readiness()).checks).to.include({ redis: false })
    await cluster.promoted(0)
    await whenHealthy(connection)
    await countEvery(connection)
  })
})
