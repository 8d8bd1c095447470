// One acquisition at a time for one container in this process: whoever comes meanwhile waits for its outcome instead of
// asking for a token of their own. Shared by all clients that share a cache.
import type { TokenCache, TokenContainer } from './cache/types.ts'

export type Outcome = TokenContainer | undefined

const flights = new WeakMap<TokenCache, Map<string, Promise<Outcome>>>()

export interface Flights {
  readonly current: Promise<Outcome> | undefined
  /** Starts one; there must be none. */
  start(work: () => Promise<Outcome>): Promise<Outcome>
}

export function createFlights(cache: TokenCache, key: string): Flights {
  const ofCache = flights.get(cache) ?? new Map<string, Promise<Outcome>>()
  flights.set(cache, ofCache)
  return {
    get current() {
      return ofCache.get(key)
    },
    start(work) {
      const flight = work().finally(() => ofCache.delete(key))
      ofCache.set(key, flight)
      // Its waiters may all be gone when it fails.
      flight.catch(() => undefined)
      return flight
    },
  }
}

/** The promise's outcome, or the signal's reason, whichever is first: who gives up leaves the work to the others. */
export function withAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    // Also after an abort: a rejection of `work` must have a handler.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
