// After an outage of a session store: reports answered requests, and tolerates missing sessions for a while.
import type { PluginHost } from '../../../core/index.ts'
import type { RequestId } from '../../../core/transport.ts'

/** Milliseconds for which other nodes may still restore sessions. */
const UNSURE = 10_000

/** Maximum sessions with unreported answers. */
const MAX_UNTOLD = 10_000

/** Distinguishes `1` and `'1'`. */
export const requestKey = (id: RequestId) => JSON.stringify(id)

export interface SessionOutageSettings {
  readonly log: PluginHost['log']
  readonly untold: string
  /** Reports answered requests to the store. */
  tell(digest: string, requests: string[]): Promise<unknown>
}

export class SessionOutage {
  readonly #settings: SessionOutageSettings
  /** Answered requests that are not reported yet. */
  readonly #untold = new Map<string, RequestId[]>()
  #unsureUntil = 0

  constructor(settings: SessionOutageSettings) {
    this.#settings = settings
  }

  /** Reports answered requests now, or after the outage. */
  leave(digest: string, requests: readonly RequestId[]) {
    if (requests.length === 0) return
    const { log, untold, tell } = this.#settings
    tell(digest, requests.map(requestKey)).catch(err => {
      log.debug({ err }, untold)
      if (this.#untold.size < MAX_UNTOLD) this.#untold.set(digest, [...(this.#untold.get(digest) ?? []), ...requests])
    })
  }

  /** Call it when the store is back. */
  end() {
    this.#unsureUntil = performance.now() + UNSURE
    const untold = [...this.#untold]
    this.#untold.clear()
    for (const [digest, requests] of untold) this.leave(digest, requests)
  }

  get unsure(): boolean {
    return performance.now() < this.#unsureUntil
  }
}
