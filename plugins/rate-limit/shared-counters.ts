// Counts in the store of all nodes. If the store does not respond, `onFailure` applies.
import { attributeError } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { errorText } from '../../core/plugin.ts'
import { type RedisConnection, redisStore } from '../families/redis/index.ts'
import type { Counter, CreateCounter, Tally } from './memory-counter.ts'
import type { FilledRateLimit } from './options.ts'

/** Value of `Retry-After`, seconds. */
const RETRY_AFTER = '2'

function createFailureLog({ log, metrics }: InternalHost, onFailure: FilledRateLimit['onFailure'], store: string) {
  let failing = false
  const countFailure = metrics.counter({
    name: 'mcp_host_rate_limit_uncounted_total',
    help: 'Requests that could not be counted because the store did not respond: open (passed) or closed (refused).',
    labels: ['on_failure'],
  })
  const effect = onFailure === 'open' ? 'requests pass uncounted' : 'requests are refused with 503'
  return {
    failed(problem: string) {
      countFailure(1, { on_failure: onFailure })
      if (!failing)
        log.warn({ code: 'MH2703', problem, onFailure, means: effect }, `rate limits cannot be counted in ${store}`)
      failing = true
    },
    recovered() {
      if (failing) log.info({ code: 'MH2704' }, `rate limits are counted in ${store} again`)
      failing = false
    },
  }
}

function createUnavailable(cause: unknown, { name }: InternalHost, store: string): HostError {
  const error = new HostError('unavailable', {
    detail: 'requests cannot be counted at the moment; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    data: { reason: 'rate-limit-unavailable', retryable: true },
    reason: `rate limits cannot be counted in ${store}, and onFailure is closed`,
    cause,
  })
  attributeError(error, name)
  return error
}

export function createStoreGuard(host: InternalHost, onFailure: FilledRateLimit['onFailure'], store: string) {
  const failureLog = createFailureLog(host, onFailure, store)
  return (count: (key: string) => Promise<Tally>): Counter =>
    async key => {
      try {
        const tally = await count(key)
        failureLog.recovered()
        return tally
      } catch (error) {
        failureLog.failed(errorText(HostError.is(error) ? (error.cause ?? error.reason) : error))
        if (onFailure === 'open') return undefined
        throw createUnavailable(error, host, store)
      }
    }
}

/** `scope`: identifies the limits on every node. */
export function createRedisCounters(
  redis: RedisConnection,
  host: InternalHost,
  { scope, onFailure }: { readonly scope: string; readonly onFailure: FilledRateLimit['onFailure'] },
): CreateCounter {
  const store = redisStore(redis)
  const guard = createStoreGuard(host, onFailure, 'Redis')

  return (name, { text, window }) =>
    guard(async key => {
      // Requests that can pass uncounted do not wait for a connection.
      if (onFailure === 'open' && !redis.healthy) throw new Error(redis.problem)
      const outcome = await store.transact(
        `rate-limit:${JSON.stringify([scope, name, text, key])}`,
        [{ record: 'count', add: { used: 1 }, ttl: { new: window }, know: 0 }],
        'relaxed',
      )
      const found = outcome.done ? outcome.results[0] : undefined
      const remaining = (found?.expires ?? outcome.now) - outcome.now
      return { used: Number(found?.fields?.['used'] ?? 0), until: host.clock.monotonic() + remaining }
    })
}
