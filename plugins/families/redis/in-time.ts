// Scripts that do nothing once whoever sent them has given up: what was refused because Redis hung is not done later.
import { performance } from 'node:perf_hooks'
import { RedisTimeout, unavailable } from './failures.ts'
import type { RedisScript } from './script.ts'
import type { RedisConnection } from './shared-connection.ts'

/**
 * What a script answers, a list of texts. Its first argument is until when it may run, by the clock of Redis; where that is past
 * it does nothing and answers `late`, and is sent again while there is time: the clock was not known here, or was set.
 */
export async function evaluateInTime(
  redis: RedisConnection,
  script: RedisScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<readonly string[]> {
  const end = performance.now() + redis.commandTimeout
  for (let left = redis.commandTimeout; left > 0; left = end - performance.now()) {
    const now = redis.now()
    if (now !== undefined) {
      const reply = (await redis.evaluate(
        script,
        keys,
        [String(Math.floor(now + left) - 1), ...args],
        left,
      )) as string[]
      if (reply[0] !== 'late') return reply
    }
    await redis.run(() => redis.askTime(), Math.max(1, end - performance.now()))
  }
  throw unavailable(new RedisTimeout(redis.commandTimeout))
}
