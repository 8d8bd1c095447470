// Ends long-lived streams when the caller's token expires or a reload denies the caller the route.
import type { Clock } from '../http/clock.ts'
import { attempt } from '../http/describe-thrown.ts'
import type { User } from '../kernel/user.ts'
import type { AuthorizeCaller } from '../mcp/calls/call.ts'

/** Maximum timer delay, milliseconds. Longer streams end after this time, and the client reconnects. */
const MAX_DELAY = 2 ** 31 - 1

type WatchedCaller = Parameters<AuthorizeCaller>[0]

export type CallerWatch = ReturnType<typeof createCallerWatch>

export function createCallerWatch(authorize: AuthorizeCaller, clock: Clock) {
  const watched = new Map<object, { readonly caller: WatchedCaller; readonly end: () => void }>()

  function timerOf({ expiresAt }: Pick<User, 'expiresAt'>, end: () => void) {
    if (expiresAt === undefined) return undefined
    return clock.setTimeout(end, Math.min(MAX_DELAY, Math.max(0, expiresAt - clock.now()))).unref()
  }

  const isAuthorized = (caller: WatchedCaller) => attempt(() => authorize(caller) === undefined)

  return {
    watchCaller(caller: WatchedCaller, end: () => void): () => void {
      const key = {}
      const endOnce = () => {
        stop()
        end()
      }
      const timer = timerOf(caller.user ?? {}, endOnce)
      // A route without `authorize` stays open after a reload.
      if (caller.route.authorize !== undefined) watched.set(key, { caller, end: endOnce })
      const stop = () => {
        watched.delete(key)
        clock.clear(timer)
      }
      return stop
    },
    recheckCallers() {
      for (const { caller, end } of [...watched.values()]) if (!isAuthorized(caller)) end()
    },
  }
}
