// Assertions for contract checks, with the violated promise in the message.
import { AssertionError } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'

export function same(actual: unknown, expected: unknown, promise: string): void {
  if (isDeepStrictEqual(actual, expected)) return
  const message = `${promise}: expected ${inspect(expected, { depth: 6 })}, found ${inspect(actual, { depth: 6 })}`
  throw new AssertionError({ message, actual, expected, operator: 'deepStrictEqual' })
}

export function holds(kept: unknown, promise: string): asserts kept {
  if (!kept) throw new AssertionError({ message: promise, actual: kept, expected: true, operator: 'ok' })
}
