// Two redis-servers that are one Redis Cluster, each with half of the slots.
import { eventually } from './eventually.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/** Both of them; `stopRedis` ends them. */
export async function startRedisCluster(): Promise<readonly [RedisServer, RedisServer]> {
  const [one, two] = [await startRedis({ cluster: true }), await startRedis({ cluster: true })]
  one.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '8191')
  two.cli('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383')
  one.cli('CLUSTER', 'MEET', '127.0.0.1', String(two.port))
  await eventually(
    'two nodes that say the cluster is well',
    () => [one, two].map(node => node.cli('CLUSTER', 'INFO').find(line => line.startsWith('cluster_state:'))),
    states => states.every(state => state?.startsWith('cluster_state:ok')),
  )
  return [one, two]
}
