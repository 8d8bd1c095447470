// A client of a Redis Cluster, replaced by a new one if node-redis cannot recover.
import { setMaxListeners } from 'node:events'
import type { RedisClientType, RedisClusterType } from '@redis/client'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { slotsWithoutMaster, within } from './failures.ts'
import { backOff, clientOptions, type Link, type LinkSettings, noClient, silenceOf } from './link.ts'
import { type RedisAddress, readTls } from './settings.ts'

/** Milliseconds after which other nodes are queried for the slots of a lost node. */
const REFRESH_DELAY = 500

const SLOTS = 16_384

const formatAddress = ({ host, port }: RedisAddress) => `${host}:${port}`

const missingSlots = (served: number) => slotsWithoutMaster(`${SLOTS - served} of ${SLOTS} slots have no master`)
const countSlots = ({ slots }: RedisClusterType) => Object.keys(slots).length

export class ClusterLink implements Link {
  readonly #settings: LinkSettings
  readonly #credentials: Credentials
  #cluster: RedisClusterType | undefined
  #abort = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #graceTimer: NodeJS.Timeout | undefined
  /** Configured nodes, and masters of the last complete state. */
  #known: readonly RedisAddress[]
  #certificates = ''
  /** The slot table of the last complete state; node-redis replaces it on each discovery. */
  #complete: RedisClusterType['slots'] | undefined
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
    if (this.#isComplete(cluster)) return cluster as unknown as RedisCommands
    const cause = missingSlots(countSlots(cluster))
    this.#handleLoss(cause)
    throw cause
  }

  get isReady() {
    const cluster = this.#cluster
    if (!cluster?.isReady || !this.#isComplete(cluster)) return false
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
        if (served < SLOTS && cluster === this.#cluster) this.#handleLoss(missingSlots(served))
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
    this.#disconnect()
  }

  #disconnect() {
    clearTimeout(this.#graceTimer)
    this.#graceTimer = undefined
    const cluster = this.#cluster
    this.#cluster = undefined
    this.#abort.abort()
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
      if (!this.#isComplete(cluster)) throw missingSlots(countSlots(cluster))
      this.#saveNodes(cluster)
      this.#changed()
    } catch (cause) {
      this.#handleLoss(cause, retries)
    }
  }

  #handleLoss(cause: unknown, retries = 0) {
    if (this.#closed) return
    this.#disconnect()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#connect(retries + 1), backOff(retries, this.#settings.random))
    this.#changed(cause)
  }

  #isComplete(cluster: RedisClusterType): boolean {
    const { slots } = cluster
    if (slots !== this.#complete && countSlots(cluster) === SLOTS) this.#complete = slots
    return slots === this.#complete
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
      clearTimeout(this.#graceTimer)
      this.#graceTimer = undefined
      this.#saveNodes(of)
    } else if (cause !== undefined && this.#hasNewCertificates()) this.#renew()
    else this.#graceTimer ??= setTimeout(() => this.#renew(), silenceOf(this.#settings.redis)).unref()
  }

  #saveNodes({ masters }: RedisClusterType) {
    const { addresses } = this.#settings.redis
    const configured = new Set(addresses.map(formatAddress))
    this.#known = [...addresses, ...masters.filter(master => !configured.has(formatAddress(master)))]
  }

  #renew() {
    if (this.#closed) return
    this.#disconnect()
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
    this.#abort = new AbortController()
    const { signal } = this.#abort
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
      topologyRefreshOnReconnectionAttemptStrategy: REFRESH_DELAY,
    }) as unknown as RedisClusterType
    const onEvent = (cause?: unknown) => this.#nodeChanged(cluster, cause)
    cluster.on('error', onEvent).on('node-error', onEvent)
    cluster.on('node-ready', () => onEvent()).on('node-disconnect', () => onEvent())
    return cluster
  }
}
