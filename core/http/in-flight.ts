// Requests that are being answered: what a closing host waits for, and in the end cancels.
import { HostError } from '../errors.ts'
import type { CloseReport } from '../host.ts'

/** How often a draining host looks for connections that became idle, milliseconds. */
const SWEEP_INTERVAL = 50

export interface InFlight {
  /** Counts a request until the returned function is called. Throws `unavailable` once the host drains. */
  enter(cancel: (reason: Error) => void): () => void
  readonly draining: () => boolean
  /** Resolves when nothing runs any more, at the latest when `grace` milliseconds passed and the rest was cancelled. */
  drain(grace: number, sweep: () => void): Promise<CloseReport>
}

export function createInFlight(): InFlight {
  const running = new Set<(reason: Error) => void>()
  let draining = false
  let emptied: (() => void) | undefined

  return {
    enter(cancel) {
      if (draining) {
        const headers = { 'Retry-After': '1', Connection: 'close' }
        throw new HostError('unavailable', { detail: 'the server is shutting down', headers })
      }
      running.add(cancel)
      return () => {
        running.delete(cancel)
        if (running.size === 0) emptied?.()
      }
    },
    draining: () => draining,
    async drain(grace, sweep) {
      draining = true
      const atStart = running.size
      const empty = new Promise<void>(resolve => {
        emptied = resolve
        if (running.size === 0) resolve()
      })
      const sweeper = setInterval(sweep, SWEEP_INTERVAL)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>(resolve => {
        timer = setTimeout(resolve, grace)
      })
      await Promise.race([empty, late])
      clearTimeout(timer)
      clearInterval(sweeper)
      const cancelled = running.size
      for (const cancel of [...running]) cancel(new Error('the server is shutting down'))
      return { finished: atStart - cancelled, cancelled }
    },
  }
}
