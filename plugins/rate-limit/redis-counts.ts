// Counts requests in Redis, for all nodes together: rate-limiter-flexible's script, over the connection that the host's
// plugins share.
import type { PluginHost } from '../../core/index.ts'
import { type RedisConnection, type RedisScript, redisScript } from '../families/redis/index.ts'
import type { FilledRateLimit } from './options.ts'
import type { CreateCount, Tally } from './tally.ts'
import { createGuard } from './uncounted.ts'

/** What its script sends beside EVAL. */
export const RATE_LIMIT_COMMANDS = ['set', 'incrby', 'pttl', 'expire'] as const

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

/** `scope`: whose limits these are, the same on every node. */
export async function createRedisCounts(
  redis: RedisConnection,
  host: PluginHost,
  { scope, onFailure }: { readonly scope: string; readonly onFailure: FilledRateLimit['onFailure'] },
): Promise<CreateCount> {
  const { RateLimiterRedis, RateLimiterRes } = await import('rate-limiter-flexible')
  const client = createClient(redis)
  const guard = createGuard(host, onFailure, 'Redis')

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
      // Nobody waits for a connection to be counted only for what may pass without.
      if (onFailure === 'open' && !redis.healthy) throw new Error(redis.trouble)
      const { consumedPoints, msBeforeNext } = await limiter.consume(prefix + key).catch((thrown: unknown) => {
        if (thrown instanceof RateLimiterRes) return thrown
        throw thrown
      })
      return { used: consumedPoints, until: host.clock.monotonic() + msBeforeNext }
    }

    return guard(consume)
  }
}
