// Counts requests for all workers, in the primary: the counters of `countTogether`.
import type { Logger } from '../../core/create-host.ts'
import type { CountTogether } from '../../core/kernel/kernel-host.ts'
import { createMemoryCount, MOST_CALLERS } from '../../plugins/rate-limit/memory-counts.ts'

export type ToCount = Parameters<CountTogether>
export type Counted = Awaited<ReturnType<CountTogether>>

export function createCounts(log?: Logger): (...one: ToCount) => Counted {
  const counters = new Map<string, { readonly count: ReturnType<typeof createMemoryCount>['count']; until: number }>()

  function create(name: string, window: number, now: number) {
    // A reload can change limits: counters whose windows are all over are not needed any more.
    for (const [old, { until }] of counters) if (until <= now) counters.delete(old)
    const means = 'new callers share counters and can be refused because of others; no caller exceeds the limit'
    const full = () =>
      log?.warn({ limit: name, callers: MOST_CALLERS, means }, 'a rate limit counts as many callers as it can')
    const counter = { count: createMemoryCount({ window, full }).count, until: 0 }
    counters.set(name, counter)
    return counter
  }

  return (name, window, key) => {
    const now = performance.now()
    const counter = counters.get(name) ?? create(name, window, now)
    counter.until = now + window
    const { used, until } = counter.count(key)
    return { used, left: Math.max(0, until - performance.now()) }
  }
}
