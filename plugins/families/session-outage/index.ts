// What a session store of several processes makes up for once it can be reached again: it tells which requests were answered
// meanwhile, and is unsure for a while, because others still bring the sessions that it lost.
import type { PluginHost } from '../../../core/index.ts'
import type { RequestId } from '../../../core/transport.ts'

/** How long after the store came back sessions may be missing that others still bring, milliseconds. */
const UNSURE = 10_000

/** Sessions whose answered requests are remembered while the store is away. */
const MAX_UNTOLD = 10_000

/** A request as stores write it down: `1` and `'1'` are two. */
export const requestKey = (id: RequestId) => JSON.stringify(id)

export interface SessionOutageSettings {
  readonly log: PluginHost['log']
  /** What the log says where `tell` fails. */
  readonly untold: string
  /** Tells the store that these requests are answered, by their keys. */
  tell(digest: string, requests: string[]): Promise<unknown>
}

export class SessionOutage {
  readonly #settings: SessionOutageSettings
  /** Requests of which the store could not be told that they are answered. */
  readonly #untold = new Map<string, RequestId[]>()
  #unsureUntil = 0

  constructor(settings: SessionOutageSettings) {
    this.#settings = settings
  }

  /** These requests are answered: told now, or once the store is back. */
  leave(digest: string, requests: readonly RequestId[]) {
    if (requests.length === 0) return
    const { log, untold, tell } = this.#settings
    tell(digest, requests.map(requestKey)).catch(err => {
      log.debug({ err }, untold)
      if (this.#untold.size < MAX_UNTOLD) this.#untold.set(digest, [...(this.#untold.get(digest) ?? []), ...requests])
    })
  }

  /** To be called whenever the store can be reached again. */
  end() {
    this.#unsureUntil = performance.now() + UNSURE
    const untold = [...this.#untold]
    this.#untold.clear()
    for (const [digest, requests] of untold) this.leave(digest, requests)
  }

  /** Whether what is missing may still be brought by others. */
  get unsure(): boolean {
    return performance.now() < this.#unsureUntil
  }
}
