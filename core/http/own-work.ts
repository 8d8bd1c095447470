// What this process computes itself for long bodies, before any handler has a part in it: what holds the event loop is put
// down to handlers without it, or whoever sends such bodies could have a tool blamed, and a node taken for one that is stuck.
import { LARGE_TEXT } from './limits.ts'

let spent = 0

/** Milliseconds, since the process began. */
export const ownWork = (): number => spent

/** Does it with what is given, and counts it where that is long. */
export function asOwnWork<Given extends string | Uint8Array, Result>(
  given: Given,
  work: (given: Given) => Result,
): Result {
  if (given.length < LARGE_TEXT) return work(given)
  const start = performance.now()
  try {
    return work(given)
  } finally {
    spent += performance.now() - start
  }
}
