// Whether a host may be sent requests. Probes ask often, and many at once: each condition is asked once for all who wait, and
// one that does not answer is waited for a short while only. For host.ts.
import type { Readiness } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'
import type { KernelNotes } from './kernel/set-up.ts'

/** How long a condition may take, milliseconds. */
const PATIENCE = 2_000

type Conditions = KernelNotes['ready']
/** True, or why it does not hold. */
type Answer = Awaited<ReturnType<NonNullable<ReturnType<Conditions['get']>>>>

/** Resolves with the answer of a condition, or with the lack of it. Rejects where it throws. */
async function answerInTime(check: () => Answer | Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>(resolve => {
    timer = setTimeout(() => resolve(`no answer within ${PATIENCE / 1_000} s`), PATIENCE)
  })
  try {
    return await Promise.race([check(), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Tells whether the host accepts requests and every condition holds. Nothing is kept: who asks later asks anew. */
export function createReadiness(
  conditions: Conditions,
  draining: () => boolean,
  log: Logger,
): () => Promise<Readiness> {
  /** What was asked and is not answered yet, by name. */
  const asked = new Map<string, Promise<Answer>>()
  /** Those whose failure the log has. */
  const failing = new Set<string>()

  async function ask(name: string, check: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      const answer = await answerInTime(check)
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
    let answer = asked.get(name)
    if (!answer) {
      answer = ask(name, check).finally(() => asked.delete(name))
      asked.set(name, answer)
    }
    return answer
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
