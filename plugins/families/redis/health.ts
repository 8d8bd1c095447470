// Whether Redis answers: what is known of it, who hears of it, and the lines about it in the log. For connection.ts.
import { performance } from 'node:perf_hooks'
import { errorText, type Logger } from '../../../core/index.ts'
import { createOccurrence, RedisTimeout, within } from './failures.ts'
import { nameRefusal, type Refusal } from './refusals.ts'
import { explainTls } from './settings.ts'

interface HealthSettings {
  /** Where Redis is, without a password. */
  readonly name: string
  readonly log: Logger
  /** Whether there is a connection. */
  isConnected(): boolean
  /** Milliseconds without a connection after which nobody waits for one any more. */
  readonly patience: number
}

export class Health {
  readonly #settings: HealthSettings
  readonly #listeners = new Set<(healthy: boolean) => void>()
  /** A connection may be open to something that hangs. */
  #answers = true
  #was = false
  #changed = createOccurrence<void>()
  /** What is known of the Redis that is connected: whether it does what we need. */
  #standing: 'unknown' | 'accepted' | Refusal = 'unknown'
  /** What the log said last: for a refusal its name. */
  #told: 'nothing' | 'up' | 'down' | `refused ${string}` = 'nothing'
  #closed = false
  /** By the monotonic clock, in milliseconds. */
  #downSince = performance.now()
  #heardAt = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  get healthy(): boolean {
    return this.#settings.isConnected() && this.#answers && this.#standing === 'accepted' && !this.#closed
  }

  /** Why it is not healthy, where Redis said so. */
  get refusal(): Refusal | undefined {
    return typeof this.#standing === 'object' ? this.#standing : undefined
  }

  /** Why it is not healthy, in words that anybody may read. */
  get trouble(): string {
    return this.refusal ? `Redis refuses: ${nameRefusal(this.refusal)}` : 'Redis does not answer'
  }

  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The first attempt to connect begins. */
  begin() {
    this.#downSince = performance.now()
  }

  /** A connection came or went; `refusal` where Redis would not have it. */
  connectionChanged(cause?: unknown, refusal?: Refusal) {
    if (this.#settings.isConnected()) {
      this.#answers = true
      this.#heardAt = performance.now()
    } else if (refusal) this.#standing = refusal
    // A connection that is refused ends as well: that is no other news.
    else if (this.#standing === 'accepted' || hasErrno(cause)) this.#standing = 'unknown'
    this.#update(cause)
  }

  /** Redis was examined, or refused a command; undefined: it does what we need. */
  judged(refusal: Refusal | undefined) {
    if (!this.#settings.isConnected()) return
    this.#standing = refusal ?? 'accepted'
    this.#update()
  }

  /** Redis said something. */
  heard() {
    this.#heardAt = performance.now()
    if (this.#answers) return
    this.#answers = true
    this.#update()
  }

  /** An answer is overdue; true where nothing at all was heard since it was asked for. */
  overdue(asked: number, cause: unknown): boolean {
    if (this.#heardAt >= asked) return false
    this.#answers = false
    this.#update(cause)
    return true
  }

  /**
   * Waits for a connection to a Redis that was examined, until `deadline`; not at all where there was none for as long as
   * anybody waits. One that refuses is there: what is only read it may give all the same.
   */
  async whenUsable(deadline: number): Promise<void> {
    const { isConnected, patience } = this.#settings
    while (!isConnected() || this.#standing === 'unknown') {
      const left = Math.min(deadline, this.#downSince + patience) - performance.now()
      if (left <= 0 || this.#closed) throw new RedisTimeout(patience)
      await within(this.#changed.happened, left)
    }
  }

  close() {
    this.#closed = true
    this.#changed.happen()
  }

  #update(cause?: unknown) {
    if (this.#closed) return
    const { healthy } = this
    this.#tell(healthy, cause)
    this.#changed.happen()
    this.#changed = createOccurrence()
    if (healthy === this.#was) return
    this.#was = healthy
    if (!healthy) this.#downSince = performance.now()
    for (const listener of [...this.#listeners]) listener(healthy)
  }

  /** One line when it goes, one when it is back; attempts between them are for those who debug. */
  #tell(healthy: boolean, cause: unknown) {
    const { name: redis, log } = this.#settings
    if (healthy) {
      const away = { redis, seconds: Math.round((performance.now() - this.#downSince) / 100) / 10 }
      if (this.#told === 'nothing') log.info({ redis }, 'connected to Redis')
      else if (this.#told !== 'up') log.info(away, 'Redis is back')
      this.#told = 'up'
    } else if (this.refusal) this.#tellRefusal(this.refusal)
    else if (!this.#answers || !this.#settings.isConnected()) this.#tellAbsence(cause)
  }

  #tellRefusal(refusal: Refusal) {
    const { name: redis, log } = this.#settings
    const { text: reason, fix } = refusal
    const name = nameRefusal(refusal)
    if (this.#told === `refused ${name}`) return
    log.error(
      { redis, reason, fix },
      'Redis refuses what this host needs: not ready, and what cannot do without it gets 503',
    )
    this.#told = `refused ${name}`
  }

  #tellAbsence(cause: unknown) {
    const { name: redis, log } = this.#settings
    // Not connected yet is no news, unless it failed.
    if (cause === undefined && this.#told !== 'up') return
    const reason = cause === undefined ? 'the connection ended' : errorText(cause)
    const fix = explainTls(cause)
    const why = { redis, reason, ...(fix !== undefined && { fix }) }
    if (this.#told === 'down') log.debug(why, 'Redis still does not answer')
    else log.warn(why, 'Redis does not answer; trying again until it does')
    this.#told = 'down'
  }
}

/** An error of the network, such as ECONNREFUSED: nobody is there to refuse us. */
const hasErrno = (cause: unknown) => cause instanceof Error && 'code' in cause
