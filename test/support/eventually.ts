// Waits for a state by repeated checks. On time-out it fails with the expression and the last value.
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'

/** Less than Mocha's time limit of 5 minutes, so that this error is reported. */
const WITHIN = 120_000

/** Milliseconds between two checks: a part of the time waited so far, at least as long as the last check took, within these limits. */
const INTERVAL = { least: 5, most: 50, part: 0.05 }

/** The value of a check that timed out. */
const NOTHING = Symbol('nothing')

/** Returns the value of `look` once it `holds`; default: once it is truthy. Rejects after `within` milliseconds. */
export async function eventually<Found>(
  what: string,
  look: () => Found | Promise<Found>,
  holds: (found: Found) => unknown = Boolean,
  within = WITHIN,
): Promise<Found> {
  const stop = new AbortController()
  const late = pause(within, NOTHING, { signal: stop.signal }).catch(() => NOTHING)
  let last = 'nothing: the look did not end'
  try {
    const start = performance.now()
    for (;;) {
      const began = performance.now()
      const found = await Promise.race([look(), late as Promise<typeof NOTHING>])
      if (found !== NOTHING) {
        if (holds(found as Found)) return found as Found
        last = inspect(found, { depth: 4, breakLength: 120 })
      }
      const now = performance.now()
      if (now >= start + within || found === NOTHING) break
      await pause(Math.min(Math.max(now - began, INTERVAL.part * (now - start), INTERVAL.least), INTERVAL.most))
    }
  } finally {
    stop.abort()
  }
  throw new Error(`waited ${within} ms in vain for this: ${what}; found last: ${last}`)
}
