// Suggestions for mistyped names. The client uses the same rule.
import { distance } from 'fastest-levenshtein'

/** Finds the closest candidate, within `most` edits. Ignores case, dashes and underscores. */
export function nearest(name: string, candidates: Iterable<string>, most?: number): string | undefined {
  const plain = simplify(name)
  let best: string | undefined
  let least = (most ?? allowed(plain)) + 1
  for (const candidate of candidates) {
    const other = simplify(candidate)
    // Skips candidates of a very different length, because the distance takes quadratic time.
    if (Math.abs(other.length - plain.length) >= least) continue
    const steps = distance(plain, other)
    if (steps < least) {
      best = candidate
      least = steps
    }
  }
  return best
}

export function didYouMean(name: string, known: Iterable<string>, most?: number): string {
  const all = [...known]
  const near = nearest(name, all, most)
  if (near !== undefined) return `did you mean "${near}"?`
  return all.length === 0
    ? 'none are available'
    : `available: ${all.slice(0, MOST_NAMES).join(', ')}${all.length > MOST_NAMES ? ', ...' : ''}`
}

const MOST_NAMES = 40

const simplify = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

const allowed = (name: string): number => (name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3)))
