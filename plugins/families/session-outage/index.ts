// The outage of a shared session store: answered requests are reported later, and missing sessions may still be restored.
import type { PluginHost } from '../../../core/index.ts'
import type { RequestId } from '../../../core/transport.ts'

/** How long other nodes may still restore sessions after an outage, milliseconds. */
const UNSURE = 10_000

/** Maximum number of sessions with unreported requests. */
const MAX_UNTOLD = 10_000

/** The key of a request in stores: `1` and `'1'` differ. */
export const requestKey = (id: RequestId) => JSON.stringify(id)

export interface SessionOutageSettings {
  readonly log: PluginHost['log']
  /** The log message if `tell` fails. */
  readonly untold: string
  /** Reports answered requests by their keys. */
  tell(digest: string, requests: string[]): Promise<unknown>
}

export class SessionOutage {
  readonly #settings: SessionOutageSettings
  /** Answered requests that could not be reported. */
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

  /** Called when the store is available again. */
  end() {
    this.#unsureUntil = performance.now() + UNSURE
    const untold = [...this.#untold]
    this.#untold.clear()
    for (const [digest, requests] of untold) this.leave(digest, requests)
  }

  /** Whether other nodes may still restore sessions. */
  get unsure(): boolean {
    return performance.now() < this.#unsureUntil
  }
}
