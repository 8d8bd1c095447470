// Requests that are being answered: what a closing host waits for, and in the end cancels.
import { shuttingDown } from '../http/errors.ts'
import { type Linked, LinkedList } from '../http/linked-list.ts'

export interface CloseReport {
  /** Requests that ended by themselves within the grace period, those that came in it too. */
  readonly finished: number
  /** Requests that were cancelled when it was over. */
  readonly cancelled: number
}

export interface Drain {
  /** Resolves when what ran as the drain began has ended. */
  readonly begun: Promise<void>
  /** Resolves when nothing runs. */
  empty(): Promise<void>
  /** Cancels what still runs, and refuses what comes from now on. */
  end(): CloseReport
}

export interface InFlight {
  /** Counts a request until the returned function is called. Throws `unavailable` once the drain has ended. */
  enter(cancel: (reason: Error) => void): () => void
  /** True once the host closes: it is not ready any more, and answers what comes all the same. */
  readonly draining: () => boolean
  drain(): Drain
  count(): number
}

type Running = Linked & { readonly cancel: (reason: Error) => void }

export function createInFlight(): InFlight {
  const running = new LinkedList<Running>()
  /** What ran as the drain began. */
  const before = new Set<Running>()
  const waiting = new Set<() => void>()
  let stage: 'open' | 'draining' | 'over' = 'open'
  let finished = 0

  function leave(request: Running) {
    if (!running.delete(request)) return
    before.delete(request)
    if (stage === 'draining') finished++
    if (waiting.size > 0) for (const look of [...waiting]) look()
  }

  /** Resolves when the set is empty. */
  const emptied = (set: { readonly size: number }) =>
    new Promise<void>(resolve => {
      const look = () => {
        if (set.size > 0) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })

  return {
    enter(cancel) {
      if (stage === 'over') throw shuttingDown()
      const request: Running = { cancel, older: undefined, newer: undefined, linked: false }
      running.add(request)
      return () => leave(request)
    },
    draining: () => stage !== 'open',
    count: () => running.size,
    drain() {
      if (stage === 'open') stage = 'draining'
      finished = 0
      for (const request of running) before.add(request)
      return {
        begun: emptied(before),
        empty: () => emptied(running),
        end() {
          stage = 'over'
          const cancelled = running.size
          for (const { cancel } of [...running]) cancel(new Error('the server is shutting down'))
          return { finished, cancelled }
        },
      }
    },
  }
}
