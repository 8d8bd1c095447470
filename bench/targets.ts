// Checks whether the values of several rounds meet a target.
import { computeSpread, type Spread } from './spread.ts'

/**
 * `met`: the median meets the target. `unclear`: only some rounds meet it. `missed`: no round meets it. `busy`: no round
 * meets it, but other processes used the machine. `unmeasured`: values are missing.
 */
export type Verdict = 'met' | 'unclear' | 'missed' | 'busy' | 'unmeasured'

export interface TargetResult {
  readonly text: string
  /** Undefined if there are no values. */
  readonly found: Spread | undefined
  readonly verdict: Verdict
  /** Other processes distort the result: wall-clock times, and costs of servers without a full warm-up. */
  readonly needsQuiet: boolean
}

export type Relation = '<=' | '>='

/** Share of CPU time that other processes can use before a missed `needsQuiet` target is excused. */
export const MAX_OTHER_LOAD = 0.1

/** `values`: one for each round. */
export function checkTarget(text: string, values: readonly number[], relation: Relation, limit: number): TargetResult {
  const needsQuiet = false
  if (values.length === 0 || values.some(Number.isNaN))
    return { text, found: undefined, verdict: 'unmeasured', needsQuiet }
  const isMet = (value: number) => (relation === '<=' ? value <= limit : value >= limit)
  const found = computeSpread(values)
  if (isMet(found.median)) return { text, found, verdict: 'met', needsQuiet }
  return { text, found, verdict: values.some(isMet) ? 'unclear' : 'missed', needsQuiet }
}

/** For wall-clock times. */
export const checkTimeTarget = (...args: Parameters<typeof checkTarget>): TargetResult => ({
  ...checkTarget(...args),
  needsQuiet: true,
})

/** Excuses a missed `needsQuiet` target if other processes used more than MAX_OTHER_LOAD of the CPU time. */
export function adjustForOtherLoad(others: number | undefined, target: TargetResult): TargetResult {
  if (!target.needsQuiet || target.verdict !== 'missed' || others === undefined || others <= MAX_OTHER_LOAD)
    return target
  return { ...target, verdict: 'busy' }
}

export const computeExitCode = (targets: readonly TargetResult[]): 0 | 1 =>
  targets.some(({ verdict }) => verdict === 'missed') ? 1 : 0
