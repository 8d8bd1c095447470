// Whether a target is met, by what was found in each round.
import { type Spread, spreadOf } from './spread.ts'

/**
 * `met`: the middle round holds it. `unclear`: it does not, but some round does, so that another run may say otherwise.
 * `missed`: no round holds it. `unmeasured`: what it needs did not run.
 */
export type Verdict = 'met' | 'unclear' | 'missed' | 'unmeasured'

export interface Judged {
  readonly text: string
  /** Undefined where it was not measured. */
  readonly found: Spread | undefined
  readonly verdict: Verdict
}

export type Relation = '<=' | '>='

/** Judges the values of a target, one for each round. */
export function judge(text: string, values: readonly number[], relation: Relation, limit: number): Judged {
  if (values.length === 0 || values.some(Number.isNaN)) return { text, found: undefined, verdict: 'unmeasured' }
  const holds = (value: number) => (relation === '<=' ? value <= limit : value >= limit)
  const found = spreadOf(values)
  if (holds(found.median)) return { text, found, verdict: 'met' }
  return { text, found, verdict: values.some(holds) ? 'unclear' : 'missed' }
}

export const exitCodeOf = (targets: readonly Judged[]): 0 | 1 =>
  targets.some(({ verdict }) => verdict === 'missed') ? 1 : 0
