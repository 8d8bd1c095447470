// A host's end: it leaves its port to others, lets what runs end, tells the rest that it is cancelled, and closes what
// plugins opened. For host.ts.

import type { Server } from 'node:http'
import { shuttingDown } from '../http/errors.ts'
import { type Linked, LinkedList } from '../http/linked-list.ts'
import { createPort, within } from '../http/port.ts'
import { RETRY } from '../http/sse.ts'
import type { KernelNotes } from './set-up.ts'

/** How long the last that clients are told may take to reach them, milliseconds: nodes look at streams each second, stores are slow. */
const FLUSH_TIME = 1_500

/** What outlasts requests and ends with the host. */
export interface Lasting {
  /** Ends every stream with a hint to come back after `retry` milliseconds. */
  release(retry: number): void
  /** Ends all of it, and gives each up to `patience` milliseconds to clean up. */
  close(reason: Error, patience: number): Promise<void>
}

export interface Ending {
  /**
   * Leaves the port to other processes that listen there: refuses new connections, and closes open ones with their next
   * response or after `http.keepAliveTimeout`, for 10 s at most. `close` ends the rest.
   */
  handOver(): Promise<void>
  /**
   * Ends: it is not ready any more, leaves its port, gives what runs `grace` milliseconds (default 10,000) to end, cancels
   * the rest and says so to its clients, which may take 1.5 s more; with 0 all ends at once. `handOver`: connections that
   * idle are left for as long as in `handOver`, so that no request on one of them is lost, rather than closed at once;
   * default: true unless sessions live in this process alone. Then, too, the port stays open until what runs has ended:
   * only here can clients answer what their calls ask.
   */
  close(options?: { grace?: number; handOver?: boolean }): Promise<CloseReport>
}

export interface EndingParts {
  readonly server: Server
  readonly inFlight: InFlight
  readonly sessions: Lasting
  readonly notes: KernelNotes
  /** Whether sessions live in this process alone, so that nobody else can serve them. */
  readonly isAlone: () => boolean
}

export function createEnding(parts: EndingParts): Ending {
  const { server, inFlight, sessions, notes, isAlone } = parts
  const port = createPort(server)

  /** Lets what runs, and what still comes, end within what is `left`, in milliseconds; cancels the rest. */
  async function drain(left: () => number, handOver: boolean) {
    const draining = inFlight.drain()
    sessions.release(RETRY)
    for (const task of notes.draining) task()
    // What calls of these sessions ask is answered on new connections, and nowhere else.
    if (isAlone()) await within(left(), draining.begun)
    const stopSweeping = handOver ? undefined : port.sweep()
    if (handOver) await within(left(), port.handOver())
    await within(left(), draining.empty())
    stopSweeping?.()
    return draining.end()
  }

  return {
    handOver: port.handOver,
    async close({ grace = 10_000, handOver = !isAlone() } = {}) {
      const end = performance.now() + grace
      const left = () => Math.max(0, end - performance.now())
      const report = await drain(left, handOver)
      const telling = grace > 0 ? FLUSH_TIME : 0
      await sessions.close(new Error('the server is shutting down'), Math.max(grace, telling))
      const stopSweeping = port.sweep()
      await port.whenEmpty(telling, left())
      stopSweeping()
      await port.end()
      for (const task of notes.closing.splice(0).reverse()) await task()
      return report
    },
  }
}

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
