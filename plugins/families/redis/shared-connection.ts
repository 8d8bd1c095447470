// The connection to Redis as plugins use it, and scripts with a deadline.
import { performance } from 'node:perf_hooks'
import type { RedisCommands } from './commands.ts'
import { RedisTimeout, unavailable } from './failures.ts'
import type { KeySpaceClaim } from './key-space.ts'
import type { RedisScript } from './script.ts'

/** A client of its own, for reads that block. Its commands wait while there is no connection; closes with the host. */
export interface RedisReader {
  readonly client: RedisCommands
  close(): void
}

export interface RedisConnection {
  /**
   * Commands, each refused at once while there is no connection. They throw what node-redis does, and wait for as long
   * as it takes: `run` is for answers to clients.
   */
  readonly client: RedisCommands
  /** Milliseconds that Redis may take to answer. */
  readonly commandTimeout: number
  /** The prefix and the parts, joined with `:`. */
  key(...parts: string[]): string
  /**
   * A key of one session; all of them are in one slot of a cluster. It has a digest of the id: ids are what sessions
   * are opened with, so they are not written down. As the id has its owner's HMAC, so has the key.
   */
  sessionKey(session: string, ...parts: string[]): string
  /** For reads that block for at most `commandTimeout`. */
  duplicate(): Promise<RedisReader>
  /** Whether Redis answers, and does what is asked of it. */
  readonly healthy: boolean
  /** Why it is not healthy, in words that anybody may read. */
  readonly trouble: string
  /**
   * Says in `setup` that the keys are those of hosts with these secrets. Where a host runs that has none of them this one
   * does not start; where it is found out later, everything is refused with 503.
   */
  claim(claim: KeySpaceClaim): void
  /** Hears when `healthy` becomes true or false; returns what ends that. */
  onChange(listener: (healthy: boolean) => void): () => void
  /** Batches of commands written so far, those of readers left out; for tests. */
  readonly roundTrips: number
  /**
   * The clock of Redis in milliseconds, or earlier, never later; undefined before it was first heard. A script that is
   * given a deadline by this clock does not run once whoever sent it has given up.
   */
  now(): number | undefined
  /** Asks for the time now; resolves when `now()` is fresh. */
  askTime(): Promise<void>
  /**
   * What `act` does with Redis, within `timeout` milliseconds (default `commandTimeout`). Where Redis cannot be asked
   * or refuses for now: HostError `unavailable` with `Retry-After`; at once where there was no connection for as long.
   */
  run<Value>(act: (client: RedisCommands) => Promise<Value>, timeout?: number): Promise<Value>
  /** `run` of one script: by its digest, or whole where Redis does not know it. */
  evaluate(script: RedisScript, keys: readonly string[], args: readonly string[], timeout?: number): Promise<unknown>
}

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
