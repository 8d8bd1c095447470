// A client of one Redis: that of an address, or the primary that Sentinels name. Each connection is a client of its own, so
// that its address, its certificates and its password are those of now. node-redis is loaded when the first one connects.
import type { RedisClientType } from '@redis/client'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { backOff, clientOptions, type Link, type LinkSettings, noClient } from './link.ts'
import type { RedisAddress } from './settings.ts'
import { createOccurrence } from './waiting.ts'

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
