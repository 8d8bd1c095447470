// What this process computes itself for long bodies, before any handler has a part in it: what holds the event loop is put
// down to handlers without it, or whoever sends such bodies could have a tool blamed, and a node taken for one that is stuck.
import { LARGE_TEXT } from './limits.ts'

let spent = 0

/** Milliseconds, since the process began. */
export const ownWork = (): number => spent

/** Does it, and counts it where so many characters or bytes are long. */
export function asOwnWork<Result>(length: number, work: () => Result): Result {
  if (length < LARGE_TEXT) return work()
  const start = performance.now()
  try {
    return work()
  } finally {
    spent += performance.now() - start
  }
}
