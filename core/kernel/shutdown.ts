// Shuts a host down: leaves the port, drains requests, cancels the rest and closes plugins.

import type { Server } from 'node:http'
import { withTimeout } from '../http/clock.ts'
import { shuttingDown } from '../http/errors.ts'
import { type Linked, LinkedList } from '../http/linked-list.ts'
import { createPort } from '../http/port.ts'
import { RETRY } from '../http/sse.ts'
import type { KernelRegistrations } from './set-up.ts'

const FLUSH_TIME = 1_500

export interface OpenSessions {
  /** Ends every stream with the reconnection time `retry`, milliseconds. */
  release(retry: number): void
  close(reason: Error, timeout: number): Promise<void>
}

export interface Shutdown {
  /** Stops listening. Open connections close after their next response or `http.keepAliveTimeout`, after 10 s at most. */
  handOver(): Promise<void>
  /**
   * Drains for `grace` milliseconds (default 10,000; 0 ends at once), then cancels the rest. `handOver` (default true,
   * false if sessions exist only in this process) keeps idle connections open. Without it, the port stays open until
   * running calls end, because responses of their clients arrive at this port.
   */
  close(options?: { grace?: number; handOver?: boolean }): Promise<CloseReport>
}

interface ShutdownParts {
  readonly server: Server
  readonly inFlight: InFlight
  readonly sessions: OpenSessions
  readonly registrations: KernelRegistrations
  readonly isOnlyProcess: () => boolean
}

export function createShutdown(parts: ShutdownParts): Shutdown {
  const { server, inFlight, sessions, registrations, isOnlyProcess } = parts
  const port = createPort(server)

  async function drain(remaining: () => number, handOver: boolean) {
    const inTime = (ended: Promise<void>) => withTimeout(ended, remaining(), () => undefined)
    const draining = inFlight.drain()
    sessions.release(RETRY)
    for (const task of registrations.preClose) task()
    // Clients of these sessions send responses on new connections.
    if (isOnlyProcess()) await inTime(draining.earlierEnded)
    const stopSweeping = handOver ? undefined : port.sweep()
    if (handOver) await inTime(port.handOver())
    await inTime(draining.empty())
    stopSweeping?.()
    return draining.end()
  }

  return {
    handOver: port.handOver,
    async close({ grace = 10_000, handOver = !isOnlyProcess() } = {}) {
      const end = performance.now() + grace
      const remaining = () => Math.max(0, end - performance.now())
      const report = await drain(remaining, handOver)
      const flushTime = grace > 0 ? FLUSH_TIME : 0
      await sessions.close(new Error('the server is shutting down'), Math.max(grace, flushTime))
      const stopSweeping = port.sweep()
      await port.whenEmpty(flushTime, remaining())
      stopSweeping()
      await port.end()
      for (const task of registrations.onClose.splice(0).reverse()) await task()
      return report
    },
  }
}

export interface CloseReport {
  readonly finished: number
  readonly cancelled: number
}

export type InFlight = ReturnType<typeof createInFlight>

type Running = Linked & { readonly cancel: (reason: Error) => void }

export function createInFlight() {
  const running = new LinkedList<Running>()
  const earlier = new Set<Running>()
  const checks = new Set<() => void>()
  let stage: 'open' | 'draining' | 'closed' = 'open'
  let finished = 0

  const whenEmpty = (set: { readonly size: number }) =>
    new Promise<void>(resolve => {
      const check = () => {
        if (set.size > 0) return
        checks.delete(check)
        resolve()
      }
      checks.add(check)
      check()
    })

  return {
    /** Counts a request until the returned function is called. Throws `unavailable` after the drain. */
    enter(cancel: (reason: Error) => void): () => void {
      if (stage === 'closed') throw shuttingDown()
      const request: Running = { cancel, older: undefined, newer: undefined, linked: false }
      running.add(request)
      return () => {
        if (!running.delete(request)) return
        earlier.delete(request)
        if (stage === 'draining') finished++
        if (checks.size > 0) for (const check of [...checks]) check()
      }
    },
    draining: () => stage !== 'open',
    count: () => running.size,
    drain() {
      if (stage === 'open') stage = 'draining'
      finished = 0
      for (const request of running) earlier.add(request)
      return {
        /** Resolves when the requests that were running at the start of the drain have ended. */
        earlierEnded: whenEmpty(earlier),
        empty: () => whenEmpty(running),
        end(): CloseReport {
          stage = 'closed'
          const cancelled = running.size
          for (const { cancel } of [...running]) cancel(new Error('the server is shutting down'))
          return { finished, cancelled }
        },
      }
    },
  }
}
