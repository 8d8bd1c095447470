// Waiting with an end to it. For connection.ts and health.ts.
import { RedisTimeout } from './failures.ts'

/** Something that happens once, and what it brings. */
export interface Occurrence<Value> {
  readonly happened: Promise<Value>
  happen(value: Value): void
}

export function createOccurrence<Value>(): Occurrence<Value> {
  let happen: (value: Value) => void = () => undefined
  const happened = new Promise<Value>(resolve => {
    happen = resolve
  })
  return { happened, happen: value => happen(value) }
}

/**
 * Resolves with the value of the promise; rejects with a RedisTimeout after this many milliseconds. When the event loop was
 * blocked, timers run before sockets are read, so a response that has already arrived is still accepted.
 */
export async function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    const late = () => reject(new RedisTimeout(Math.round(milliseconds)))
    timer = setTimeout(() => setImmediate(late), milliseconds)
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}
