// One transaction for all that waits: what must be there once it is answered is on the disk then, and that costs one wait for
// the disk however much it is. For main.ts.
import type { DatabaseSync } from 'node:sqlite'
import { faultOf } from './faults.ts'
import { type Answer, type Ask, type Committed, clock } from './messages.ts'
import { type Operations, type Weight, weightOf } from './operations.ts'

const LATE: Answer = { fault: { word: 'late', text: 'it waited for too long' } }

/** Nothing in the file can help against these: to try one after the other would fail as often. */
const OF_ALL: ReadonlySet<string> = new Set(['locked', 'damaged', 'alien', 'readonly', 'disk', 'path'])

/** Milliseconds that another process may hold the file. */
const PATIENCE = 2_000

const nap = new Int32Array(new SharedArrayBuffer(4))

const heaviest = (asks: readonly Ask[]): Weight => {
  const weights = new Set(asks.map(({ name }) => weightOf(name)))
  return weights.has('durable') ? 'durable' : weights.has('moment') ? 'moment' : 'read'
}

export interface Transactions {
  run(asks: readonly Ask[]): readonly Answer[]
  /** Throws what SQLite does; nothing is done then. */
  write(act: () => void, weight?: 'moment' | 'durable'): void
}

export function createTransactions(
  db: DatabaseSync,
  operations: Operations,
  told: (committed: Committed) => void,
): Transactions {
  let safety: Weight | undefined

  /** Until nobody else holds the file: nothing was done where somebody does. SQLite itself would wait longer each time. */
  function within<Value>(weight: Weight, act: () => Value): Value {
    for (const end = performance.now() + PATIENCE; ; Atomics.wait(nap, 0, 0, 1)) {
      try {
        return once(weight, act)
      } catch (error) {
        if (faultOf(error).word !== 'locked' || performance.now() > end) throw error
      }
    }
  }

  function once<Value>(weight: Weight, act: () => Value): Value {
    if (weight !== 'read' && weight !== safety) {
      db.exec(`PRAGMA synchronous = ${weight === 'durable' ? 'FULL' : 'NORMAL'}`)
      safety = weight
    }
    db.exec(weight === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
    try {
      const value = act()
      db.exec('COMMIT')
      return value
    } catch (error) {
      rollBack()
      throw error
    }
  }

  /** SQLite has done so by itself after some failures, such as a full disk. */
  function rollBack() {
    try {
      db.exec('ROLLBACK')
    } catch {
      // There is nothing to roll back.
    }
  }

  function answer({ name, args, deadline }: Ask): Answer {
    if (clock() > deadline) return LATE
    const operation = operations[name] as (...args: readonly unknown[]) => unknown
    return { value: operation(...args) }
  }

  function together(asks: readonly Ask[]): readonly Answer[] {
    const begun = performance.now()
    const weight = heaviest(asks)
    const answers = within(weight, () => asks.map(answer))
    told({ operations: asks.length, seconds: (performance.now() - begun) / 1_000, durable: weight === 'durable' })
    return answers
  }

  function run(asks: readonly Ask[]): readonly Answer[] {
    try {
      return together(asks)
    } catch (error) {
      const fault = faultOf(error)
      if (asks.length === 1) return [{ fault }]
      if (!OF_ALL.has(fault.word)) return asks.flatMap(ask => run([ask]))
      // What only reads may do so all the same.
      return asks.flatMap(ask => (weightOf(ask.name) === 'read' ? run([ask]) : [{ fault }]))
    }
  }

  return { run, write: (act, weight = 'moment') => within(weight, act) }
}
