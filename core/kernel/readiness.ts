// Evaluates a host's readiness. Simultaneous probes share one check of each condition.
import { type Clock, withTimeout } from '../http/clock.ts'
import type { Readiness } from './kernel-host.ts'
import type { Logger } from './log.ts'
import type { KernelRegistrations } from './set-up.ts'

const CHECK_TIMEOUT = 2_000
/** Time for which a hanging condition is not checked again, milliseconds. */
const HANGING = 60_000

type Conditions = KernelRegistrations['readiness']
type CheckResult = Awaited<ReturnType<NonNullable<ReturnType<Conditions['get']>>>>

export function createReadiness(
  conditions: Conditions,
  draining: () => boolean,
  log: Logger,
  clock: Clock,
): () => Promise<Readiness> {
  const running = new Map<string, { readonly since: number; readonly result: Promise<CheckResult> }>()
  const failing = new Set<string>()

  async function check(name: string, condition: () => CheckResult | Promise<CheckResult>): Promise<CheckResult> {
    try {
      const result = await condition()
      failing.delete(name)
      return result
    } catch (err) {
      if (!failing.has(name)) log.error({ code: 'MH1511', err, condition: name }, 'cannot check a readiness condition')
      failing.add(name)
      // The error text can contain secrets.
      return 'the check failed; see the log'
    }
  }

  function checkOnce([name, condition]: [string, () => CheckResult | Promise<CheckResult>]): Promise<CheckResult> {
    const known = running.get(name)
    if (known && clock.monotonic() - known.since < HANGING) return known.result
    const checking = check(name, condition)
    const onTimeout = () => `no response within ${CHECK_TIMEOUT / 1_000} s`
    const entry = { since: clock.monotonic(), result: withTimeout(checking, CHECK_TIMEOUT, onTimeout, clock) }
    running.set(name, entry)
    void checking.finally(() => {
      if (running.get(name) === entry) running.delete(name)
    })
    return entry.result
  }

  return async () => {
    const named = [...conditions]
    const results = await Promise.all(named.map(checkOnce))
    const all: Array<[string, CheckResult]> = [
      ['accepting', draining() ? 'the host is closing' : true],
      ...named.map(([name], index): [string, CheckResult] => [name, results[index] ?? false]),
    ]
    const reasons = all.filter(([, result]) => typeof result === 'string') as Array<[string, string]>
    return {
      ready: all.every(([, result]) => result === true),
      checks: Object.fromEntries(all.map(([name, result]) => [name, result === true])),
      ...(reasons.length > 0 && { reasons: Object.fromEntries(reasons) }),
    }
  }
}
