// "Did you mean": the candidate that a mistyped name was probably meant to be. Used wherever something is named that does not
// exist, by an operator (options, plugins, toolsets, policies) or by a model (arguments). The client has the same rule.
import { distance } from 'fastest-levenshtein'

/** The closest candidate, or undefined when none is close. Case, dashes and underscores do not count. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const plain = simplify(name)
  let best: string | undefined
  let least = allowed(plain) + 1
  for (const candidate of candidates) {
    const steps = distance(plain, simplify(candidate))
    if (steps < least) {
      best = candidate
      least = steps
    }
  }
  return best
}

const simplify = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

// Two letters swapped are two steps, so a word of four letters must be allowed two; shorter ones would match anything.
const allowed = (name: string): number => (name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3)))
