// A Redis primary, its replicas and Sentinels that detect a dead primary within half a second.
import { randomBytes } from 'node:crypto'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { sendToRedis } from './redis-command.ts'
import { type RedisServer, type RedisServerSettings, startRedis } from './redis-server.ts'

export interface Watched {
  /** The roles at startup; a failover changes them. */
  readonly primary: RedisServer
  readonly replicas: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]
  /** The value of `redis.sentinel`. */
  readonly sentinel: { readonly name: string; readonly addresses: string[] }
  /** The server that the Sentinels name as primary. */
  named(): Promise<RedisServer | undefined>
  /** Resolves once the Sentinels name another primary than this server, and that server agrees. */
  replaced(old: RedisServer): Promise<RedisServer>
  /** Resolves once the Sentinels know each other and all replicas, and the replicas are in sync. */
  settled(): Promise<void>
  /** Whether each Sentinel knows the others and every replica, and no failover is under way. */
  settledNow(): Promise<boolean>
}

const NAME = 'mymaster'
/** By default a full sync waits five seconds for more replicas. */
export const AT_ONCE = ['--repl-diskless-sync-delay', '0'] as const

/** How Redis identifies a process. */
const runId = () => randomBytes(20).toString('hex')

async function replicationOf(server: RedisServer): Promise<Record<string, string>> {
  const lines = await sendToRedis(server, 'INFO', 'replication')
  return Object.fromEntries(lines.map(line => line.split(':') as [string, string]))
}

/** A replica of this server, once it is in sync. */
export async function startReplica(of: RedisServer, settings: RedisServerSettings = {}): Promise<RedisServer> {
  const more = [...(settings.more ?? []), ...AT_ONCE, '--replicaof', '127.0.0.1', String(of.port)]
  const replica = await startRedis({ ...settings, more })
  await eventually(
    'a replica that is in step',
    () => replicationOf(replica),
    ({ master_link_status }) => master_link_status === 'up',
  )
  return replica
}

export async function startWatched({ replicas: count = 1 } = {}): Promise<Watched> {
  const primary = await startRedis({ more: AT_ONCE })
  const replicas: RedisServer[] = []
  for (let index = 0; index < count; index++) replicas.push(await startReplica(primary))
  const watching = [
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel down-after-milliseconds ${NAME} 500`,
    `sentinel failover-timeout ${NAME} 2000`,
    ...replicas.map(({ port }) => `sentinel known-replica ${NAME} 127.0.0.1 ${port}`),
  ]
  // Introduces them to each other, because discovery takes seconds.
  const own = await Promise.all(Array.from({ length: 3 }, async () => ({ port: await freePort(), id: runId() })))
  const sentinels = await Promise.all(
    own.map(({ port, id }) => {
      const others = own.filter(other => other.id !== id)
      const known = others.map(other => `sentinel known-sentinel ${NAME} 127.0.0.1 ${other.port} ${other.id}`)
      return startRedis({ port, sentinel: [`sentinel myid ${id}`, ...watching, ...known] })
    }),
  )
  const servers = [primary, ...replicas]

  const ask = (sentinel: RedisServer, ...words: readonly string[]) => sendToRedis(sentinel, 'SENTINEL', ...words)
  const every = async (holds: (sentinel: RedisServer) => Promise<boolean>) =>
    (await Promise.all(sentinels.map(holds))).every(Boolean)
  async function named() {
    for (const sentinel of sentinels) {
      try {
        const [, port] = await ask(sentinel, 'GET-MASTER-ADDR-BY-NAME', NAME)
        return servers.find(one => String(one.port) === port)
      } catch {
        // The test ended this one: ask the next.
      }
    }
    return undefined
  }
  /** Each value of this key in the output of a Sentinel. */
  const values = (told: readonly string[], key: string) => told.filter((_, index) => told[index - 1] === key).join()
  async function isSettled(sentinel: RedisServer): Promise<boolean> {
    const told = await ask(sentinel, 'MASTER', NAME)
    const keys = ['num-slaves', 'num-other-sentinels', 'flags']
    return keys.map(key => values(told, key)).join() === `${count},2,master`
  }
  /** The Sentinel may still be connecting to those that it was told of at startup. */
  async function hearsAll(sentinel: RedisServer): Promise<boolean> {
    const others = await ask(sentinel, 'SENTINELS', NAME)
    const replicas = await ask(sentinel, 'REPLICAS', NAME)
    return (
      values(others, 'flags') === 'sentinel,sentinel' &&
      values(replicas, 'flags') === Array(count).fill('slave').join() &&
      values(replicas, 'master-link-status') === Array(count).fill('ok').join()
    )
  }
  const watched: Watched = {
    primary,
    replicas,
    sentinels,
    sentinel: { name: NAME, addresses: sentinels.map(({ url }) => url) },
    named,
    async replaced(old) {
      const findNew = async () => {
        const primary = await named()
        return primary && primary !== old && (await replicationOf(primary))['role'] === 'master' ? primary : undefined
      }
      return (await eventually('another primary', findNew)) as RedisServer
    },
    settledNow: () => every(isSettled),
    async settled() {
      await eventually('Sentinels that know all', watched.settledNow)
      await eventually('Sentinels that hear all', () => every(hearsAll))
    },
  }
  await watched.settled()
  return watched
}
