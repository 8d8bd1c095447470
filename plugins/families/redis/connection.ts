// The shared Redis connection of a host. It reconnects forever; while offline, commands get 503.
import { performance } from 'node:perf_hooks'
import { isDeepStrictEqual } from 'node:util'
import { assertInstalled } from '../../../core/auth.ts'
import type { InternalExamination } from '../../../core/internal.ts'
import { errorText, type Logger, type PluginFinding, StartError } from '../../../core/plugin.ts'
import { storeUnavailable } from '../../../core/transport.ts'
import type { KeySpaceClaim } from '../stores/index.ts'
import { ClusterLink } from './cluster-link.ts'
import { countBatches, createCommands, evaluateOn, type RedisCommands, type RedisScript } from './commands.ts'
import { Examination, type RedisCommandName, Watch } from './examination.ts'
import { createDeferred, explainRefusal, isDisconnection, within } from './failures.ts'
import { Health } from './health.ts'
import { FOREIGN_KEYS } from './key-space.ts'
import { type Link, ServerLink, silenceOf } from './link.ts'
import type { RedisHost, RedisSections, RedisSettings } from './schema.ts'
import { Sentinels } from './sentinels.ts'
import { type RedisAddress, type ResolvedRedis, resolveRedis } from './settings.ts'

/** A separate client for blocking reads. Commands wait while offline. */
export interface RedisReader {
  readonly client: RedisCommands
  close(): void
}

/** The members of the connection that plugins use. */
export type RedisConnection = Pick<
  SharedConnection,
  | ('client' | 'commandTimeout' | 'key' | 'duplicate' | 'healthy' | 'problem' | 'claim' | 'onChange')
  | ('roundTrips' | 'now' | 'readTime' | 'run' | 'evaluate')
>

/** `refused`: Redis returned an error. `unavailable`: Redis did not respond in time or could not be reached. */
type Measure = (milliseconds: number, outcome: 'ok' | 'refused' | 'unavailable') => void

const CONNECTIONS = Symbol('connections to Redis')

/** Opens the shared connection; must be called in `setup`. `needs`: commands besides EVAL. Throws a StartError. */
export function redisConnection(
  host: RedisHost,
  options: RedisSettings = {},
  needs: readonly RedisCommandName[] = [],
  { vital = true }: { readonly vital?: boolean } = {},
): RedisConnection {
  assertInstalled(['@redis/client'], host.config)
  const redis = resolveRedis(host, options)
  const shared = host.share(CONNECTIONS, () => new Set<SharedConnection>(), closeAll)
  const known = [...shared].find(({ settings }) => isDeepStrictEqual(settings, redis))
  const connection = known ?? openConnection(host, redis)
  const isFirst = [...shared].every(({ isVital }) => !isVital)
  shared.add(connection)
  connection.examination.need(needs)
  if (!vital || connection.isVital) return connection
  connection.isVital = true
  host.readiness(isFirst ? 'redis' : `redis ${redis.name}`, () => connection.healthy || connection.problem)
  return connection
}

function openConnection(host: RedisHost, redis: ResolvedRedis): SharedConnection {
  const { name } = redis
  const record = host.metrics.histogram({
    name: 'mcp_host_redis_duration_seconds',
    help: 'Duration of Redis commands that requests wait for, including failed ones.',
    labels: ['redis', 'outcome'],
  })
  const measure: Measure = (milliseconds, outcome) => record(milliseconds / 1_000, { redis: name, outcome })
  const connection = new SharedConnection(redis, host.log, measure)
  const up = {
    name: 'mcp_host_redis_up',
    help: '1 if Redis responds and executes commands, else 0.',
    labels: ['redis'],
  }
  host.metrics.gauge(up, () => [[connection.healthy ? 1 : 0, { redis: name }]])
  if (host.config.purpose !== 'inspect') host.onStart(() => connection.start())
  return connection
}

/** Connects for `mcp-host doctor`, without writing anything. */
export async function examineRedis(options: RedisSettings, about: InternalExamination): Promise<PluginFinding[]> {
  const [check, fix] = ['Redis', 'correct `redis` in the config, or let this machine reach Redis: docs/redis.md']
  try {
    const config = { ...about, section: () => (about.config as Partial<RedisSections>).redis }
    const redis = resolveRedis({ name: 'doctor', config }, options)
    const connection = new SharedConnection(redis, about.log, () => undefined)
    try {
      await connection.start()
      if (!connection.healthy) throw new Error(`${redis.name}: ${connection.problem}`)
      return [{ check, level: 'ok', text: `${redis.name} responds` }]
    } finally {
      await connection.close()
    }
  } catch (error) {
    return [{ check, level: 'wrong', text: errorText(error), fix }]
  }
}

