// A Redis primary, its replicas and Sentinels that detect a dead primary within half a second.
import { randomBytes } from 'node:crypto'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { type RedisServer, type RedisServerSettings, startRedis } from './redis-server.ts'

export interface SentinelsSettings {
  /** Default 1. */
  readonly replicas?: number
  /** Arguments of the primary and the replicas, such as users. */
  readonly server?: RedisServerSettings
  /** Additional configuration lines of each Sentinel. */
  readonly lines?: readonly string[]
  /** redis-cli arguments that authenticate to the Sentinels. */
  readonly asking?: readonly string[]
}

export interface Watched {
  /** The roles at startup; a failover changes them. */
  readonly primary: RedisServer
  readonly replicas: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]
  /** The value of `redis.sentinel`. */
  readonly sentinel: { readonly name: string; readonly addresses: string[] }
  /** The server that the Sentinels name as primary. */
  named(): RedisServer | undefined
  /** Resolves once the Sentinels name another primary than this server, and that server agrees. */
  replaced(old: RedisServer): Promise<RedisServer>
  /** Resolves once the Sentinels know each other and all replicas, and the replicas are in sync. */
  settled(): Promise<void>
  /** Whether each Sentinel knows the others and every replica, and no failover is under way. */
  settledNow(): boolean
}

const NAME = 'mymaster'
/** By default a full sync waits five seconds for more replicas. */
export const AT_ONCE = ['--repl-diskless-sync-delay', '0'] as const

/** How Redis identifies a process. */
const runId = () => randomBytes(20).toString('hex')

const infoOf = (server: RedisServer, section: string) =>
  Object.fromEntries(server.cli('INFO', section).map(line => line.trim().split(':') as [string, string]))

const roleOf = (server: RedisServer) => infoOf(server, 'replication')['role']

/** A replica of this server, once it is in sync. */
export async function startReplica(of: RedisServer, settings: RedisServerSettings = {}): Promise<RedisServer> {
  const more = [...(settings.more ?? []), ...AT_ONCE, '--replicaof', '127.0.0.1', String(of.port)]
  const replica = await startRedis({ ...settings, more })
  await eventually(
    'a replica that is in step',
    () => infoOf(replica, 'replication')['master_link_status'],
    status => status === 'up',
  )
  return replica
}

export async function startWatched({
  replicas: count = 1,
  server,
  lines = [],
  asking = [],
}: SentinelsSettings = {}): Promise<Watched> {
  const more = [...(server?.more ?? []), ...AT_ONCE]
  const primary = await startRedis({ ...server, more })
  const replicas: RedisServer[] = []
  for (let index = 0; index < count; index++) replicas.push(await startReplica(primary, server))
  const watching = [
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel down-after-milliseconds ${NAME} 500`,
    `sentinel failover-timeout ${NAME} 2000`,
    ...lines,
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

  const ask = (sentinel: RedisServer, ...words: readonly string[]) => sentinel.cli(...asking, 'SENTINEL', ...words)
  function named() {
    for (const sentinel of sentinels) {
      try {
        const [, port] = ask(sentinel, 'GET-MASTER-ADDR-BY-NAME', NAME)
        return servers.find(one => String(one.port) === port)
      } catch {
        // The test ended this one: ask the next.
      }
    }
    return undefined
  }
  /** Each value of this key in the output of a Sentinel. */
  const values = (sentinel: RedisServer, command: string, key: string) => {
    const told = ask(sentinel, command, NAME)
    return told.filter((_, index) => told[index - 1] === key).join()
  }
  function isSettled(sentinel: RedisServer): boolean {
    const told = ask(sentinel, 'MASTER', NAME)
    const value = (key: string) => told[told.indexOf(key) + 1]
    return value('num-slaves') === String(count) && value('num-other-sentinels') === '2' && value('flags') === 'master'
  }
  /** The Sentinel may still be connecting to those that it was told of at startup. */
  const hearsAll = (sentinel: RedisServer) =>
    values(sentinel, 'SENTINELS', 'flags') === 'sentinel,sentinel' &&
    values(sentinel, 'REPLICAS', 'flags') === Array(count).fill('slave').join() &&
    values(sentinel, 'REPLICAS', 'master-link-status') === Array(count).fill('ok').join()
  const watched: Watched = {
    primary,
    replicas,
    sentinels,
    sentinel: { name: NAME, addresses: sentinels.map(({ url }) => url) },
    named,
    async replaced(old) {
      const isNew = (one: RedisServer | undefined) => one !== undefined && one !== old && roleOf(one) === 'master'
      return (await eventually('another primary', named, isNew)) as RedisServer
    },
    settledNow: () => sentinels.every(isSettled),
    async settled() {
      await eventually('Sentinels that know all', watched.settledNow)
      await eventually('Sentinels that hear all', () => sentinels.every(hearsAll))
    },
  }
  await watched.settled()
  return watched
}
