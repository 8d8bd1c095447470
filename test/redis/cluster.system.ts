// Tests connections to a Redis Cluster of three masters and three replicas, slot migration and unassigned slots.
import { expect } from 'chai'
import type { HostError } from '../../core/index.ts'
import { explainRefusal } from '../../plugins/families/redis/failures.ts'
import type { RedisConnection } from '../../plugins/families/redis/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisCluster, startReplicatedCluster } from '../support/redis-cluster.ts'
import { sendToRedis } from '../support/redis-command.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { repeatDuring } from '../support/repeat-during.ts'
import { countAll, countEvery, KEYS } from './support/count-keys.ts'

/** Milliseconds: no master is taken for dead because the machine is slow. */
const NO_FAILOVER = 30_000

describe('Redis Cluster connections and slot migration', () => {
  // Several servers each, which elect and load at their own pace.
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('keeps idle connections open', async () => {
    const masters = await startRedisCluster(['--cluster-node-timeout', String(NO_FAILOVER)])
    const { connection, log } = await startRedisHost({ cluster: [masters[0].url], commandTimeout: '5s' })
    await whenHealthy(connection)
    const reader = await connection.duplicate()
    const reads = () =>
      reader.client.get(connection.key('n0')).then(
        () => true,
        () => false,
      )
    await eventually('an answer to the reader', reads)
    const ours = () => masters.flatMap(connectionsAt)
    const first = await eventually('two connections to each', ours, ids => ids.length === 4)
    const beats = () =>
      Promise.all(
        masters.map(async node => {
          const statistics = await sendToRedis(node, 'INFO', 'commandstats')
          return Number(/cmdstat_time:calls=(\d+)/.exec(statistics.join(' '))?.[1] ?? 0)
        }),
      )
    // Beats are 2 s apart, and a socket that is silent for 5 s is closed: four beats are longer than that.
    await eventually('four beats of each connection at every master', beats, counts =>
      counts.every(count => count >= 8),
    )
    expect(ours()).to.deep.equal(first)
    expect(log.filter(({ level, redis }) => level === 'warn' && redis !== undefined)).to.deep.equal([])
    reader.close()
  })

  it('counts each call once while slots migrate', async () => {
    const cluster = await startReplicatedCluster(NO_FAILOVER)
    const [one] = cluster.masters
    const { connection, log } = await startRedisHost({ cluster: [one?.url ?? ''], commandTimeout: '10s' })
    await whenHealthy(connection)
    const rounds: number[][] = []
    const count = async () => rounds.push(await countAll(connection))
    const before = await repeatDuring(count, async () => {
      await eventually('some rounds', () => rounds.length > 3)
      const { length } = rounds
      // redis-cli runs in a process of its own, so this process keeps counting.
      await cluster.reshard(0, 1, 150)
      await cluster.reshard(1, 2, 150)
      return length
    })
    const answered = rounds.flat().length
    const last = rounds.at(-1) ?? []
    const lost = rounds.length * KEYS - answered
    expect(rounds.length - before).to.be.at.least(2)
    expect(lost).to.equal(0)
    expect(Math.max(...last)).to.equal(rounds.length)
    expect(Math.min(...last)).to.equal(rounds.length)
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })
})

describe('Redis Cluster with unassigned slots', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  const more = ['--cluster-require-full-coverage', 'no']

  /** How many of these calls were refused with 503, and what else they were. */
  async function refusals(connection: RedisConnection) {
    const called = await Promise.allSettled(
      Array.from({ length: KEYS }, (_, index) => connection.run(client => client.incr(connection.key(`n${index}`)))),
    )
    const thrown = called.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason as HostError] : []))
    return { refused: thrown.length, others: thrown.filter(error => error.status !== 503).map(String) }
  }

  it('readiness fails at startup, with 503 for calls, until every slot has a master', async () => {
    const node = await startRedis({ cluster: true, more })
    const { connection, log, plugin } = await startRedisHost({ cluster: [node.url], commandTimeout: '5s' })
    const counts: number[] = []
    for (const range of [undefined, [0, 8_191], [8_192, 16_382], [16_383, 16_383]]) {
      if (range) node.cli('CLUSTER', 'ADDSLOTSRANGE', ...range.map(String))
      if (range?.[1] === 16_383) break
      const { refused, others } = await refusals(connection)
      expect(others).to.deep.equal([])
      counts.push(refused)
      await eventually(
        'not ready because of the slots',
        () => plugin.checkReadiness(),
        ({ reasons }) => reasons?.['redis'] === 'Redis refuses: CLUSTERDOWN',
      )
    }
    expect(counts).to.deep.equal([KEYS, KEYS, KEYS])
    const lines = log.filter(({ level, reason }) => level === 'error' && /^CLUSTERDOWN/.test(String(reason)))
    expect(lines).to.have.lengthOf(1)
    expect(String(lines[0]?.['reason'])).to.match(/^CLUSTERDOWN: 16384 of 16384/)
    expect(String(lines[0]?.['fix'])).to.match(/redis-cli --cluster fix/)
    await whenHealthy(connection)
    await countEvery(connection)
  })

  it('readiness fails while slots are unassigned', async () => {
    const [one, two] = await startRedisCluster(more)
    const { connection, log } = await startRedisHost({ cluster: [one.url], commandTimeout: '5s' })
    await whenHealthy(connection)
    await countEvery(connection)
    for (const node of [one, two]) node.cli('CLUSTER', 'DELSLOTSRANGE', '0', '4095')
    const kinds: string[] = []
    await eventually('not ready', async () => {
      kinds.push(...(await refusals(connection)).others)
      return !connection.healthy
    })
    const told = () =>
      log.filter(({ reason }) => /^CLUSTERDOWN: 4096 of 16384 slots have no master/.test(String(reason)))
    await eventually('not ready by what its slots are', async () => {
      kinds.push(...(await refusals(connection)).others)
      return connection.problem === 'Redis refuses: CLUSTERDOWN' && (await refusals(connection)).refused === KEYS
    })
    expect(kinds).to.deep.equal([])
    expect(told().length).to.be.at.most(1)
    one.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '4095')
    await whenHealthy(connection)
    await countEvery(connection)
  })

  it('distinguishes client errors caused by missing slots from program errors', async () => {
    const node = await startRedis({ cluster: true, more })
    const { createCluster } = await import('@redis/client')
    const cluster = createCluster({ rootNodes: [{ url: node.url }] })
    await cluster.connect()
    const error = await rejectionOf(cluster.get('mcp-host:n1'))
    cluster.destroy()
    expect(error).to.be.instanceOf(TypeError)
    expect(explainRefusal(error)).to.deep.include({ code: 'CLUSTERDOWN', isPermanent: false })
    expect(explainRefusal(error)?.text).to.match(/^CLUSTERDOWN: /)
    expect(explainRefusal(new TypeError("Cannot read properties of undefined (reading 'other')"))).to.equal(undefined)
  })
})
