// Readiness of a host whose event loop is blocked: not ready while its handlers block it repeatedly, so that a load balancer
// chooses other nodes. It changes slowly, and each node stays ready for at least half of the time, in case all nodes are blocked.
import { type Held, WINDOW } from './held-window.ts'

/** Minimum number of stalls in the window: one long call does not predict the next. */
export const LEAST_STALLS = 3
/** Ready again below this fraction of the limit. */
const RELIEF = 0.4
/** Maximum time not ready, and minimum time ready after that, milliseconds. */
export const LONGEST = 30_000

const seconds = (ms: number) => (ms / 1_000).toFixed(1)

/** The reason, as text. */
const reasonOf = ({ ms, whose }: Held) =>
  `the event loop is held by ${whose.join(' or ') || 'handlers'}: ${seconds(ms)} s in the last ${WINDOW} s`

/** `limit`: milliseconds of the window. The returned function takes the monotonic time of the host's clock. */
export function createStallReadiness(limit: number): (held: Held, now: number) => true | string {
  /** The time since when it is not ready. */
  let since: number | undefined
  /** It stays ready until this time. */
  let rests = Number.NEGATIVE_INFINITY

  return (held, now) => {
    if (since === undefined) {
      if (now < rests || held.stalls < LEAST_STALLS || held.ms < limit) return true
      since = now
    } else if (held.ms < limit * RELIEF) {
      since = undefined
      return true
    } else if (now - since >= LONGEST) {
      since = undefined
      rests = now + LONGEST
      return true
    }
    return reasonOf(held)
  }
}

/** Time limit for responses of the other processes, milliseconds. */
const PATIENCE = 1_000

/**
 * The same for several processes behind one address: while at least half of them are free, the host stays ready, because a load
 * balancer would exclude the free processes too. `askAll` collects the state of each process.
 */
export async function amongProcesses(
  own: true | string,
  askAll: () => Promise<readonly unknown[]>,
): Promise<true | string> {
  if (own === true) return true
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, PATIENCE, undefined)
  })
  const said = await Promise.race([askAll(), late]).finally(() => clearTimeout(timer))
  // A process that does not respond is blocked now.
  if (!said) return own
  const held = said.filter(one => one !== true).length
  return held * 2 > said.length ? own : true
}
