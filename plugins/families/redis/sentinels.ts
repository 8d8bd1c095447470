// Queries Sentinels for the primary. The client of node-redis is not used, because it repeats lost commands.
import { errorText, type Logger } from '../../../core/plugin.ts'
import { within, withoutPassword } from './failures.ts'
import { type RedisAddress, type ResolvedRedis, type ResolvedSentinel, readTls } from './settings.ts'

export interface SentinelsSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  readonly interval: number
  moved(primary: RedisAddress): void
}

interface Client {
  sendCommand(words: readonly string[]): Promise<unknown>
  readonly isReady: boolean
  destroy(): void
}

export class Sentinels {
  readonly #settings: SentinelsSettings
  readonly #sentinel: ResolvedSentinel
  #first = 0
  #open: { readonly index: number; readonly client: Client } | undefined
  #primary: RedisAddress | undefined
  #query: Promise<RedisAddress> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(settings: SentinelsSettings, sentinel: ResolvedSentinel) {
    this.#settings = settings
    this.#sentinel = sentinel
  }

  start() {
    this.#timer = setInterval(() => void this.primary().catch(() => undefined), this.#settings.interval).unref()
  }

  close() {
    this.#closed = true
    clearInterval(this.#timer)
    this.#disconnect()
  }

  skipCurrent() {
    this.#first = (this.#first + 1) % this.#settings.redis.addresses.length
    this.#disconnect()
  }

  primary(): Promise<RedisAddress> {
    this.#query ??= this.#queryAll().finally(() => {
      this.#query = undefined
    })
    return this.#query
  }

  async #queryAll(): Promise<RedisAddress> {
    const { addresses } = this.#settings.redis
    const failures: string[] = []
    for (let offset = 0; offset < addresses.length && !this.#closed; offset++) {
      const index = (this.#first + offset) % addresses.length
      try {
        const primary = await this.#queryOne(index)
        this.#first = index
        this.#setPrimary(primary)
        return primary
      } catch (error) {
        this.#disconnect()
        const { host = '', port } = addresses[index] ?? {}
        const message = errorText(withoutPassword(error, this.#sentinel.password))
        failures.push(`the Sentinel ${host}:${port} responded: ${message}`)
      }
    }
    throw Object.assign(new Error(failures.join('; ')), { code: 'ERR_REDIS_SENTINEL' })
  }

  #setPrimary(primary: RedisAddress) {
    const known = this.#primary
    if (known?.host === primary.host && known.port === primary.port) return
    this.#primary = primary
    if (this.#closed) return
    const { redis, log, moved } = this.#settings
    log.info(
      { code: 'MH2305', redis: redis.name, primary: `${primary.host}:${primary.port}` },
      'Sentinels name the primary of Redis',
    )
    if (known) moved(primary)
  }

  async #queryOne(index: number): Promise<RedisAddress> {
    const timeout = this.#settings.redis.commandTimeout / 2
    const client = await this.#connect(index, timeout)
    const { name } = this.#sentinel
    const reply = await within(client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), timeout)
    if (!Array.isArray(reply)) throw new Error(`it watches no primary of the name ${JSON.stringify(name)}`)
    return { host: String(reply[0]), port: Number(reply[1]) }
  }

  async #connect(index: number, timeout: number): Promise<Client> {
    if (this.#open?.index === index && this.#open.client.isReady) return this.#open.client
    this.#disconnect()
    const { createClient } = await import('@redis/client')
    const { redis, interval } = this.#settings
    const { username, password } = this.#sentinel
    const timeouts = { connectTimeout: timeout, socketTimeout: timeout + interval * 2 }
    const socket = { ...redis.addresses[index], ...timeouts, reconnectStrategy: false as const }
    const client = createClient({
      // Not every Sentinel supports HELLO.
      RESP: 2,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      socket: redis.tls ? { ...socket, tls: true as const, ...readTls(redis.tls) } : socket,
      disableOfflineQueue: true,
      disableClientInfo: true,
      maintNotifications: 'disabled',
      commandOptions: { timeout: 0 },
    })
    client.on('error', () => undefined)
    const opened = client as unknown as Client
    this.#open = { index, client: opened }
    await within(client.connect(), timeout)
    return opened
  }

  #disconnect() {
    this.#open?.client.destroy()
    this.#open = undefined
  }
}
