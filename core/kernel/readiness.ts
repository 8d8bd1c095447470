// Evaluates a host's readiness. Simultaneous probes share one check of each condition.
import { withTimeout } from '../http/clock.ts'
import type { Readiness } from './kernel-host.ts'
import type { Logger } from './log.ts'
import type { KernelRegistrations } from './set-up.ts'

const CHECK_TIMEOUT = 2_000
/** Time for which a hanging condition is not checked again, milliseconds. */
const HANGING = 60_000

type Conditions = KernelRegistrations['ready']
type Answer = Awaited<ReturnType<NonNullable<ReturnType<Conditions['get']>>>>

interface Check {
  readonly since: number
  readonly answer: Promise<Answer>
}

export function createReadiness(
  conditions: Conditions,
  draining: () => boolean,
  log: Logger,
): () => Promise<Readiness> {
  const running = new Map<string, Check>()
  const failing = new Set<string>()

  async function check(name: string, condition: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      const answer = await condition()
      failing.delete(name)
      return answer
    } catch (err) {
      if (!failing.has(name)) log.error({ code: 'MH1511', err, condition: name }, 'cannot check a readiness condition')
      failing.add(name)
      // The error text can contain secrets.
      return 'the check failed; see the log'
    }
  }

  function checkOnce([name, condition]: [string, () => Answer | Promise<Answer>]): Promise<Answer> {
    const known = running.get(name)
    if (known && performance.now() - known.since < HANGING) return known.answer
    const checking = check(name, condition)
    const late = () => `no response within ${CHECK_TIMEOUT / 1_000} s`
    const entry = { since: performance.now(), answer: withTimeout(checking, CHECK_TIMEOUT, late) }
    running.set(name, entry)
    void checking.finally(() => {
      if (running.get(name) === entry) running.delete(name)
    })
    return entry.answer
  }

  return async () => {
    const named = [...conditions]
    const answers = await Promise.all(named.map(checkOnce))
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
