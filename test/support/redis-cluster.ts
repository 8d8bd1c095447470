// Starts the servers of a Redis Cluster, optionally with a replica for each master.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { eventually } from './eventually.ts'
import { sendToRedis } from './redis-command.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

const run = promisify(execFile)
const SLOTS = 16_384

const replicationOf = async (node: RedisServer, field: string) =>
  (await sendToRedis(node, 'INFO', 'replication')).find(line => line.startsWith(`${field}:`))?.slice(field.length + 1)

const idOf = async (node: RedisServer) => (await sendToRedis(node, 'CLUSTER', 'MYID'))[0] ?? ''

/** This node knows this many nodes and reports that every slot is served. */
async function isWhole(node: RedisServer, count: number): Promise<boolean> {
  const info = await sendToRedis(node, 'CLUSTER', 'INFO')
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}`)
}

const every = async (nodes: readonly RedisServer[], holds: (node: RedisServer) => Promise<boolean>) =>
  (await Promise.all(nodes.map(holds))).every(Boolean)

/** All nodes know each other, and every slot is served. */
const whole = (nodes: readonly RedisServer[]) =>
  eventually('nodes that say the cluster is well', () => every(nodes, node => isWhole(node, nodes.length)))

/** Connects the nodes; the first `masters` of them get the slots. */
async function startNodes(count: number, masters: number, more: readonly string[]) {
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ cluster: true, more })))
  for (const [index, node] of nodes.slice(0, masters).entries()) {
    const [first, next] = [index, index + 1].map(at => Math.round((at * SLOTS) / masters)) as [number, number]
    await sendToRedis(node, 'CLUSTER', 'ADDSLOTSRANGE', String(first), String(next - 1))
    // Two nodes that vote at once with the same epoch would take each other's slots.
    await sendToRedis(node, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  }
  const meet = (node: RedisServer, { port }: RedisServer) =>
    sendToRedis(node, 'CLUSTER', 'MEET', '127.0.0.1', String(port))
  // Every pair, because gossip takes seconds. Redis drops a pair that does not connect in its node timeout.
  for (const [index, node] of nodes.entries()) for (const other of nodes.slice(index + 1)) await meet(node, other)
  await eventually('a cluster in which all nodes know each other', async () => {
    const isReady = await Promise.all(nodes.map(node => isWhole(node, nodes.length)))
    const waiting = nodes.find((_, index) => !isReady[index])
    if (!waiting) return true
    const known = (await sendToRedis(waiting, 'CLUSTER', 'NODES')).join('\n')
    for (const other of nodes) if (!known.includes(`:${other.port}@`)) await meet(waiting, other)
    return false
  })
  return nodes
}

/** Two masters; `more`: arguments of each. `stopRedis` ends them. */
export async function startRedisCluster(more: readonly string[] = []): Promise<readonly [RedisServer, RedisServer]> {
  return (await startNodes(2, 2, more)) as unknown as readonly [RedisServer, RedisServer]
}

export interface ReplicatedCluster {
  readonly masters: readonly RedisServer[]
  /** The replica of each master, in their order. */
  readonly replicas: readonly RedisServer[]
  /** Resolves once the replica of this master is a master itself. */
  promoted(place: number): Promise<void>
  /** Moves this many slots from one master to another, with the keys in them. */
  reshard(from: number, to: number, slots: number): Promise<void>
  /** Resolves once all nodes are connected, all replicas are in sync, and all nodes know the replicas: masters vote only for those. */
  settled(): Promise<void>
}

/**
 * Three masters and a replica of each. A replica replaces a master that is silent for `nodeTimeout` milliseconds. The default is
 * for tests of a failover; on a loaded machine it can also replace a master that was only slow.
 */
export async function startReplicatedCluster(nodeTimeout = 1_000): Promise<ReplicatedCluster> {
  const more = [
    '--cluster-node-timeout',
    String(nodeTimeout),
    '--repl-diskless-sync-delay',
    '0',
    '--cluster-replica-validity-factor',
    '0',
  ]
  const all = await startNodes(6, 3, more)
  const [masters, replicas] = [all.slice(0, 3), all.slice(3)]
  for (const [index, replica] of replicas.entries())
    await sendToRedis(replica, 'CLUSTER', 'REPLICATE', await idOf(masters[index] as RedisServer))
  const roleOf = (node: RedisServer) => replicationOf(node, 'role')
  const isInStep = async (node: RedisServer) =>
    (await roleOf(node)) === 'master' || (await replicationOf(node, 'master_link_status')) === 'up'
  const knowsReplicas = async (node: RedisServer) =>
    (await sendToRedis(node, 'CLUSTER', 'NODES')).filter(line => /\bslave\b/.test(line)).length === replicas.length
  const cluster: ReplicatedCluster = {
    masters,
    replicas,
    async promoted(place) {
      const replica = replicas[place] as RedisServer
      await eventually(
        'a replica that is a master',
        () => roleOf(replica),
        role => role === 'master',
      )
    },
    async reshard(from, to, slots) {
      const check = () =>
        run('redis-cli', ['--cluster', 'check', `127.0.0.1:${masters[0]?.port}`]).then(Boolean, () => false)
      await eventually('a cluster that redis-cli finds nothing wrong with', check)
      const [source, target] = [masters[from], masters[to]] as [RedisServer, RedisServer]
      const how = [
        '--cluster-from',
        await idOf(source),
        '--cluster-to',
        await idOf(target),
        '--cluster-slots',
        String(slots),
        '--cluster-yes',
      ]
      await run('redis-cli', ['--cluster', 'reshard', `127.0.0.1:${source.port}`, ...how])
    },
    async settled() {
      await whole(all)
      await eventually('replicas that are in step', () => every(all, isInStep))
      await eventually('nodes that know all replicas', () => every(all, knowsReplicas))
    },
  }
  await cluster.settled()
  return cluster
}
