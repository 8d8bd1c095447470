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

/** What the promise gives; rejects with a RedisTimeout where that takes longer than this many milliseconds. */
export async function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new RedisTimeout(Math.round(milliseconds))), milliseconds)
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}
