// How long to wait before a worker is started again: longer each time, until one has stayed for a while.

/** The wait after the first end, milliseconds; it doubles with each further one. */
const FIRST_WAIT = 100
export const LONGEST_WAIT = 30_000
/** Who served for so long is not part of a crash loop, milliseconds. */
export const STABLE_TIME = 30_000

export interface BackOff {
  /**
   * Counts one end and says how long to wait, milliseconds. `served` is how long the worker had been ready; 0 when it
   * never was.
   */
  next(served: number): number
}

export function createBackOff(): BackOff {
  let ends = 0
  return {
    next(served) {
      ends = served >= STABLE_TIME ? 1 : ends + 1
      return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (ends - 1))
    },
  }
}
