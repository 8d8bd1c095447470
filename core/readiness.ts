// Whether a host may be sent requests. Probes ask often, and many at once: each condition is asked once for all who wait. One that
// does not answer is waited for a short while only, and not asked again meanwhile. For host.ts.
import { withTimeout } from './http/clock.ts'
import type { Readiness } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'
import type { KernelNotes } from './kernel/set-up.ts'

/** How long who asks waits for a condition, milliseconds. */
const PATIENCE = 2_000
/** How long one that hangs is not asked again, milliseconds: whatever it began is held until then. */
const HANGING = 60_000

type Conditions = KernelNotes['ready']
/** True, or why it does not hold. */
type Answer = Awaited<ReturnType<NonNullable<ReturnType<Conditions['get']>>>>

interface Asked {
  /** Milliseconds, of `performance`. */
  readonly at: number
  /** The answer, or the lack of it. */
  readonly inTime: Promise<Answer>
}

const inTime = (answer: Promise<Answer>): Promise<Answer> =>
  withTimeout(answer, PATIENCE, () => `no answer within ${PATIENCE / 1_000} s`)

/** Tells whether the host accepts requests and every condition holds. No answer is kept: who asks later asks anew. */
export function createReadiness(
  conditions: Conditions,
  draining: () => boolean,
  log: Logger,
): () => Promise<Readiness> {
  /** What was asked and is not answered yet, by name. */
  const asked = new Map<string, Asked>()
  /** Those whose failure the log has. */
  const failing = new Set<string>()

  async function ask(name: string, check: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      const answer = await check()
      failing.delete(name)
      return answer
    } catch (err) {
      if (!failing.has(name)) log.error({ err, condition: name }, 'a condition of readiness cannot be checked')
      failing.add(name)
      // Its text may hold what no probe should read.
      return 'it cannot be checked; the log says why'
    }
  }

  function askOnce([name, check]: [string, () => Answer | Promise<Answer>]): Promise<Answer> {
    const known = asked.get(name)
    if (known && performance.now() - known.at < HANGING) return known.inTime
    const answer = ask(name, check)
    const begun: Asked = { at: performance.now(), inTime: inTime(answer) }
    asked.set(name, begun)
    void answer.finally(() => {
      if (asked.get(name) === begun) asked.delete(name)
    })
    return begun.inTime
  }

  return async () => {
    const named = [...conditions]
    const answers = await Promise.all(named.map(askOnce))
    const all: Array<[string, Answer]> = [
      ['accepting', draining() ? 'the host is closing' : true],
      ...named.map(([name], index): [string, Answer] => [name, answers[index] ?? false]),
    ]
    const reasons = all.filter(([, answer]) => typeof answer === 'string') as Array<[string, string]>
    return {
      ready: all.every(([, answer]) => answer === true),
      checks: Object.fromEntries(all.map(([name, answer]) => [name, answer === true])),
      ...(reasons.length > 0 && { reasons: Object.fromEntries(reasons) }),
    }
  }
}
