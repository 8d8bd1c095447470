// Calls that wait for a login of their user: limits, and one check per user and API for all of them.
import { HostError } from '../../../core/index.ts'
import type { Clock, Logger, Timer } from '../../../core/plugin.ts'

const MAX_WAITING = 200
const MAX_PER_USER = 5
/** Milliseconds. */
const MAX_WAIT = 120_000
/** Interval of checks for logins that another node finished. */
const CHECK_PAUSE = 1_000

interface WaitingCalls {
  readonly calls: Set<(isDone: boolean) => void>
  check(): void
}

export interface WaitRequest {
  /** The login. */
  readonly key: string
  /** The user. */
  readonly owner: string
  readonly isDone: () => Promise<boolean>
  readonly signal: AbortSignal
}

export function createLoginWaits(clock: Clock, log: Logger) {
  const logins = new Map<string, WaitingCalls>()
  const owners = new Map<string, number>()
  let total = 0

  function updateCount(owner: string, change: 1 | -1) {
    total += change
    const remaining = (owners.get(owner) ?? 0) + change
    if (remaining > 0) owners.set(owner, remaining)
    else owners.delete(owner)
  }

  function startChecks(key: string, isDone: WaitRequest['isDone']): WaitingCalls {
    const calls: WaitingCalls['calls'] = new Set()
    let timer: Timer | undefined
    let isChecking = false
    async function check() {
      clock.clear(timer)
      if (isChecking) return
      isChecking = true
      // A failure can be temporary: the call reports it when it runs again.
      const done = await isDone().catch(() => false)
      isChecking = false
      if (done) for (const end of [...calls]) end(true)
      else if (calls.size > 0) timer = clock.setTimeout(() => void check(), CHECK_PAUSE).unref()
    }
    const waiting = { calls, check: () => void check() }
    logins.set(key, waiting)
    return waiting
  }

  return {
    /** Resolves to false after two minutes, or if the call is cancelled. Throws `tooManyRequests` above the limits. */
    async wait({ key, owner, isDone, signal }: WaitRequest): Promise<boolean> {
      if (total >= MAX_WAITING || (owners.get(owner) ?? 0) >= MAX_PER_USER) {
        log.warn({ code: 'MH3457', waiting: total }, 'refused a call, because too many calls wait for a login')
        const detail = 'too many calls wait for a login: finish the login, or cancel a call, then call the tool again'
        throw new HostError('tooManyRequests', { detail })
      }
      const existing = logins.get(key)
      const waiting = existing ?? startChecks(key, isDone)
      updateCount(owner, 1)
      let end: (isDone: boolean) => void = () => undefined
      const stop = () => end(false)
      const timer = clock.setTimeout(stop, MAX_WAIT).unref()
      try {
        return await new Promise<boolean>(resolve => {
          end = resolve
          waiting.calls.add(end)
          signal.addEventListener('abort', stop, { once: true })
          if (signal.aborted) stop()
          if (!existing) waiting.check()
        })
      } finally {
        clock.clear(timer)
        signal.removeEventListener('abort', stop)
        waiting.calls.delete(end)
        if (waiting.calls.size === 0) logins.delete(key)
        updateCount(owner, -1)
      }
    },
    /** Checks at once, after a login on this node. */
    checkNow: (key: string): void => logins.get(key)?.check(),
  }
}
