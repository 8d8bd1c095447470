// Handles requests that cannot be counted because the store outside this process does not respond: `onFailure`.
import { blame } from '../../core/auth.ts'
import { errorText, HostError, type PluginHost } from '../../core/index.ts'
import type { FilledRateLimit } from './options.ts'
import type { Count, Tally } from './tally.ts'

/** Seconds. */
const RETRY_AFTER = '2'

/** A figure for each request that was not counted; one line when that begins, one when it is over. */
function createTrouble({ log, figures }: PluginHost, onFailure: FilledRateLimit['onFailure'], store: string) {
  let failing = false
  const tell = figures.counter({
    name: 'mcp_host_rate_limit_uncounted_total',
    help: 'Requests that could not be counted because the store did not respond: open (passed) or closed (refused).',
    labels: ['on_failure'],
  })
  const means = onFailure === 'open' ? 'requests pass uncounted' : 'requests are refused with 503'
  return {
    began(problem: string) {
      tell(1, { on_failure: onFailure })
      if (!failing) log.warn({ problem, onFailure, means }, `rate limits cannot be counted in ${store}`)
      failing = true
    },
    ended() {
      if (failing) log.info({}, `rate limits are counted in ${store} again`)
      failing = false
    },
  }
}

function refusal(cause: unknown, { name }: PluginHost, store: string): HostError {
  const error = new HostError('unavailable', {
    detail: 'requests cannot be counted at the moment; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    data: { reason: 'rate-limit-unavailable', retryable: true },
    reason: `rate limits cannot be counted in ${store}, and onFailure is closed`,
    cause,
  })
  blame(error, name)
  return error
}

/** Wraps what counts in `store`: if it fails, the request passes uncounted or is refused with 503. */
export function createGuard(host: PluginHost, onFailure: FilledRateLimit['onFailure'], store: string) {
  const trouble = createTrouble(host, onFailure, store)
  return (count: (key: string) => Promise<Tally>): Count =>
    async key => {
      try {
        const tally = await count(key)
        trouble.ended()
        return tally
      } catch (error) {
        trouble.began(errorText(HostError.is(error) ? (error.cause ?? error.reason) : error))
        if (onFailure === 'open') return undefined
        throw refusal(error, host, store)
      }
    }
}
