// Whether a host whose event loop is held should be sent requests: not while its handlers hold it again and again, so that a
// balancer sends others elsewhere. Slow to say so, slow to take it back, and never for long: where every node is held, each of
// them serves half of the time at least.
import { type Held, WINDOW } from './held-window.ts'

/** Stalls in the window before which it is none: one long call, that is over, says nothing of the next. */
export const LEAST_STALLS = 3
/** Held for less than this part of what makes it not ready, it is ready again. */
const RELIEF = 0.4
/** The longest that it is not ready at a time, and the shortest that it is ready after that, milliseconds. */
export const LONGEST = 30_000

const seconds = (ms: number) => (ms / 1_000).toFixed(1)

/** In words, for whoever may read them. */
const reasonOf = ({ ms, whose }: Held) =>
  `the event loop is held by ${whose.join(' or ') || 'handlers'}: ${seconds(ms)} s in the last ${WINDOW} s`

/** `limit`: milliseconds of the window. The returned function takes the monotonic time of the host's clock. */
export function createStallReadiness(limit: number): (held: Held, now: number) => true | string {
  /** Since when it is not ready. */
  let since: number | undefined
  /** Before this it is ready, whatever is held. */
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

/** How long the other processes may take to answer, milliseconds. */
const PATIENCE = 1_000

/**
 * The same for an address behind which several processes serve: while half of them are free, or more, whoever balances between
 * addresses would take those away with the one that is held. `askAll`: what each of them says of itself.
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
  // One that does not answer is held at this moment.
  if (!said) return own
  const held = said.filter(one => one !== true).length
  return held * 2 > said.length ? own : true
}
