// A client of one Redis server or of the primary that Sentinels name. Each connection is a new client, so that address,
// certificates and password are current. It reconnects forever.
import type { RedisClientType } from '@redis/client'
import type { Logger } from '../../../core/index.ts'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { createOccurrence } from './failures.ts'
import type { Sentinels } from './sentinels.ts'
import type { RedisAddress, ResolvedRedis } from './settings.ts'
import { readTls } from './settings.ts'

export interface Link {
  /** Throws where nothing was connected yet. */
  readonly commands: RedisCommands
  /** Whether Redis answers, as far as the sockets tell. */
  readonly isReady: boolean
  /** Begins, and resolves once there is a client; that it is connected, `changed` tells. */
  open(): Promise<void>
  /** Resolves once something is connected; rejects when the link is closed. For commands that wait for that. */
  whenReady(): Promise<void>
  /** Gives up the socket for a new one: it is dead, or leads to what is the primary no more. */
  reset(): void
  /** Connects to the primary that is one now, unless it does or is about to. */
  moved(primary: RedisAddress): void
  /** The error without any password in its text: what answers may quote what it was sent before. */
  hide(thrown: unknown): unknown
  close(): void
}

export interface LinkSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  /** Who knows the primary, where addresses are of Sentinels. */
  readonly sentinels: Sentinels | undefined
  /** Milliseconds that a command may block at Redis: this long the socket may be silent. 0: commands do not block. */
  readonly blocking: number
  /** Called whenever `isReady` may have changed; with why, where it failed. No password is in it. */
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

/** Options of a client: who connects, how long it waits, and the certificates as they are now. */
export function clientOptions({ redis, blocking }: LinkSettings, credentials: Credentials) {
  const { password, username, database, tls, commandTimeout } = redis
  const timeouts = { connectTimeout: commandTimeout, socketTimeout: silenceOf(redis) + blocking }
  const isSomebody = username !== undefined || password !== undefined
  const credentialsProvider = { type: 'async-credentials-provider' as const, credentials: () => credentials.fetch() }
  return {
    RESP: 3 as const,
    name: 'mcp-host',
    ...(isSomebody && { credentialsProvider }),
    ...(database !== 0 && { database }),
    socket: tls ? { ...timeouts, tls: true as const, ...readTls(tls) } : timeouts,
    // What cannot be sent is refused at once: whoever waits does so in connection.ts, and no longer than it should.
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
    // Ours ends a command that was sent too; node-redis's costs a signal each and ends only what was not.
    commandOptions: { timeout: 0 },
  }
}

export const noClient = () => new Error('The client is offline')

export const serverLink = (settings: LinkSettings): Link => new ServerLink(settings)

class ServerLink implements Link {
  readonly #settings: LinkSettings
  readonly #credentials: Credentials
  #client: RedisClientType | undefined
  #address: RedisAddress | undefined
  /** Which attempt to connect is the last: what is heard of others counts no more. */
  #attempt = 0
  #timer: NodeJS.Timeout | undefined
  #readied = createOccurrence<void>()
  #closed = false

  constructor(settings: LinkSettings) {
    this.#settings = settings
    const open = () => (this.isReady && this.#client ? [this.#client as unknown as Authenticated] : [])
    this.#credentials = new Credentials({ redis: settings.redis, log: settings.log, open })
  }

  get commands(): RedisCommands {
    if (!this.#client) throw noClient()
    return this.#client
  }

  get isReady() {
    return this.#client?.isReady ?? false
  }

  async open() {
    await import('@redis/client')
    if (!this.#closed) void this.#connect()
  }

  async whenReady() {
    while (!this.isReady) {
      if (this.#closed) throw noClient()
      await this.#readied.happened
    }
  }

  reset() {
    if (this.isReady) this.#restart()
  }

  moved({ host, port }: RedisAddress) {
    const isThere = this.#address?.host === host && this.#address.port === port
    if (!isThere && !this.#closed) this.#restart()
  }

  close() {
    this.#closed = true
    this.#attempt++
    clearTimeout(this.#timer)
    this.#credentials.close()
    this.#client?.destroy()
    this.#readied.happen()
  }

  #restart() {
    this.#attempt++
    this.#client?.destroy()
    this.#settings.changed(new Error('Socket given up'))
    void this.#connect()
  }

  #changed(cause?: unknown) {
    this.#settings.changed(this.hide(cause))
  }

  hide(thrown: unknown) {
    return this.#credentials.hide(thrown)
  }

  /** One attempt; the next one begins where it failed, or when what it connected is lost. */
  async #connect(retries = 0) {
    const attempt = ++this.#attempt
    const isLast = () => attempt === this.#attempt
    clearTimeout(this.#timer)
    let told = false
    try {
      const client = await this.#createClient()
      if (!isLast()) return
      this.#client = client
      let wasReady = false
      client.on('ready', () => {
        // Given up while it connected.
        if (!isLast()) return client.destroy()
        wasReady = true
        this.#readied.happen()
        this.#readied = createOccurrence()
        this.#changed()
      })
      client.on('error', cause => {
        if (!isLast()) return
        told = true
        this.#changed(cause)
        if (wasReady && !client.isOpen) void this.#connect()
      })
      await client.connect()
    } catch (cause) {
      if (!isLast()) return
      if (!told) this.#changed(cause)
      this.#timer = setTimeout(() => void this.#connect(retries + 1), backOff(retries, this.#settings.random))
    }
  }

  async #createClient(): Promise<RedisClientType> {
    const { createClient } = await import('@redis/client')
    const { redis, sentinels } = this.#settings
    const address = await (sentinels?.primary() ?? redis.addresses[0])
    this.#address = address
    const options = clientOptions(this.#settings, this.#credentials)
    const socket = { ...address, ...options.socket, reconnectStrategy: false as const }
    return createClient({ ...options, socket }) as unknown as RedisClientType
  }
}