async function closeAll(connections: ReadonlySet<SharedConnection>) {
  await Promise.all([...connections].map(connection => connection.close()))
}

const RESET_INTERVAL = 1_000
/** Milliseconds. A replaced primary can still accept writes, which are lost. */
const SENTINEL_INTERVAL = 500
/** Delay before a refusing cluster is examined again, milliseconds. */
const RETRY_DELAY = 5_000

class SharedConnection {
  /** Commands fail at once while offline. Use `run` for requests. */
  readonly client: RedisCommands
  readonly examination: Examination
  isVital = false
  readonly settings: ResolvedRedis
  readonly #log: Logger
  readonly #sentinels: Sentinels | undefined
  readonly #link: Link
  readonly #readers = new Set<Link>()
  readonly #batches = countBatches()
  readonly #health: Health
  readonly #settled = createDeferred<unknown>()
  #resetAt = Number.NEGATIVE_INFINITY
  #offset: number | undefined
  readonly #watch: Watch
  readonly #measure: Measure

  constructor(redis: ResolvedRedis, log: Logger, measure: Measure) {
    this.settings = redis
    this.#log = log
    this.#measure = measure
    this.#sentinels = this.#findSentinels()
    this.#link = this.#createLink(0, cause => this.#linkChanged(cause))
    const isConnected = () => this.#link.isReady
    this.#health = new Health({ name: redis.name, log, isConnected, timeout: redis.commandTimeout })
    this.client = createCommands(() => this.#link.commands, this.#batches.sending)
    this.examination = new Examination({
      redis,
      log,
      beat: this.#interval,
      // By source: one round trip on a restarted Redis.
      evaluate: ({ source }, keys, args) =>
        this.#measured(
          this.#link.commands.eval(source, { keys: [...keys], arguments: [...args] }),
          this.commandTimeout,
        ),
      evaluateDigest: sha => this.#measured(this.#link.commands.evalSha(sha, {}), this.commandTimeout),
      info: async () => String(await this.#measured(this.#link.commands.info('memory'), this.commandTimeout)),
    })
    this.#watch = new Watch({
      interval: this.#interval,
      examination: this.examination,
      health: this.#health,
      isConnected,
      onTime: time => this.#setClock(time),
      replaced: () => this.#replaced(),
    })
  }

  #findSentinels(): Sentinels | undefined {
    const { settings: redis } = this
    if (!redis.sentinel) return undefined
    const moved = (primary: RedisAddress) => {
      for (const link of [this.#link, ...this.#readers]) link.moved(primary)
    }
    return new Sentinels(
      { redis, log: this.#log, interval: Math.min(this.#interval, SENTINEL_INTERVAL), moved },
      redis.sentinel,
    )
  }

  #createLink(blocking: number, changed: (cause?: unknown) => void): Link {
    const { settings: redis } = this
    const settings = { redis, log: this.#log, sentinels: this.#sentinels, blocking, changed }
    return redis.isCluster ? new ClusterLink(settings) : new ServerLink(settings)
  }

  /** Milliseconds. Heartbeats keep sockets from timing out. */
  get #interval() {
    return silenceOf(this.settings) / 2.5
  }

  get commandTimeout() {
    return this.settings.commandTimeout
  }

  /** True if Redis responds and executes commands. */
  get healthy() {
    return this.#health.healthy
  }

  /** The public reason if it is not healthy. */
  get problem() {
    return this.#health.problem
  }

  /** Batches of commands written so far; for tests. */
  get roundTrips() {
    return this.#batches.count
  }

  key(...parts: string[]) {
    return `${this.settings.keyPrefix}${parts.join(':')}`
  }

  /**
   * Claims a key space; must be called in `setup`. Startup fails if a running host has none of these secrets; later,
   * commands get 503.
   */
  claim(claim: KeySpaceClaim) {
    this.examination.claim(claim)
  }

  onChange(listener: (healthy: boolean) => void) {
    return this.#health.onChange(listener)
  }

  /** A lower bound of the Redis clock in milliseconds, for deadlines of scripts; undefined before the first reply. */
  now() {
    return this.#offset === undefined ? undefined : performance.now() + this.#offset
  }

  async readTime() {
    const [seconds, micros] = await this.#measured(this.#link.commands.time(), this.commandTimeout)
    this.#setClock(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000))
  }

  #setClock(time: number) {
    this.#offset = time - performance.now()
  }

  async start() {
    this.#health.start()
    await this.#link.open()
    this.#sentinels?.start()
    this.#watch.start()
    const cause = await within(this.#settled.promise, this.commandTimeout).catch(late => late)
    await within(this.#watch.examined, this.commandTimeout).catch(() => undefined)
    const refusal = explainRefusal(cause) ?? this.#health.refusal
    if (!refusal?.isPermanent) return
    await this.close()
    throw new StartError('MH2301', `${this.settings.name} refuses this host: ${refusal.text}; ${refusal.fix}`, {
      cause,
    })
  }

  async close() {
    this.#watch.end()
    if (this.healthy) await this.examination.leave().catch(() => undefined)
    this.#health.close()
    this.#sentinels?.close()
    for (const link of [this.#link, ...this.#readers]) link.close()
  }

  /** Blocks for at most `commandTimeout`. Calls `changed` when its connection opens or closes. */
  async duplicate(changed: () => void = () => undefined): Promise<RedisReader> {
    const link = this.#createLink(this.commandTimeout, changed)
    this.#readers.add(link)
    await link.open()
    const close = () => {
      this.#readers.delete(link)
      link.close()
    }
    const commands = async () => {
      await link.whenReady()
      return link.commands
    }
    return { client: createCommands(commands), close }
  }

  #linkChanged(cause?: unknown) {
    const isConnected = this.#link.isReady
    this.#health.connectionChanged(cause, explainRefusal(cause))
    if (isConnected) this.#watch.connected()
    if (isConnected || cause !== undefined) this.#settled.resolve(cause)
  }

  #replaced() {
    this.#sentinels?.skipCurrent()
    this.#reset()
  }

  #reset() {
    if (performance.now() - this.#resetAt < RESET_INTERVAL) return
    this.#resetAt = performance.now()
    this.#link.reset()
  }

  async #measured<Value>(answer: Promise<Value>, timeout: number): Promise<Value> {
    const startedAt = performance.now()
    try {
      const value = await within(answer, timeout)
      this.#health.replied()
      return value
    } catch (thrown) {
      const error = this.#link.hide(thrown)
      const waited = performance.now() - startedAt
      if (!isDisconnection(error)) this.#health.replied()
      // A socket that is silent for this long is dead.
      else if (waited > this.commandTimeout - 5 && this.#health.overdue(startedAt, error)) this.#reset()
      throw error
    }
  }

  /** Runs commands. `timeout`: milliseconds. Rejects with `unavailable`. */
  async run<Value>(act: (client: RedisCommands) => Promise<Value>, timeout = this.commandTimeout): Promise<Value> {
    const startedAt = performance.now()
    const deadline = startedAt + timeout
    try {
      await this.#health.whenUsable(deadline)
      const { refusal } = this.#health
      if (refusal?.code === FOREIGN_KEYS) throw storeUnavailable({ cause: new Error(refusal.text) })
      const value = await this.#measured(act(this.client), deadline - performance.now())
      this.#measure(performance.now() - startedAt, 'ok')
      return value
    } catch (error) {
      const refusal = explainRefusal(error)
      this.#measure(performance.now() - startedAt, isDisconnection(error) ? 'unavailable' : 'refused')
      // The examination sees one node of a cluster only.
      if (refusal?.code === 'CLUSTERDOWN') this.#reset()
      if (refusal) this.#watch.refused(refusal, this.settings.isCluster ? RETRY_DELAY : undefined)
      throw refusal !== undefined || isDisconnection(error) ? storeUnavailable({ cause: error }) : error
    }
  }

  /** Runs a script like `run`: by digest, or by source if Redis does not have it. */
  evaluate(script: RedisScript, keys: readonly string[], args: readonly string[], timeout?: number) {
    return this.run(client => evaluateOn(client, script, keys, args), timeout)
  }
}
