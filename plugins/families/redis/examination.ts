// Whether the Redis that answers can be used: after each connection, at each beat, and until it does again once it refused.
// For connection.ts, which asks it, and health.ts, which is told.
import { errorText, type Logger } from '../../../core/index.ts'
import {
  CLAIM_KEYS,
  foreignKeys,
  type KeySpaceClaim,
  LEAVE_KEYS,
  SHORTEST_LIFETIME,
  unevenSecrets,
  writeClaim,
} from './key-space.ts'
import type { Refusal } from './refusals.ts'
import { explainThrown, judgeRehearsal, planRehearsal, REHEARSE, type RedisCommandName } from './rehearsal.ts'
import { type RedisScript, redisScript } from './script.ts'
import type { ResolvedRedis } from './settings.ts'

interface ExaminationSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  /** Milliseconds between beats. */
  readonly beat: number
  /** Runs a script, in one round trip. Rejects where it takes longer than a command may. */
  ask(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** Runs the script with this digest. */
  askByDigest(sha: string): Promise<unknown>
  /** `INFO memory`. */
  info(): Promise<string>
}

const REHEARSAL = redisScript(REHEARSE)

/** KEYS: a key of ours. Writes, of which nothing stays, and gives the time. */
const PROBE = redisScript(`
redis.call('HSET', KEYS[1], 'probe', '1')
redis.call('PEXPIRE', KEYS[1], 0)
return redis.call('TIME')
`)

/** One node of a cluster has not the slots of all of these, but by a chance of 1 in 128. */
const TAGS = Array.from({ length: 8 }, (_, index) => `{probe-${index}}`)

export class Examination {
  readonly #settings: ExaminationSettings
  readonly #needs = new Set<RedisCommandName>(['hset', 'pexpire', 'time'])
  #claim: KeySpaceClaim | undefined
  #looked = false
  #compared = false

  constructor(settings: ExaminationSettings) {
    this.#settings = settings
  }

  /** Commands that a plugin will send. */
  need(names: readonly RedisCommandName[]) {
    for (const name of names) this.#needs.add(name)
  }

  claim(claim: KeySpaceClaim) {
    this.#claim = claim
    this.need(['zadd', 'zrange', 'zrem', 'zremrangebyscore'])
  }

  #key(...parts: string[]) {
    return `${this.#settings.redis.keyPrefix}${parts.join(':')}`
  }

  /** Everything, in one round trip. Undefined where Redis can be used; rejects where it was not heard. */
  async examine(hear: (time: number) => void): Promise<Refusal | undefined> {
    const looks = [
      this.#rehearse(),
      this.#tryDigest(),
      this.#probeAll(hear),
      this.#claimKeys(),
      this.#lookForEviction(),
    ]
    return this.#judge(await Promise.allSettled(looks))
  }

  /** What is asked of it at each beat; `hear` is given its clock in milliseconds. */
  async probe(hear: (time: number) => void): Promise<Refusal | undefined> {
    return this.#judge(await Promise.allSettled([this.#probeOnce(TAGS[0] ?? '', hear), this.#claimKeys()]))
  }

  /** This node is none of those that run any more. */
  async leave() {
    if (this.#claim) await this.#settings.ask(LEAVE_KEYS, [this.#nodes], [writeClaim(this.#claim)])
  }

  #judge(found: ReadonlyArray<PromiseSettledResult<Refusal | undefined>>): Refusal | undefined {
    for (const outcome of found) {
      if (outcome.status === 'fulfilled' && outcome.value) return outcome.value
      if (outcome.status === 'fulfilled') continue
      const refusal = explainThrown(outcome.reason, this.#settings.redis.keyPrefix)
      if (!refusal) throw outcome.reason
      return refusal
    }
    return undefined
  }

  async #rehearse() {
    const { ask, redis } = this.#settings
    const plan = planRehearsal(this.#needs, part => this.#key('{probe}', part))
    const replies = (await ask(REHEARSAL, plan.keys, plan.args)) as string[]
    return judgeRehearsal(plan, replies, redis.keyPrefix)
  }

  /** Scripts are asked for by their digests; one that nobody has is not there. */
  async #tryDigest(): Promise<undefined> {
    await this.#settings.askByDigest('0'.repeat(40)).catch(error => {
      if (!errorText(error).includes('NOSCRIPT')) throw error
    })
  }

  async #probeOnce(tag: string, hear: (time: number) => void): Promise<undefined> {
    const [seconds, micros] = (await this.#settings.ask(PROBE, [this.#key(tag, 'beat')], [])) as string[]
    hear(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000))
  }

  /** Whoever talks to one node of a cluster as if it were all of it is told so by some of these. */
  async #probeAll(hear: (time: number) => void): Promise<undefined> {
    const tags = this.#settings.redis.isCluster ? TAGS.slice(0, 1) : TAGS
    await Promise.all(tags.map(tag => this.#probeOnce(tag, hear)))
  }

  /** Once: what is evicted is a session or an event that is gone, and nothing says so. */
  async #lookForEviction(): Promise<undefined> {
    if (this.#looked) return undefined
    const { info, log, redis } = this.#settings
    try {
      const [, policy] = /^maxmemory_policy:([\w-]+)/m.exec(await info()) ?? []
      if (this.#looked) return undefined
      this.#looked = true
      if (policy === undefined || policy === 'noeviction') return undefined
      const fix = 'set its maxmemory-policy to noeviction'
      log.warn(
        { redis: redis.name, policy, fix },
        'Redis evicts keys when it is full: sessions and events would be lost',
      )
    } catch (err) {
      log.debug({ reason: errorText(err) }, 'Redis does not say whether it evicts keys')
    }
    return undefined
  }

  get #nodes() {
    return this.#key('{nodes}', 'secrets')
  }

  async #claimKeys(): Promise<Refusal | undefined> {
    if (!this.#claim) return undefined
    const { ask, beat, log, redis } = this.#settings
    const lifetime = Math.max(SHORTEST_LIFETIME, 3 * beat)
    const args = [writeClaim(this.#claim), String(lifetime), ...this.#claim.fingerprints]
    const [kind, ...others] = (await ask(CLAIM_KEYS, [this.#nodes], args)) as string[]
    if (kind === 'foreign') return foreignKeys(redis)
    const uneven = this.#compared ? undefined : unevenSecrets(this.#claim, others)
    this.#compared = true
    if (uneven !== undefined) {
      const fix = 'deploy [OLD, NEW] to every node before [NEW, OLD], and that before [NEW]: see docs/config.md'
      log.warn({ redis: redis.name, fix }, uneven)
    }
    return undefined
  }
}
