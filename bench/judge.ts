// Whether a target is met, by what was found in each round.
import { type Spread, spreadOf } from './spread.ts'

/**
 * `met`: the middle round holds it. `unclear`: it does not, but some round does, so that another run may say otherwise.
 * `missed`: no round holds it. `busy`: no round holds it, but it needs a quiet machine, and others used this one. `unmeasured`:
 * what it needs did not run.
 */
export type Verdict = 'met' | 'unclear' | 'missed' | 'busy' | 'unmeasured'

export interface Judged {
  readonly text: string
  /** Undefined where it was not measured. */
  readonly found: Spread | undefined
  readonly verdict: Verdict
  /** Whether others who use the machine make it worse: figures of the clock, and of servers that had no time to warm up. */
  readonly needsQuiet: boolean
}

export type Relation = '<=' | '>='

/** The part of the machine that others may use where a figure needs a quiet one. */
export const QUIET = 0.1

/** Judges the values of a target, one for each round. */
export function judge(text: string, values: readonly number[], relation: Relation, limit: number): Judged {
  const needsQuiet = false
  if (values.length === 0 || values.some(Number.isNaN))
    return { text, found: undefined, verdict: 'unmeasured', needsQuiet }
  const holds = (value: number) => (relation === '<=' ? value <= limit : value >= limit)
  const found = spreadOf(values)
  if (holds(found.median)) return { text, found, verdict: 'met', needsQuiet }
  return { text, found, verdict: values.some(holds) ? 'unclear' : 'missed', needsQuiet }
}

/** The same for values of the clock. */
export const judgeClock = (...args: Parameters<typeof judge>): Judged => ({ ...judge(...args), needsQuiet: true })

/** What is left of it when others used so much of the machine meanwhile (0 to 1; undefined: not known). */
export function allowFor(others: number | undefined, judged: Judged): Judged {
  if (!judged.needsQuiet || judged.verdict !== 'missed' || others === undefined || others <= QUIET) return judged
  return { ...judged, verdict: 'busy' }
}

export const exitCodeOf = (targets: readonly Judged[]): 0 | 1 =>
  targets.some(({ verdict }) => verdict === 'missed') ? 1 : 0
