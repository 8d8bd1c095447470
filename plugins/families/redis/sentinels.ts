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

interface Asked {
  sendCommand(words: readonly string[]): Promise<unknown>
  readonly isReady: boolean
  destroy(): void
}

export class Sentinels {
  readonly #settings: SentinelsSettings
  readonly #sentinel: ResolvedSentinel
  #first = 0
  #open: { readonly index: number; readonly client: Asked } | undefined
  #primary: RedisAddress | undefined
  #asking: Promise<RedisAddress> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(settings: SentinelsSettings, sentinel: ResolvedSentinel) {
    this.#settings = settings
    this.#sentinel = sentinel
  }

  begin() {
    this.#timer = setInterval(() => void this.primary().catch(() => undefined), this.#settings.interval).unref()
  }

  close() {
    this.#closed = true
    clearInterval(this.#timer)
    this.#leave()
  }

  distrust() {
    this.#first = (this.#first + 1) % this.#settings.redis.addresses.length
    this.#leave()
  }

  primary(): Promise<RedisAddress> {
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #askAll(): Promise<RedisAddress> {
    const { addresses } = this.#settings.redis
    const failures: string[] = []
    for (let turn = 0; turn < addresses.length && !this.#closed; turn++) {
      const index = (this.#first + turn) % addresses.length
      try {
        const primary = await this.#askOne(index)
        this.#first = index
        this.#heard(primary)
        return primary
      } catch (error) {
        this.#leave()
        const { host = '', port } = addresses[index] ?? {}
        const told = errorText(withoutPassword(error, this.#sentinel.password))
        failures.push(`the Sentinel ${host}:${port} responded: ${told}`)
      }
    }
    throw Object.assign(new Error(failures.join('; ')), { code: 'ERR_REDIS_SENTINEL' })
  }

  #heard(primary: RedisAddress) {
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

  async #askOne(index: number): Promise<RedisAddress> {
    const patience = this.#settings.redis.commandTimeout / 2
    const client = await this.#clientOf(index, patience)
    const { name } = this.#sentinel
    const reply = await within(client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), patience)
    if (!Array.isArray(reply)) throw new Error(`it watches no primary of the name ${JSON.stringify(name)}`)
    return { host: String(reply[0]), port: Number(reply[1]) }
  }

  async #clientOf(index: number, patience: number): Promise<Asked> {
    if (this.#open?.index === index && this.#open.client.isReady) return this.#open.client
    this.#leave()
    const { createClient } = await import('@redis/client')
    const { redis, interval } = this.#settings
    const { username, password } = this.#sentinel
    const timeouts = { connectTimeout: patience, socketTimeout: patience + interval * 2 }
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
    const asked = client as unknown as Asked
    this.#open = { index, client: asked }
    await within(client.connect(), patience)
    return asked
  }

  #leave() {
    this.#open?.client.destroy()
    this.#open = undefined
  }
}
