// Examines Redis after each connection, at each heartbeat, and more often while it refuses.
import type { Examination } from './examination.ts'
import { isDisconnection } from './failures.ts'
import type { Health } from './health.ts'
import type { Refusal } from './refusals.ts'

export interface WatchSettings {
  readonly interval: number
  readonly examination: Examination
  readonly health: Health
  isConnected(): boolean
  hear(time: number): void
  replaced(): void
}

/** Milliseconds between examinations while Redis refuses. */
const ASK_AGAIN = 500
/** The same if the examination finds nothing wrong. */
const SUSPECTED = 10_000

export class Watch {
  readonly #settings: WatchSettings
  #heartbeat: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
  #examining: Promise<void> | undefined
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

  connected() {
    this.#connections++
    this.#examine()
  }

  get examined(): Promise<void> {
    return this.#examining ?? Promise.resolve()
  }

  judge(refusal: Refusal | undefined, pause = ASK_AGAIN) {
    if (this.#ended) return
    this.#settings.health.judged(refusal)
    if (refusal?.code === 'READONLY') this.#settings.replaced()
    if (refusal) this.#askAgain(pause)
  }

  /** For missing rights only the examination knows the command. */
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
        // An unexpected error is no refusal.
        if (!isDisconnection(error)) return this.judge(undefined)
        // A hanging server is examined later, a new connection at once.
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
