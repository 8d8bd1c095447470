// A client of one Redis server or Sentinel primary. Each connection is a new client with current settings.
import type { RedisClient, RedisClientType } from '@redis/client'
import type { Logger } from '../../../core/plugin.ts'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { createDeferred } from './failures.ts'
import type { Sentinels } from './sentinels.ts'
import { type RedisAddress, type ResolvedRedis, readTls } from './settings.ts'

export interface Link {
  readonly commands: RedisCommands
  readonly isReady: boolean
  open(): Promise<void>
  /** Resolves when a command can be sent; rejects after `close`. */
  whenReady(): Promise<void>
  reset(): void
  moved(primary: RedisAddress): void
  hide(thrown: unknown): unknown
  close(): void
}

export interface LinkSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  readonly sentinels: Sentinels | undefined
  /** Maximum duration of blocking commands, milliseconds; 0: none. */
  readonly blocking: number
  changed(cause?: unknown): void
  /** Returns a number from 0 to below 1; for tests. */
  readonly random?: () => number
}

const MIN_DELAY = 50
const MAX_DELAY = 2_000
/** Milliseconds after which a silent connection is closed. */
const MIN_SILENCE = 1_000
// `createClient` builds a class for each set of options, which takes 25 ms of CPU time.
let newClient: ReturnType<typeof RedisClient.factory> | undefined

/** Exponential up to 2 s, with jitter. */
export function backOff(retries: number, random: () => number = Math.random): number {
  const wait = Math.min(MAX_DELAY, MIN_DELAY * 2 ** Math.min(retries, 16))
  return Math.round(wait / 2 + (wait / 2) * random())
}

export const silenceOf = ({ commandTimeout }: ResolvedRedis): number => Math.max(commandTimeout, MIN_SILENCE)

export function clientOptions({ redis, blocking }: LinkSettings, credentials: Credentials) {
  const { password, username, database, tls, commandTimeout } = redis
  const timeouts = { connectTimeout: commandTimeout, socketTimeout: silenceOf(redis) + blocking }
  const isNamed = username !== undefined || password !== undefined
  const credentialsProvider = { type: 'async-credentials-provider' as const, credentials: () => credentials.fetch() }
  return {
    RESP: 3 as const,
    name: 'mcp-host',
    ...(isNamed && { credentialsProvider }),
    ...(database !== 0 && { database }),
    socket: tls ? { ...timeouts, tls: true as const, ...readTls(tls) } : timeouts,
    // Waiting is limited in connection.ts.
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
    // Time-outs are in connection.ts: node-redis creates a signal per command, which applies only before the command is
    // sent.
    commandOptions: { timeout: 0 },
  }
}

export const noClient = () => new Error('The client is offline')

export class ServerLink implements Link {
  readonly #settings: LinkSettings
  readonly #credentials: Credentials
  #client: RedisClientType | undefined
  #address: RedisAddress | undefined
  #attempt = 0
  #timer: NodeJS.Timeout | undefined
  #ready = createDeferred<void>()
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
      await this.#ready.promise
    }
  }

  reset() {
    if (this.isReady) this.#restart()
  }

  moved({ host, port }: RedisAddress) {
    const isSame = this.#address?.host === host && this.#address.port === port
    if (!isSame && !this.#closed) this.#restart()
  }

  close() {
    this.#closed = true
    this.#attempt++
    clearTimeout(this.#timer)
    this.#credentials.close()
    this.#client?.destroy()
    this.#ready.resolve()
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

  async #connect(retries = 0) {
    const attempt = ++this.#attempt
    const isLatest = () => attempt === this.#attempt
    clearTimeout(this.#timer)
    let isReported = false
    try {
      const client = await this.#createClient()
      if (!isLatest()) return
      this.#client = client
      let wasReady = false
      client.on('ready', () => {
        if (!isLatest()) return client.destroy()
        wasReady = true
        this.#ready.resolve()
        this.#ready = createDeferred()
        this.#changed()
      })
      client.on('error', cause => {
        if (!isLatest()) return
        isReported = true
        this.#changed(cause)
        if (wasReady && !client.isOpen) void this.#connect()
      })
      await client.connect()
    } catch (cause) {
      if (!isLatest()) return
      if (!isReported) this.#changed(cause)
      this.#timer = setTimeout(() => void this.#connect(retries + 1), backOff(retries, this.#settings.random))
    }
  }

  async #createClient(): Promise<RedisClientType> {
    const { RedisClient } = await import('@redis/client')
    this.#address = await (this.#settings.sentinels?.primary() ?? this.#settings.redis.addresses[0])
    const options = clientOptions(this.#settings, this.#credentials)
    const socket = { ...this.#address, ...options.socket, reconnectStrategy: false as const }
    newClient ??= RedisClient.factory({ RESP: options.RESP })
    return newClient({ ...options, socket }) as unknown as RedisClientType
  }
}
