// The availability of Redis: state, listeners and log lines.

import { performance } from 'node:perf_hooks'
import { errorText, type Logger } from '../../../core/plugin.ts'
import { createOccurrence, nameRefusal, RedisTimeout, type Refusal, within } from './failures.ts'
import { explainTls } from './settings.ts'

interface HealthSettings {
  readonly name: string
  readonly log: Logger
  isConnected(): boolean
  /** Milliseconds offline after which commands fail at once. */
  readonly patience: number
}

export class Health {
  readonly #settings: HealthSettings
  readonly #listeners = new Set<(healthy: boolean) => void>()
  /** A connected server can hang. */
  #answers = true
  #was = false
  #changed = createOccurrence<void>()
  #standing: 'unknown' | 'accepted' | Refusal = 'unknown'
  #told: 'nothing' | 'up' | 'down' | `refused ${string}` = 'nothing'
  #closed = false
  /** Start of the outage, monotonic milliseconds. */
  #downSince = performance.now()
  #heardAt = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  get healthy(): boolean {
    return this.#settings.isConnected() && this.#answers && this.#standing === 'accepted' && !this.#closed
  }

  get refusal(): Refusal | undefined {
    return typeof this.#standing === 'object' ? this.#standing : undefined
  }

  /** A public reason. */
  get trouble(): string {
    return this.refusal ? `Redis refuses: ${nameRefusal(this.refusal)}` : 'Redis does not respond'
  }

  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  begin() {
    this.#downSince = performance.now()
  }

  connectionChanged(cause?: unknown, refusal?: Refusal) {
    if (this.#settings.isConnected()) {
      this.#answers = true
      this.#heardAt = performance.now()
    } else if (refusal) this.#standing = refusal
    // A refused connection also ends.
    else if (this.#standing === 'accepted' || (cause instanceof Error && 'code' in cause)) this.#standing = 'unknown'
    this.#update(cause)
  }

  judged(refusal: Refusal | undefined) {
    if (!this.#settings.isConnected()) return
    this.#standing = refusal ?? 'accepted'
    this.#update()
  }

  heard() {
    this.#heardAt = performance.now()
    if (this.#answers) return
    this.#answers = true
    this.#update()
  }

  overdue(asked: number, cause: unknown): boolean {
    if (this.#heardAt >= asked) return false
    this.#answers = false
    this.#update(cause)
    return true
  }

  /** Waits until `deadline`, but not after a longer outage. A refusing Redis can still be read. */
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

  #tell(healthy: boolean, cause: unknown) {
    const { name: redis, log } = this.#settings
    if (healthy) {
      const away = { redis, seconds: Math.round((performance.now() - this.#downSince) / 100) / 10 }
      if (this.#told === 'nothing') log.info({ code: 'MH2303', redis }, 'connected to Redis')
      else if (this.#told !== 'up') log.info({ code: 'MH2303', ...away }, 'Redis is back')
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
      { code: 'MH2301', redis, reason, fix },
      'Redis refuses commands that this host requires: not ready, and requests that need Redis get 503',
    )
    this.#told = `refused ${name}`
  }

  #tellAbsence(cause: unknown) {
    const { name: redis, log } = this.#settings
    if (cause === undefined && this.#told !== 'up') return
    const reason = cause === undefined ? 'the connection ended' : errorText(cause)
    const fix = explainTls(cause)
    const why = { redis, reason, ...(fix !== undefined && { fix }) }
    if (this.#told === 'down') log.debug(why, 'Redis still does not respond')
    else log.warn({ code: 'MH2304', ...why }, 'Redis does not respond; retrying')
    this.#told = 'down'
  }
}
