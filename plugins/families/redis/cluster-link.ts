// A client of a Redis Cluster, replaced by a new one if node-redis cannot recover.
import { setMaxListeners } from 'node:events'
import type { RedisClientType, RedisClusterType } from '@redis/client'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { slotsWithoutMaster, within } from './failures.ts'
import { backOff, clientOptions, type Link, type LinkSettings, noClient, silenceOf } from './link.ts'
import { type RedisAddress, readTls } from './settings.ts'

/** Milliseconds after which other nodes are queried for the slots of a lost node. */
const ASK_OTHERS = 500

const SLOTS = 16_384

const nameOf = ({ host, port }: RedisAddress) => `${host}:${port}`

const missing = (served: number) => slotsWithoutMaster(`${SLOTS - served} of ${SLOTS} slots have no master`)
const countOf = ({ slots }: RedisClusterType) => Object.keys(slots).length

export class ClusterLink implements Link {
  readonly #settings: LinkSettings
  readonly #credentials: Credentials
  #cluster: RedisClusterType | undefined
  #life = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #patience: NodeJS.Timeout | undefined
  /** Configured nodes, and masters of the last complete state. */
  #known: readonly RedisAddress[]
  #certificates = ''
  /** The slot table of the last complete state; node-redis replaces it on each discovery. */
  #whole: RedisClusterType['slots'] | undefined
  #closed = false

  constructor(settings: LinkSettings) {
    this.#settings = settings
    this.#known = settings.redis.addresses
    const open = () => this.#clients().filter(client => client?.isReady) as unknown as Authenticated[]
    this.#credentials = new Credentials({ redis: settings.redis, log: settings.log, open })
  }

  #clients(): ReadonlyArray<RedisClientType | undefined> {
    return (this.#cluster?.masters ?? []).map(({ client }) => client as RedisClientType | undefined)
  }

  get commands(): RedisCommands {
    const cluster = this.#cluster
    if (!cluster) throw noClient()
    if (this.#isWhole(cluster)) return cluster as unknown as RedisCommands
    const cause = missing(countOf(cluster))
    this.#lost(cause)
    throw cause
  }

  get isReady() {
    const cluster = this.#cluster
    if (!cluster?.isReady || !this.#isWhole(cluster)) return false
    return this.#clients().every(client => client?.isReady === true)
  }

  async open() {
    await import('@redis/client')
    if (this.#closed) return
    this.#heartbeat = setInterval(() => this.#beat(), silenceOf(this.#settings.redis) / 2.5).unref()
    void this.#connect()
  }

  #beat() {
    for (const client of this.#clients()) if (client?.isReady) client.time().catch(() => undefined)
  }

  async whenReady() {}

  /** node-redis follows moved slots; this method detects slots without a master. */
  reset() {
    const cluster = this.#cluster
    const client = this.#clients().find(one => one?.isReady)
    if (!cluster || !client) return
    void client.clusterSlots().then(
      parts => {
        const served = parts.reduce((sum, { from, to }) => sum + to - from + 1, 0)
        if (served < SLOTS && cluster === this.#cluster) this.#lost(missing(served))
      },
      () => undefined,
    )
  }

  moved() {}

  close() {
    this.#closed = true
    clearTimeout(this.#timer)
    clearInterval(this.#heartbeat)
    this.#credentials.close()
    this.#drop()
  }

  #drop() {
    clearTimeout(this.#patience)
    this.#patience = undefined
    const cluster = this.#cluster
    this.#cluster = undefined
    this.#life.abort()
    if (cluster?.isOpen) cluster.destroy()
  }

  async #connect(retries = 0) {
    try {
      const cluster = await this.#createCluster()
      if (this.#closed) return
      this.#cluster = cluster
      // node-redis would wait forever for a lost master.
      const failed = new Promise<never>((_, reject) => void cluster.once('node-error', reject))
      await within(Promise.race([cluster.connect(), failed]), silenceOf(this.#settings.redis))
      if (this.#cluster !== cluster) return
      if (!this.#isWhole(cluster)) throw missing(countOf(cluster))
      this.#remember(cluster)
      this.#changed()
    } catch (cause) {
      this.#lost(cause, retries)
    }
  }

  #lost(cause: unknown, retries = 0) {
    if (this.#closed) return
    this.#drop()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#connect(retries + 1), backOff(retries, this.#settings.random))
    this.#changed(cause)
  }

  #isWhole(cluster: RedisClusterType): boolean {
    const { slots } = cluster
    if (slots !== this.#whole && countOf(cluster) === SLOTS) this.#whole = slots
    return slots === this.#whole
  }

  #changed(cause?: unknown) {
    this.#settings.changed(this.hide(cause))
  }

  hide(thrown: unknown) {
    return this.#credentials.hide(thrown)
  }

  #nodeChanged(of: RedisClusterType, cause?: unknown) {
    if (of !== this.#cluster || this.#closed) return
    this.#changed(cause)
    if (!of.isReady) return
    if (this.isReady) {
      clearTimeout(this.#patience)
      this.#patience = undefined
      this.#remember(of)
    } else if (cause !== undefined && this.#hasNewCertificates()) this.#renew()
    else this.#patience ??= setTimeout(() => this.#renew(), silenceOf(this.#settings.redis)).unref()
  }

  #remember({ masters }: RedisClusterType) {
    const { addresses } = this.#settings.redis
    const given = new Set(addresses.map(nameOf))
    this.#known = [...addresses, ...masters.filter(master => !given.has(nameOf(master)))]
  }

  #renew() {
    if (this.#closed) return
    this.#drop()
    clearTimeout(this.#timer)
    void this.#connect()
  }

  #readCertificates(): string {
    const { tls } = this.#settings.redis
    return tls ? JSON.stringify(readTls(tls)) : ''
  }

  #hasNewCertificates(): boolean {
    try {
      return this.#readCertificates() !== this.#certificates
    } catch {
      return false
    }
  }

  async #createCluster(): Promise<RedisClusterType> {
    const { createCluster } = await import('@redis/client')
    this.#certificates = this.#readCertificates()
    const { blocking, random } = this.#settings
    const { RESP, commandOptions, ...options } = clientOptions(this.#settings, this.#credentials)
    this.#life = new AbortController()
    const { signal } = this.#life
    setMaxListeners(0, signal)
    const reconnectStrategy = (retries: number) => !signal.aborted && backOff(retries, random)
    // Node accepts a signal here; the types of node-redis omit it.
    const socket: typeof options.socket = Object.assign({ reconnectStrategy, signal }, options.socket)
    const cluster = createCluster({
      RESP,
      commandOptions,
      rootNodes: this.#known.map(({ host, port }) => ({ socket: { host, port } })),
      // Clients for blocking commands queue them.
      defaults: { ...options, disableOfflineQueue: blocking === 0, socket },
      topologyRefreshOnReconnectionAttemptStrategy: ASK_OTHERS,
    }) as unknown as RedisClusterType
    const heard = (cause?: unknown) => this.#nodeChanged(cluster, cause)
    cluster.on('error', heard).on('node-error', heard)
    cluster.on('node-ready', () => heard()).on('node-disconnect', () => heard())
    return cluster
  }
}
