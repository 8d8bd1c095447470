// Examines Redis: required commands, keys, eviction policy and secrets.
import { errorText, type Logger } from '../../../core/plugin.ts'
import { type KeySpaceClaim, MIN_LIFETIME, writeClaim } from '../stores/index.ts'
import { type RedisScript, redisScript } from './commands.ts'
import { explainRefusal, isDisconnection, lackingRights, type Refusal } from './failures.ts'
import type { Health } from './health.ts'
import { CLAIM_KEYS, findOldGrants, findOldKeys, foreignKeys, LEAVE_KEYS, unevenSecrets } from './key-space.ts'
import type { ResolvedRedis } from './settings.ts'

/** Ordered so that each command finds its key. */
const COMMANDS = {
  hset: ['$h', 'field', 'value'],
  hget: ['$h', 'field'],
  hmget: ['$h', 'field'],
  hgetall: ['$h'],
  hlen: ['$h'],
  hstrlen: ['$h', 'field'],
  hdel: ['$h', 'field'],
  zadd: ['$z', '1', 'member'],
  zcard: ['$z'],
  zscore: ['$z', 'member'],
  zcount: ['$z', '-inf', '0'],
  zrange: ['$z', '0', '0'],
  zrangebyscore: ['$z', '-inf', '0'],
  zrevrangebyscore: ['$z', '0', '-inf'],
  zremrangebyrank: ['$z', '0', '-1'],
  zremrangebyscore: ['$z', '-inf', '0'],
  zrem: ['$z', 'member'],
  xadd: ['$x', '*', 'field', 'value'],
  xrange: ['$x', '-', '+', 'COUNT', '1'],
  xrevrange: ['$x', '+', '-', 'COUNT', '1'],
  xread: ['COUNT', '1', 'STREAMS', '$x', '0'],
  xtrim: ['$x', 'MAXLEN', '0'],
  set: ['$t', '1', 'PX', '1000'],
  get: ['$t'],
  incr: ['$t'],
  exists: ['$t'],
  pttl: ['$t'],
  // Removes the key without DEL.
  pexpire: ['$h', '0'],
  pexpireat: ['$h', '0'],
  unlink: ['$t', '$x'],
  time: [],
  scan: ['0', 'COUNT', '1'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type RedisCommandName = keyof typeof COMMANDS

const ORDER = Object.keys(COMMANDS) as RedisCommandName[]
const KINDS = ['h', 'z', 'x', 't'] as const

/** KEYS: test keys. ARGV: commands as JSON. Returns the error of each, or ''. */
const TEST_SCRIPT = `
local replies = {}
for index, command in ipairs(ARGV) do
  local reply = redis.pcall(unpack(cjson.decode(command)))
  replies[index] = type(reply) == 'table' and reply['err'] or ''
end
return replies
`

function planTest(needs: ReadonlySet<RedisCommandName>, key: (part: string) => string) {
  const keys = Object.fromEntries(KINDS.map(kind => [`$${kind}`, key(kind)]))
  const names = ORDER.filter(name => needs.has(name))
  const args = names.map(name => JSON.stringify([name, ...COMMANDS[name].map(word => keys[word] ?? word)]))
  return { names, keys: Object.values(keys), args }
}

const FORBIDS_KEY = /access (?:at least )?one of the keys|permissions to access a key/

function explainTest(
  names: readonly RedisCommandName[],
  replies: readonly string[],
  keyPrefix: string,
): Refusal | undefined {
  const refused = replies.flatMap((text, index) => {
    const refusal = text === '' ? undefined : explainRefusal(new Error(text))
    return refusal ? [{ refusal, name: names[index] ?? '', text }] : []
  })
  const other = refused.find(({ refusal }) => refusal.code !== 'NOPERM' && refusal.code !== 'UNKNOWN')
  if (other) return other.refusal
  const unknown = refused.filter(({ refusal }) => refusal.code === 'UNKNOWN')
  const [first] = unknown
  if (first) return { ...first.refusal, commands: listed(unknown), text: `Redis has no command ${listed(unknown)}` }
  const onKeys = refused.filter(({ text }) => FORBIDS_KEY.test(text))
  const commands = refused.filter(({ text }) => !FORBIDS_KEY.test(text))
  if (commands.length > 0) {
    const missing = listed(commands)
    return { ...lackingRights(`NOPERM: the Redis user cannot run ${missing}`, undefined), commands: missing }
  }
  return onKeys.length > 0 ? forbiddenKeys(keyPrefix) : undefined
}

const listed = (refused: ReadonlyArray<{ readonly name: string }>) => refused.map(({ name }) => name).join(', ')

const forbiddenKeys = (keyPrefix: string) =>
  lackingRights(`NOPERM: the Redis user cannot use keys with the prefix ${keyPrefix}`, keyPrefix)

/** Redis checks the keys of a script before it runs. */
function explainError(thrown: unknown, keyPrefix: string): Refusal | undefined {
  return FORBIDS_KEY.test(errorText(thrown)) ? forbiddenKeys(keyPrefix) : explainRefusal(thrown)
}

interface ExaminationSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  /** Heartbeat interval, milliseconds. */
  readonly beat: number
  evaluate(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<unknown>
  evaluateDigest(sha: string): Promise<unknown>
  info(): Promise<string>
}

const COMMAND_TEST = redisScript(TEST_SCRIPT)

/** KEYS: a test key. Writes and removes it, and returns the time. */
const PROBE = redisScript(`
redis.call('HSET', KEYS[1], 'probe', '1')
redis.call('PEXPIRE', KEYS[1], 0)
return redis.call('TIME')
`)

/** A single cluster node serves all of these slots with a probability of 1 in 128. */
const TAGS = Array.from({ length: 8 }, (_, index) => `{probe-${index}}`)

export class Examination {
  readonly #settings: ExaminationSettings
  readonly #needs = new Set<RedisCommandName>(['hset', 'pexpire', 'time'])
  #claim: KeySpaceClaim | undefined
  #checkedEviction = false
  #checkedGrants = false
  #comparedSecrets = false

  constructor(settings: ExaminationSettings) {
    this.#settings = settings
  }

  need(names: readonly RedisCommandName[]) {
    for (const name of names) this.#needs.add(name)
  }

  claim(claim: KeySpaceClaim) {
    this.#claim = claim
    this.need(['pttl', 'scan', 'zadd', 'zrange', 'zrem', 'zremrangebyscore'])
  }

  #key(...parts: string[]) {
    return `${this.#settings.redis.keyPrefix}${parts.join(':')}`
  }

  async examine(onTime: (time: number) => void): Promise<Refusal | undefined> {
    const checks = [
      this.#testCommands(),
      this.#tryDigest(),
      this.#probeAll(onTime),
      this.#claimKeys(),
      this.#findOldData(),
      this.#checkEviction(),
    ]
    return this.#firstRefusal(await Promise.allSettled(checks))
  }

  /** The heartbeat. `onTime` receives the Redis clock in milliseconds. */
  async probe(onTime: (time: number) => void): Promise<Refusal | undefined> {
    return this.#firstRefusal(await Promise.allSettled([this.#probeOnce(TAGS[0] ?? '', onTime), this.#claimKeys()]))
  }

  async leave() {
    if (this.#claim) await this.#settings.evaluate(LEAVE_KEYS, [this.#nodes], [writeClaim(this.#claim)])
  }

  #firstRefusal(found: ReadonlyArray<PromiseSettledResult<Refusal | undefined>>): Refusal | undefined {
    for (const outcome of found) {
      if (outcome.status === 'fulfilled' && outcome.value) return outcome.value
      if (outcome.status === 'fulfilled') continue
      const refusal = explainError(outcome.reason, this.#settings.redis.keyPrefix)
      if (!refusal) throw outcome.reason
      return refusal
    }
    return undefined
  }

  async #testCommands() {
    const { evaluate, redis } = this.#settings
    const plan = planTest(this.#needs, part => this.#key('{probe}', part))
    const replies = (await evaluate(COMMAND_TEST, plan.keys, plan.args)) as string[]
    return explainTest(plan.names, replies, redis.keyPrefix)
  }

  async #tryDigest(): Promise<undefined> {
    await this.#settings.evaluateDigest('0'.repeat(40)).catch(error => {
      if (!errorText(error).includes('NOSCRIPT')) throw error
    })
  }

  async #probeOnce(tag: string, onTime: (time: number) => void): Promise<undefined> {
    const [seconds, micros] = (await this.#settings.evaluate(PROBE, [this.#key(tag, 'beat')], [])) as string[]
    onTime(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000))
  }

  /** Detects a cluster node that is used as a single server. */
  async #probeAll(onTime: (time: number) => void): Promise<undefined> {
    const tags = this.#settings.redis.isCluster ? TAGS.slice(0, 1) : TAGS
    await Promise.all(tags.map(tag => this.#probeOnce(tag, onTime)))
  }

  async #findOldData(): Promise<Refusal | undefined> {
    if (!this.#claim) return undefined
    const { evaluate, redis } = this.#settings
    const refusal = await findOldKeys(redis, evaluate)
    if (refusal || this.#checkedGrants) return refusal
    // A cluster has the keys on all of its nodes.
    const tags = redis.isCluster ? TAGS : TAGS.slice(0, 1)
    const refusals = await Promise.all(tags.map(tag => findOldGrants(redis, evaluate, this.#key(tag, 'beat'))))
    const found = refusals.find(one => one !== undefined)
    this.#checkedGrants = found === undefined
    return found
  }

  /** Evicted sessions and events are lost silently. */
  async #checkEviction(): Promise<undefined> {
    if (this.#checkedEviction) return undefined
    const { info, log, redis } = this.#settings
    try {
      const [, policy] = /^maxmemory_policy:([\w-]+)/m.exec(await info()) ?? []
      if (this.#checkedEviction) return undefined
      this.#checkedEviction = true
      if (policy === undefined || policy === 'noeviction') return undefined
      const fix = 'set its maxmemory-policy to noeviction'
      log.warn(
        { code: 'MH2321', redis: redis.name, policy, fix },
        'Redis evicts keys when it is full: sessions and events would be lost',
      )
    } catch (err) {
      log.debug({ reason: errorText(err) }, 'the eviction policy of Redis cannot be read')
    }
    return undefined
  }

  get #nodes() {
    return this.#key('{nodes}', 'secrets')
  }

  async #claimKeys(): Promise<Refusal | undefined> {
    if (!this.#claim) return undefined
    const { evaluate, beat, log, redis } = this.#settings
    const lifetime = Math.max(MIN_LIFETIME, 3 * beat)
    const args = [writeClaim(this.#claim), String(lifetime), ...this.#claim.fingerprints]
    const [kind, ...others] = (await evaluate(CLAIM_KEYS, [this.#nodes], args)) as string[]
    if (kind === 'foreign') return foreignKeys(redis)
    const uneven = this.#comparedSecrets ? undefined : unevenSecrets(this.#claim, others)
    this.#comparedSecrets = true
    if (uneven !== undefined) {
      const fix = 'deploy [OLD, NEW] to every node before [NEW, OLD], and that before [NEW]: see docs/config.md'
      log.warn({ code: 'MH2322', redis: redis.name, fix }, uneven)
    }
    return undefined
  }
}

export interface WatchSettings {
  readonly interval: number
  readonly examination: Examination
  readonly health: Health
  isConnected(): boolean
  onTime(time: number): void
  replaced(): void
}

/** Milliseconds between examinations while Redis refuses. */
const RETRY_INTERVAL = 500
/** The same interval if the examination finds no fault. */
const RECHECK_INTERVAL = 10_000

export class Watch {
  readonly #settings: WatchSettings
  #heartbeat: NodeJS.Timeout | undefined
  #timer: NodeJS.Timeout | undefined
  #examining: Promise<void> | undefined
  #connections = 0
  #suspecting = false
  #ended = false

  constructor(settings: WatchSettings) {
    this.#settings = settings
  }

  start() {
    this.#heartbeat = setInterval(() => this.#beat(), this.#settings.interval)
  }

  end() {
    this.#ended = true
    clearInterval(this.#heartbeat)
    clearTimeout(this.#timer)
  }

  connected() {
    this.#connections++
    this.#examine()
  }

  get examined(): Promise<void> {
    return this.#examining ?? Promise.resolve()
  }

  setRefusal(refusal: Refusal | undefined, pause = RETRY_INTERVAL) {
    if (this.#ended) return
    this.#settings.health.setVerdict(refusal)
    if (refusal?.code === 'READONLY') this.#settings.replaced()
    if (refusal) this.#retryLater(pause)
  }

  /** If rights are missing, only the examination can name the command. */
  refused(refusal: Refusal, pause?: number) {
    if (refusal.code !== 'NOPERM' && refusal.code !== 'UNKNOWN') return this.setRefusal(refusal, pause)
    const { examination, health, onTime } = this.#settings
    if (health.refusal || this.#suspecting) return
    this.#suspecting = true
    examination
      .examine(onTime)
      .then(
        found => this.setRefusal(found ?? refusal, found ? RETRY_INTERVAL : RECHECK_INTERVAL),
        () => undefined,
      )
      .finally(() => {
        this.#suspecting = false
      })
  }

  #beat() {
    const { isConnected, health, examination, onTime } = this.#settings
    if (!isConnected() || this.#examining) return
    if (!health.healthy) return this.#examine()
    examination.probe(onTime).then(
      refusal => (refusal ? this.refused(refusal) : this.setRefusal(undefined)),
      () => undefined,
    )
  }

  #examine() {
    this.#examining ??= this.#examineOnce().finally(() => {
      this.#examining = undefined
    })
  }

  async #examineOnce() {
    const { examination, onTime, isConnected } = this.#settings
    for (;;) {
      const connections = this.#connections
      try {
        return this.setRefusal(await examination.examine(onTime))
      } catch (error) {
        // An unexpected error is not a refusal.
        if (!isDisconnection(error)) return this.setRefusal(undefined)
        // A hanging server is examined later, a new connection at once.
        if (connections === this.#connections || !isConnected()) return this.#retryLater(RETRY_INTERVAL)
      }
    }
  }

  #retryLater(pause: number) {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const { isConnected, health } = this.#settings
      if (isConnected() && !health.healthy) this.#examine()
    }, pause).unref()
  }
}
