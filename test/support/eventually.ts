// Waits for what nobody tells a test of: looks again and again until it is so. In vain, it fails with what was waited for
// and what was found last.
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'

/** Less than the 60 s that a test may take, so that this failure is the one that is read. */
const WITHIN = 45_000

/** Between two looks, in milliseconds: as long as a look took, so that what is waited for has half of the time, or these. */
const INTERVAL = { least: 5, most: 50 }

/** A look that hangs. */
const NOTHING = Symbol('nothing')

/** What is found once it `holds`: by default, once it is truthy. Rejects after `within` milliseconds. */
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
    for (const end = performance.now() + within; ; ) {
      const began = performance.now()
      const found = await Promise.race([look(), late as Promise<typeof NOTHING>])
      if (found !== NOTHING) {
        if (holds(found as Found)) return found as Found
        last = inspect(found, { depth: 4, breakLength: 120 })
      }
      const now = performance.now()
      if (now >= end || found === NOTHING) break
      await pause(Math.min(Math.max(now - began, INTERVAL.least), INTERVAL.most))
    }
  } finally {
    stop.abort()
  }
  throw new Error(`waited ${within} ms in vain for this: ${what}; found last: ${last}`)
}
