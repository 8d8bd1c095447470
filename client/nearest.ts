// "Did you mean": the name that a mistyped one was probably meant to be. The same rule as the host's, written
// again because the client imports nothing of it; a test holds them together.
import { distance } from 'fastest-levenshtein'

const simplify = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

/** The closest of `known`, or undefined when none is close. Case, dashes and underscores do not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = simplify(name)
  // Two letters swapped are two steps; short names would match anything.
  const allowed = plain.length < 4 ? 1 : Math.max(2, Math.floor(plain.length / 3))
  const near = known
    .map(one => ({ one, steps: distance(plain, simplify(one)) }))
    .filter(({ steps }) => steps <= allowed)
    .sort((a, b) => a.steps - b.steps)
  return near[0]?.one
}
