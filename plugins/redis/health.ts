// Whether Redis answers: what is known of it, who hears of it, and the lines about it in the log. For connection.ts.
import { performance } from 'node:perf_hooks'
import { errorText, type Logger } from '../../core/index.ts'
import { RedisTimeout } from './failures.ts'
import { createOccurrence, within } from './waiting.ts'

export interface HealthSettings {
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
  #told: 'nothing' | 'up' | 'down' = 'nothing'
  #closed = false
  /** By the monotonic clock, in milliseconds. */
  #downSince = performance.now()
  #heardAt = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  get healthy(): boolean {
    return this.#settings.isConnected() && this.#answers && !this.#closed
  }

  onChange(listener: (healthy: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The first attempt to connect begins. */
  begin() {
    this.#downSince = performance.now()
  }

  /** A connection came or went. */
  connectionChanged(cause?: unknown) {
    if (this.#settings.isConnected()) {
      this.#answers = true
      this.#heardAt = performance.now()
    }
    this.#update(cause)
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

  /** Waits for a connection until `deadline`; not at all where there was none for as long as anybody waits. */
  async whenConnected(deadline: number): Promise<void> {
    const { isConnected, patience } = this.#settings
    while (!isConnected()) {
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
    if (healthy === this.#was) return
    this.#was = healthy
    if (!healthy) this.#downSince = performance.now()
    this.#changed.happen()
    this.#changed = createOccurrence()
    for (const listener of [...this.#listeners]) listener(healthy)
  }

  /** One line when it goes, one when it is back; attempts between them are for those who debug. */
  #tell(healthy: boolean, cause: unknown) {
    const { name: redis, log } = this.#settings
    if (healthy) {
      const away = { redis, seconds: Math.round((performance.now() - this.#downSince) / 100) / 10 }
      if (this.#told === 'down') log.info(away, 'Redis is back')
      else if (this.#told === 'nothing') log.info({ redis }, 'connected to Redis')
      this.#told = 'up'
      return
    }
    // Not connected yet is no news, unless it failed.
    if (cause === undefined && this.#told !== 'up') return
    const reason = cause === undefined ? 'the connection ended' : errorText(cause)
    if (this.#told === 'down') log.debug({ redis, reason }, 'Redis still does not answer')
    else log.warn({ redis, reason }, 'Redis does not answer; trying again until it does')
    this.#told = 'down'
  }
}
