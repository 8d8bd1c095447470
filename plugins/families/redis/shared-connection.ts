// The connection to Redis as plugins use it, and scripts with a deadline.
import { performance } from 'node:perf_hooks'
import type { RedisCommands } from './commands.ts'
import { RedisTimeout, unavailable } from './failures.ts'
import type { KeySpaceClaim } from './key-space.ts'
import type { RedisScript } from './script.ts'

/** A separate client for blocking reads. Commands wait while offline. */
export interface RedisReader {
  readonly client: RedisCommands
  close(): void
}

export interface RedisConnection {
  /** Commands fail at once while offline. Use `run` for requests. */
  readonly client: RedisCommands
  readonly commandTimeout: number
  key(...parts: string[]): string
  /** A key of a session, in one cluster slot. Contains a digest of the id, because ids are credentials. */
  sessionKey(session: string, ...parts: string[]): string
  /** Blocks for at most `commandTimeout`. */
  duplicate(): Promise<RedisReader>
  /** Whether Redis responds and executes commands. */
  readonly healthy: boolean
  /** Why it is not healthy; public. */
  readonly trouble: string
  /** Call in `setup`. Startup fails if a running host has none of these secrets; later, commands get 503. */
  claim(claim: KeySpaceClaim): void
  onChange(listener: (healthy: boolean) => void): () => void
  /** Batches of commands written so far; for tests. */
  readonly roundTrips: number
  /** A lower bound of the Redis clock in milliseconds, for deadlines of scripts; undefined before the first reply. */
  now(): number | undefined
  askTime(): Promise<void>
  /** `timeout`: milliseconds, default `commandTimeout`. Rejects with `unavailable`. */
  run<Value>(act: (client: RedisCommands) => Promise<Value>, timeout?: number): Promise<Value>
  /** `run` for a script: by digest, or by source if Redis does not know it. */
  evaluate(script: RedisScript, keys: readonly string[], args: readonly string[], timeout?: number): Promise<unknown>
}

/** Does nothing after its deadline (first argument). Sent again after `late`: the clock was unknown. */
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
