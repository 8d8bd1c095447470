// Long-lived streams end with the token that opened them: whoever still may comes back with a new one.
import { type Clock, systemClock } from '../http/clock.ts'
import type { User } from '../kernel/user.ts'

/** The longest that a timer can wait, milliseconds; a stream of a token that lives longer ends then, and comes back. */
const MAX_DELAY = 2 ** 31 - 1

/** Calls `end` once when the user's token expires. Returns what calls it off. */
export function whenTokenExpires(user: User | undefined, end: () => void, clock: Clock = systemClock): () => void {
  if (user?.expiresAt === undefined) return () => undefined
  const delay = Math.min(MAX_DELAY, Math.max(0, user.expiresAt - clock.now()))
  const timer = clock.setTimeout(end, delay).unref()
  return () => clock.clear(timer)
}
