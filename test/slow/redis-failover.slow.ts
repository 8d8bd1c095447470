// Tests Redis failover under load with Sentinel and Redis Cluster: lost data is reported and nothing is duplicated.
import { expect } from 'chai'
import { faultsOf } from '../cluster/chaos/tally.ts'
import { describeLoaded, underLoad } from '../redis/support/loaded-hosts.ts'
import { eventually } from '../support/eventually.ts'
import { startReplicatedCluster } from '../support/redis-cluster.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { startWatched } from '../support/redis-sentinel.ts'
import { needsRedis, type RedisServer } from '../support/redis-server.ts'

const ROUNDS = 2
/** On a busy machine Redis can run a command and respond later than the limit. A change that is published again is a duplicate. */
const commandTimeout = '30s'

describe('Redis failover under load', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it(`Sentinel, primary killed ${ROUNDS} times: reports lost data, duplicates nothing`, async () => {
    const watched = await startWatched({ replicas: 2 })
    let kills = 0
    const report = await underLoad({ sentinel: watched.sentinel, commandTimeout }, async whenReady => {
      for (; kills < ROUNDS; kills++) {
        const primary = (await eventually('a primary', watched.named)) as RedisServer
        await primary.kill()
        await watched.replaced(primary)
        await primary.start()
        await eventually('the former primary is a replica', watched.settledNow)
        await whenReady()
      }
    })
    console.log(`      ${kills} primaries killed, ${describeLoaded(report)}`)
    expect(faultsOf(report.tally, { gaps: true, nodeLost: true })).to.deep.equal([])
  })

  it(`Sentinel, ${ROUNDS} planned failovers: reports lost data, duplicates nothing`, async () => {
    const watched = await startWatched({ replicas: 2 })
    let moves = 0
    const report = await underLoad({ sentinel: watched.sentinel, commandTimeout }, async whenReady => {
      for (; moves < ROUNDS; moves++) {
        const primary = (await eventually('a primary', watched.named)) as RedisServer
        watched.sentinels[0]?.cli('SENTINEL', 'FAILOVER', watched.sentinel.name)
        await watched.replaced(primary)
        await eventually('the former primary is a replica', watched.settledNow)
        await whenReady()
      }
    })
    console.log(`      ${moves} primaries replaced, ${describeLoaded(report)}`)
    expect(faultsOf(report.tally, { gaps: true, nodeLost: true })).to.deep.equal([])
  })

  it('Redis Cluster, each of three masters killed: reports lost data, duplicates nothing', async () => {
    // A master that is only slow must not be replaced while another one is killed.
    const cluster = await startReplicatedCluster(5_000)
    let kills = 0
    const urls = cluster.masters.map(({ url }) => url)
    const report = await underLoad({ cluster: urls, commandTimeout }, async whenReady => {
      for (; kills < cluster.masters.length; kills++) {
        await cluster.masters[kills]?.kill()
        await cluster.promoted(kills)
        await cluster.masters[kills]?.start()
        await cluster.settled()
        await whenReady()
      }
    })
    console.log(`      ${kills} masters killed, ${describeLoaded(report)}`)
    expect(faultsOf(report.tally, { gaps: true, nodeLost: true })).to.deep.equal([])
  })
})
