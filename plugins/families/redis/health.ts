// The availability of Redis: state, listeners and log lines.

import { performance } from 'node:perf_hooks'
import { errorText, type Logger } from '../../../core/plugin.ts'
import { createDeferred, nameRefusal, RedisTimeout, type Refusal, within } from './failures.ts'
import { explainTls } from './settings.ts'

interface HealthSettings {
  readonly name: string
  readonly log: Logger
  isConnected(): boolean
  /** Milliseconds offline after which commands fail at once. */
  readonly timeout: number
}

export class Health {
  readonly #settings: HealthSettings
  readonly #listeners = new Set<(healthy: boolean) => void>()
  /** A connected server can hang. */
  #responds = true
  #wasHealthy = false
  #changed = createDeferred<void>()
  #verdict: 'unknown' | 'accepted' | Refusal = 'unknown'
  #reported: 'nothing' | 'up' | 'down' | `refused ${string}` = 'nothing'
  #closed = false
  /** Start of the outage, monotonic milliseconds. */
  #downSince = performance.now()
  #repliedAt = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  get healthy(): boolean {
    return this.#settings.isConnected() && this.#responds && this.#verdict === 'accepted' && !this.#closed
  }

  get refusal(): Refusal | undefined {
    return typeof this.#verdict === 'object' ? this.#verdict : undefined
  }

  /** A public reason. */
  get problem(): string {
    return this.refusal ? `Redis refuses: ${nameRefusal(this.refusal)}` : 'Redis does not respond'
  }

  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  start() {
    this.#downSince = performance.now()
  }

  connectionChanged(cause?: unknown, refusal?: Refusal) {
    if (this.#settings.isConnected()) {
      this.#responds = true
      this.#repliedAt = performance.now()
    } else if (refusal) this.#verdict = refusal
    // A refused connection also ends.
    else if (this.#verdict === 'accepted' || (cause instanceof Error && 'code' in cause)) this.#verdict = 'unknown'
    this.#update(cause)
  }

  setVerdict(refusal: Refusal | undefined) {
    if (!this.#settings.isConnected()) return
    this.#verdict = refusal ?? 'accepted'
    this.#update()
  }

  replied() {
    this.#repliedAt = performance.now()
    if (this.#responds) return
    this.#responds = true
    this.#update()
  }

  overdue(since: number, cause: unknown): boolean {
    if (this.#repliedAt >= since) return false
    this.#responds = false
    this.#update(cause)
    return true
  }

  /** Waits until `deadline`, but not after a longer outage. A refusing Redis can still be read. */
  async whenUsable(deadline: number): Promise<void> {
    const { isConnected, timeout } = this.#settings
    while (!isConnected() || this.#verdict === 'unknown') {
      const remaining = Math.min(deadline, this.#downSince + timeout) - performance.now()
      if (remaining <= 0 || this.#closed) throw new RedisTimeout(timeout)
      await within(this.#changed.promise, remaining)
    }
  }

  close() {
    this.#closed = true
    this.#changed.resolve()
  }

  #update(cause?: unknown) {
    if (this.#closed) return
    const { healthy } = this
    this.#report(healthy, cause)
    this.#changed.resolve()
    this.#changed = createDeferred()
    if (healthy === this.#wasHealthy) return
    this.#wasHealthy = healthy
    if (!healthy) this.#downSince = performance.now()
    for (const listener of [...this.#listeners]) listener(healthy)
  }

  #report(healthy: boolean, cause: unknown) {
    const { name: redis, log } = this.#settings
    if (healthy) {
      const outage = { redis, seconds: Math.round((performance.now() - this.#downSince) / 100) / 10 }
      if (this.#reported === 'nothing') log.info({ code: 'MH2303', redis }, 'connected to Redis')
      else if (this.#reported !== 'up') log.info({ code: 'MH2303', ...outage }, 'Redis is back')
      this.#reported = 'up'
    } else if (this.refusal) this.#reportRefusal(this.refusal)
    else if (!this.#responds || !this.#settings.isConnected()) this.#reportOutage(cause)
  }

  #reportRefusal(refusal: Refusal) {
    const { name: redis, log } = this.#settings
    const { text: reason, fix } = refusal
    const name = nameRefusal(refusal)
    if (this.#reported === `refused ${name}`) return
    log.error(
      { code: 'MH2301', redis, reason, fix },
      'Redis refuses commands that this host requires: not ready, and requests that need Redis get 503',
    )
    this.#reported = `refused ${name}`
  }

  #reportOutage(cause: unknown) {
    const { name: redis, log } = this.#settings
    if (cause === undefined && this.#reported !== 'up') return
    const reason = cause === undefined ? 'the connection ended' : errorText(cause)
    const fix = explainTls(cause) ?? 'start Redis, or correct `redis` in the config: docs/redis.md'
    const why = { redis, reason, fix }
    if (this.#reported === 'down') log.debug(why, 'Redis still does not respond')
    else log.warn({ code: 'MH2304', ...why }, 'Redis does not respond; retrying')
    this.#reported = 'down'
  }
}
