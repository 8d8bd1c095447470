// Counts requests in Redis, for all nodes together: rate-limiter-flexible's script, over the connection that the host's
// plugins share. What happens while Redis cannot be asked is the operator's choice.
import { blame } from '../../core/auth.ts'
import { errorText, HostError, type PluginHost } from '../../core/index.ts'
import { type RedisConnection, type RedisScript, redisScript } from '../families/redis/index.ts'
import type { FilledRateLimit } from './options.ts'
import type { CreateCount, Tally } from './tally.ts'

/** What its script sends beside EVAL. */
export const RATE_LIMIT_COMMANDS = ['set', 'incrby', 'pttl', 'expire'] as const

/** Seconds. */
const RETRY_AFTER = '2'

/** A figure for each request that was not counted; one line when that begins, one when it is over. */
function createTrouble({ log, figures }: PluginHost, onFailure: FilledRateLimit['onFailure']) {
  let failing = false
  const tell = figures.counter({
    name: 'mcp_host_rate_limit_uncounted_total',
    help: 'Requests that Redis could not be asked to count, by what became of them: open (passed) or closed (refused).',
    labels: ['on_failure'],
  })
  const means = onFailure === 'open' ? 'requests pass uncounted' : 'requests are refused with 503'
  return {
    began(problem: string) {
      tell(1, { on_failure: onFailure })
      if (!failing) log.warn({ problem, onFailure, means }, 'rate limits cannot be counted in Redis')
      failing = true
    },
    ended() {
      if (failing) log.info({}, 'rate limits are counted in Redis again')
      failing = false
    },
  }
}

/** The part of a client of Redis that the limiter calls. */
function createClient(redis: RedisConnection) {
  let script: RedisScript | undefined
  return {
    eval(source: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }) {
      script ??= redisScript(source)
      return redis.evaluate(script, keys, args)
    },
  }
}

function refusal(cause: unknown, { name }: PluginHost): HostError {
  const error = new HostError('unavailable', {
    detail: 'requests cannot be counted at the moment; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    data: { reason: 'rate-limit-unavailable', retryable: true },
    reason: 'rate limits cannot be counted in Redis, and onFailure is closed',
    cause,
  })
  blame(error, name)
  return error
}

/** `scope`: whose limits these are, the same on every node. */
export async function createRedisCounts(
  redis: RedisConnection,
  host: PluginHost,
  { scope, onFailure }: { readonly scope: string; readonly onFailure: FilledRateLimit['onFailure'] },
): Promise<CreateCount> {
  const { RateLimiterRedis, RateLimiterRes } = await import('rate-limiter-flexible')
  const client = createClient(redis)
  const trouble = createTrouble(host, onFailure)

  return (name, { text, most, window }) => {
    // No insurance limiter: in memory a limit would be as many times higher as there are nodes, and nobody would see it.
    const limiter = new RateLimiterRedis({
      storeClient: client,
      useRedisPackage: true,
      keyPrefix: '',
      points: most,
      duration: window / 1_000,
    })
    const prefix = redis.key('rate-limit', scope, name, text, '')

    async function consume(key: string): Promise<Tally> {
      const { consumedPoints, msBeforeNext } = await limiter.consume(prefix + key).catch((thrown: unknown) => {
        if (thrown instanceof RateLimiterRes) return thrown
        throw thrown
      })
      return { used: consumedPoints, until: host.clock.monotonic() + msBeforeNext }
    }

    return async key => {
      try {
        // Nobody waits for a connection to be counted only for what may pass without.
        if (onFailure === 'open' && !redis.healthy) return void trouble.began(redis.trouble)
        const tally = await consume(key)
        trouble.ended()
        return tally
      } catch (error) {
        trouble.began(errorText(HostError.is(error) ? error.cause : error))
        if (onFailure === 'open') return undefined
        throw refusal(error, host)
      }
    }
  }
}
