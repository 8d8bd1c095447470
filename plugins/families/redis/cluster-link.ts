// A client of a Redis Cluster. node-redis follows its slots; where that does not lead anywhere for long, as when a node that
// it is told of is gone, or certificates were renewed, all of it is made anew from every node that is known.
import { setMaxListeners } from 'node:events'
import type { RedisClientType, RedisClusterType } from '@redis/client'
import type { RedisCommands } from './commands.ts'
import { type Authenticated, Credentials } from './credentials.ts'
import { within } from './failures.ts'
import { backOff, clientOptions, type Link, type LinkSettings, noClient, silenceOf } from './link.ts'
import { slotsWithoutMaster } from './refusals.ts'
import type { RedisAddress } from './settings.ts'
import { readTls } from './settings.ts'

/** How long a node is away before the others are asked who has its slots, milliseconds. */
const ASK_OTHERS = 500

/** Of every Redis Cluster. */
const SLOTS = 16_384

export const clusterLink = (settings: LinkSettings): Link => new ClusterLink(settings)

const nameOf = ({ host, port }: RedisAddress) => `${host}:${port}`

const missing = (served: number) => slotsWithoutMaster(`${SLOTS - served} of ${SLOTS} slots have no master`)
const countOf = ({ slots }: RedisClusterType) => Object.keys(slots).length

class ClusterLink implements Link {
  readonly #settings: LinkSettings
  readonly #credentials: Credentials
  #cluster: RedisClusterType | undefined
  /** Ends every socket of the cluster, also those that it is still opening. */
  #life = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  /** Runs while the cluster is not whole. */
  #patience: NodeJS.Timeout | undefined
  /** The nodes of the config, and those that were masters when it was whole. */
  #known: readonly RedisAddress[]
  /** The certificates that the connections have, to tell those that were renewed. */
  #certificates = ''
  /** What node-redis knows of the slots, where each was found to have a master: a new one whenever it asks anew. */
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

  /** What the host asks at each beat one node answers: the sockets of the others would be taken for dead. */
  #beat() {
    for (const client of this.#clients()) if (client?.isReady) client.time().catch(() => undefined)
  }

  /** Its clients let commands wait themselves: one node may be there, and another not. */
  async whenReady() {}

  /** It says itself where its keys went, and a silent socket is given up by its own timeout; but are there slots of nobody? */
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
      // It waits for ever for a master that it is told of and that is away: who has its slots may be known next time.
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

  /** As if nothing were connected, until all of it is. */
  #lost(cause: unknown, retries = 0) {
    if (this.#closed) return
    this.#drop()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#connect(retries + 1), backOff(retries, this.#settings.random))
    this.#changed(cause)
  }

  /** Cheap, for it is asked before each command. */
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

  /** Something happened to a node of this cluster, if it is the one that counts. */
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
    // Node's sockets take a signal, which the types of node-redis do not know.
    const socket: typeof options.socket = Object.assign({ reconnectStrategy, signal }, options.socket)
    const cluster = createCluster({
      RESP,
      commandOptions,
      rootNodes: this.#known.map(({ host, port }) => ({ socket: { host, port } })),
      // What blocks has a client of its own, whose commands wait for it.
      defaults: { ...options, disableOfflineQueue: blocking === 0, socket },
      topologyRefreshOnReconnectionAttemptStrategy: ASK_OTHERS,
    }) as unknown as RedisClusterType
    const heard = (cause?: unknown) => this.#nodeChanged(cluster, cause)
    cluster.on('error', heard).on('node-error', heard)
    cluster.on('node-ready', () => heard()).on('node-disconnect', () => heard())
    return cluster
  }
}
