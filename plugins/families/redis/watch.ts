// Keeps asking whether Redis can be used: once it is connected, at each beat, and more often while it cannot. For
// connection.ts; examination.ts is what is asked.
import type { Examination } from './examination.ts'
import { isDisconnection } from './failures.ts'
import type { Health } from './health.ts'
import type { Refusal } from './refusals.ts'

export interface WatchSettings {
  /** Milliseconds between beats. */
  readonly interval: number
  readonly examination: Examination
  readonly health: Health
  isConnected(): boolean
  /** The clock of Redis, in milliseconds. */
  hear(time: number): void
  /** What was the primary is a replica now: its name may lead to the new one. */
  replaced(): void
}

/** How often a Redis that refuses is asked whether it still does, milliseconds. */
const ASK_AGAIN = 500
/** The same where the examination finds nothing wrong, milliseconds. */
const SUSPECTED = 10_000

export class Watch {
  readonly #settings: WatchSettings
  #heartbeat: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
  #examining: Promise<void> | undefined
  /** How often there was a new connection. */
  #connections = 0
  #suspecting = false
  #ended = false

  constructor(settings: WatchSettings) {
    this.#settings = settings
  }

  begin() {
    this.#heartbeat = setInterval(() => this.#beat(), this.#settings.interval)
  }

  end() {
    this.#ended = true
    clearInterval(this.#heartbeat)
    clearTimeout(this.#again)
  }

  /** There is a new connection: until it is known whether Redis can be used nobody uses it. */
  connected() {
    this.#connections++
    this.#examine()
  }

  /** Resolves when the examination that is under way has ended. */
  get examined(): Promise<void> {
    return this.#examining ?? Promise.resolve()
  }

  /** Redis was examined, or refused a command; `pause` until it is asked again, in milliseconds. */
  judge(refusal: Refusal | undefined, pause = ASK_AGAIN) {
    if (this.#ended) return
    this.#settings.health.judged(refusal)
    if (refusal?.code === 'READONLY') this.#settings.replaced()
    if (refusal) this.#askAgain(pause)
  }

  /**
   * A command was refused. Where it is a matter of rights, Redis does not say of which: the examination does, and has the
   * last word unless it finds nothing.
   */
  refused(refusal: Refusal, pause?: number) {
    if (refusal.code !== 'NOPERM' && refusal.code !== 'UNKNOWN') return this.judge(refusal, pause)
    const { examination, health, hear } = this.#settings
    if (health.refusal || this.#suspecting) return
    this.#suspecting = true
    examination
      .examine(hear)
      .then(
        found => this.judge(found ?? refusal, found ? ASK_AGAIN : SUSPECTED),
        () => undefined,
      )
      .finally(() => {
        this.#suspecting = false
      })
  }

  #beat() {
    const { isConnected, health, examination, hear } = this.#settings
    if (!isConnected() || this.#examining) return
    if (!health.healthy) return this.#examine()
    examination.probe(hear).then(
      refusal => (refusal ? this.refused(refusal) : this.judge(undefined)),
      () => undefined,
    )
  }

  #examine() {
    this.#examining ??= this.#examineOnce().finally(() => {
      this.#examining = undefined
    })
  }

  async #examineOnce() {
    const { examination, hear, isConnected } = this.#settings
    for (;;) {
      const connections = this.#connections
      try {
        return this.judge(await examination.examine(hear))
      } catch (error) {
        // What nobody foresaw is no refusal: whoever asks is told.
        if (!isDisconnection(error)) return this.judge(undefined)
        // What hangs is asked again in a while; a new connection at once.
        if (connections === this.#connections || !isConnected()) return this.#askAgain(ASK_AGAIN)
      }
    }
  }

  #askAgain(pause: number) {
    clearTimeout(this.#again)
    this.#again = setTimeout(() => {
      const { isConnected, health } = this.#settings
      if (isConnected() && !health.healthy) this.#examine()
    }, pause).unref()
  }
}
