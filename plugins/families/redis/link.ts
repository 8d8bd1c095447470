// A client of one Redis or of a Redis Cluster that connects again for ever. For connection.ts, which says what waits
// and what is refused meanwhile. node-redis is loaded when the first one connects.
import type { RedisClientType, RedisClusterType } from '@redis/client'
import type { RedisCommands } from './commands.ts'
import type { ResolvedRedis } from './settings.ts'

export interface Link {
  /** Throws where nothing was connected yet. */
  readonly commands: RedisCommands
  /** Whether Redis answers, as far as the sockets tell. */
  readonly isReady: boolean
  /** Begins, and resolves once there is a client; that it is connected, `changed` tells. */
  open(): Promise<void>
  /** Gives up the socket for a new one: it is dead, or leads to what is the primary no more. */
  reset(): void
  close(): void
}

export interface LinkSettings {
  readonly redis: ResolvedRedis
  /** Milliseconds that a command may block at Redis: this long the socket may be silent. 0: commands do not block. */
  readonly blocking: number
  /** Called whenever `isReady` may have changed; with why, where it failed. */
  changed(cause?: unknown): void
  /** From 0 to below 1; for tests. */
  readonly random?: () => number
}

const FIRST_WAIT = 50
const LONGEST_WAIT = 2_000
/** A connection is given up when it was silent for as long; how often it is asked for a sign is in connection.ts. */
const SHORTEST_SILENCE = 1_000

/** Milliseconds before the next attempt: doubled each time up to 2 s, and between half of it and all. */
export function backOff(retries: number, random: () => number = Math.random): number {
  const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(retries, 16))
  return Math.round(wait / 2 + (wait / 2) * random())
}

/** How long a socket may say nothing, in milliseconds. */
export const silenceOf = ({ commandTimeout }: ResolvedRedis): number => Math.max(commandTimeout, SHORTEST_SILENCE)

function clientOptions({ redis, blocking, random }: LinkSettings) {
  const { username, password, database, tls, commandTimeout } = redis
  const silence = silenceOf(redis) + blocking
  const socket = {
    connectTimeout: commandTimeout,
    socketTimeout: silence,
    reconnectStrategy: (retries: number) => backOff(retries, random),
  }
  return {
    RESP: 3 as const,
    name: 'mcp-host',
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== 0 && { database }),
    socket: tls ? { ...socket, tls: true as const, ...tls } : socket,
    // What cannot be sent is refused at once: whoever waits does so in connection.ts, and no longer than it should.
    // What blocks has a client of its own, whose commands wait for it.
    disableOfflineQueue: blocking === 0,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
    // Ours ends a command that was sent too; node-redis's costs a signal each and ends only what was not.
    commandOptions: { timeout: 0 },
  }
}

export function createLink(settings: LinkSettings): Link {
  return settings.redis.isCluster ? clusterLink(settings) : serverLink(settings)
}

const noClient = () => new Error('The client is offline')

function serverLink(settings: LinkSettings): Link {
  const { redis, changed } = settings
  let client: RedisClientType | undefined
  let closed = false
  const connect = () => void client?.connect().catch(changed)
  return {
    get commands() {
      if (!client) throw noClient()
      return client
    },
    get isReady() {
      return client?.isReady ?? false
    },
    async open() {
      const { createClient } = await import('@redis/client')
      if (closed) return
      const options = clientOptions(settings)
      const [address] = redis.addresses
      client = createClient({ ...options, socket: { ...address, ...options.socket } }) as unknown as RedisClientType
      client.on('ready', () => changed()).on('error', changed)
      connect()
    },
    reset() {
      if (!client?.isReady) return
      client.destroy()
      changed(new Error('Socket given up'))
      connect()
    },
    close() {
      closed = true
      client?.destroy()
    },
  }
}

function clusterLink(settings: LinkSettings): Link {
  const { redis, changed, random } = settings
  let cluster: RedisClusterType | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function connect(retries = 0) {
    cluster?.connect().then(
      () => changed(),
      cause => {
        if (closed) return
        changed(cause)
        timer = setTimeout(connect, backOff(retries, random), retries + 1)
      },
    )
  }

  return {
    get commands() {
      if (!cluster) throw noClient()
      return cluster as unknown as RedisCommands
    },
    get isReady() {
      return cluster?.isReady === true && cluster.masters.every(({ client }) => client?.isReady === true)
    },
    async open() {
      const { createCluster } = await import('@redis/client')
      if (closed) return
      const { RESP, ...defaults } = clientOptions(settings)
      const rootNodes = redis.addresses.map(socket => ({ socket: { ...socket } }))
      cluster = createCluster({
        RESP,
        rootNodes,
        defaults,
        commandOptions: defaults.commandOptions,
      }) as unknown as RedisClusterType
      cluster.on('error', changed).on('node-error', changed)
      cluster.on('node-ready', () => changed()).on('node-disconnect', () => changed())
      connect()
    },
    // A cluster says itself where its keys went; a silent socket is given up by its own timeout.
    reset() {},
    close() {
      closed = true
      clearTimeout(timer)
      if (cluster?.isOpen) cluster.destroy()
    },
  }
}
