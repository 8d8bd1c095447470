// Long-lived streams end with the token that opened them, and with a reload whose policy no longer lets their caller enter the
// route: whoever still may comes back.
import type { Clock } from '../http/clock.ts'
import type { User } from '../kernel/user.ts'
import type { AdmitCaller } from '../mcp/call.ts'

/** The longest that a timer can wait, milliseconds; a stream of a token that lives longer ends then, and comes back. */
const MAX_DELAY = 2 ** 31 - 1

/** Whom a stream is for, and where. */
export type WatchedCaller = Parameters<AdmitCaller>[0]

export interface CallerWatch {
  /** Calls `end` once, when the caller's token expires or a reload shuts it out. Returns what calls it off. */
  watchCaller(caller: WatchedCaller, end: () => void): () => void
  /** Ends what callers have open who may not enter its route any more. */
  recheckCallers(): void
}

export function createCallerWatch(admit: AdmitCaller, clock: Clock): CallerWatch {
  const watched = new Map<object, { readonly caller: WatchedCaller; readonly end: () => void }>()

  function timerOf({ expiresAt }: Pick<User, 'expiresAt'>, end: () => void) {
    if (expiresAt === undefined) return undefined
    return clock.setTimeout(end, Math.min(MAX_DELAY, Math.max(0, expiresAt - clock.now()))).unref()
  }

  function mayEnter(caller: WatchedCaller): boolean {
    try {
      admit(caller)
      return true
    } catch {
      return false
    }
  }

  return {
    watchCaller(caller, end) {
      const key = {}
      const over = () => {
        callOff()
        end()
      }
      const timer = timerOf(caller.user ?? {}, over)
      // A route without a rule lets everybody in, whatever a reload says.
      if (caller.route.authorize !== undefined) watched.set(key, { caller, end: over })
      const callOff = () => {
        watched.delete(key)
        clock.clear(timer)
      }
      return callOff
    },
    recheckCallers() {
      for (const { caller, end } of [...watched.values()]) if (!mayEnter(caller)) end()
    },
  }
}
