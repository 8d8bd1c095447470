// Starts the servers of a Redis Cluster, optionally with a replica for each master.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { eventually } from './eventually.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

const run = promisify(execFile)
const SLOTS = 16_384

const fieldOf = (node: RedisServer, command: string, field: string) =>
  node
    .cli(...command.split(' '))
    .find(line => line.startsWith(`${field}:`))
    ?.slice(field.length + 1)
    .trim()

const idOf = (node: RedisServer) => node.cli('CLUSTER', 'MYID')[0] ?? ''

/** This node knows this many nodes and reports that every slot is served. */
function isWhole(node: RedisServer, count: number): boolean {
  const told = node.cli('CLUSTER', 'INFO').map(line => line.trim())
  return told.includes('cluster_state:ok') && told.includes(`cluster_known_nodes:${count}`)
}

/** All nodes know each other, and every slot is served. */
const whole = (nodes: readonly RedisServer[]) =>
  eventually('nodes that say the cluster is well', () => nodes.every(node => isWhole(node, nodes.length)))

/** Connects the nodes; the first `masters` of them get the slots. */
async function startNodes(count: number, masters: number, more: readonly string[]) {
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ cluster: true, more })))
  for (const [index, node] of nodes.slice(0, masters).entries()) {
    const [first, next] = [index, index + 1].map(at => Math.round((at * SLOTS) / masters)) as [number, number]
    node.cli('CLUSTER', 'ADDSLOTSRANGE', String(first), String(next - 1))
    // Two nodes that vote at once with the same epoch would take each other's slots.
    node.cli('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  }
  const meet = (node: RedisServer, { port }: RedisServer) => node.cli('CLUSTER', 'MEET', '127.0.0.1', String(port))
  // Every pair, because gossip takes seconds. Redis drops a pair that does not connect in its node timeout.
  for (const [index, node] of nodes.entries()) for (const other of nodes.slice(index + 1)) meet(node, other)
  await eventually('a cluster in which all nodes know each other', () => {
    const waiting = nodes.find(node => !isWhole(node, nodes.length))
    const known = waiting?.cli('CLUSTER', 'NODES').join('\n')
    for (const other of nodes) if (waiting && !known?.includes(`:${other.port}@`)) meet(waiting, other)
    return !waiting
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
  /** Resolves once all nodes are connected and all replicas are in sync. */
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
    replica.cli('CLUSTER', 'REPLICATE', idOf(masters[index] as RedisServer))
  const roleOf = (node: RedisServer) => fieldOf(node, 'INFO replication', 'role')
  const isInStep = (node: RedisServer) =>
    roleOf(node) === 'master' || fieldOf(node, 'INFO replication', 'master_link_status') === 'up'
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
        idOf(source),
        '--cluster-to',
        idOf(target),
        '--cluster-slots',
        String(slots),
        '--cluster-yes',
      ]
      await run('redis-cli', ['--cluster', 'reshard', `127.0.0.1:${source.port}`, ...how])
    },
    async settled() {
      await whole(all)
      await eventually('replicas that are in step', () => all.every(isInStep))
    },
  }
  await cluster.settled()
  return cluster
}
