// The operations of the store. All queued ones run in one transaction, so they share one disk sync.
import type { DatabaseSync } from 'node:sqlite'
import { applySteps, type Outcome, type Query, type Step } from '../../../core/store.ts'
import { type Answer, type Ask, type Committed, clock, faultOf } from './messages.ts'
import { prepareStore, SqlPartition } from './partition.ts'

function operationsOn(db: DatabaseSync) {
  const sql = prepareStore(db)
  return {
    transact(partition: string, steps: readonly Step[], _durability?: 'relaxed'): Outcome {
      const now = Date.now()
      const state = new SqlPartition(sql, partition, now)
      const outcome = applySteps(state, steps, now)
      state.save()
      return outcome
    },
    read(partition: string, queries: readonly Query[]): readonly unknown[] {
      const state = new SqlPartition(sql, partition, Date.now())
      return queries.map(query => state.answer(query))
    },
  }
}

export type Operations = ReturnType<typeof operationsOn>

/** `read`: no lock; `moment`: can be lost in a power cut; `durable`: on the disk before the response. */
type Weight = 'read' | 'moment' | 'durable'

function weightOf({ name, args }: Ask): Weight {
  if (name === 'read') return 'read'
  return args[2] === 'relaxed' ? 'moment' : 'durable'
}

const LATE: Answer = { fault: { word: 'late', text: 'it waited for too long' } }

/** Faults of the whole file, so operations are not retried one by one. */
const OF_ALL: ReadonlySet<string> = new Set(['locked', 'damaged', 'alien', 'readonly', 'disk', 'path'])

/** How long a locked file is retried, milliseconds. */
const PATIENCE = 2_000

const nap = new Int32Array(new SharedArrayBuffer(4))

const heaviest = (asks: readonly Ask[]): Weight => {
  const weights = new Set(asks.map(weightOf))
  return weights.has('durable') ? 'durable' : weights.has('moment') ? 'moment' : 'read'
}

export function createTransactions(db: DatabaseSync, told: (committed: Committed) => void) {
  const operations = operationsOn(db)
  let safety: Weight | undefined

  /** Retries while the file is locked. SQLite itself would back off longer. */
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

  /** Rolls back, unless SQLite did so after an error. */
  function rollBack() {
    try {
      db.exec('ROLLBACK')
    } catch {}
  }

  function answer({ name, args, deadline }: Ask): Answer {
    if (clock() > deadline) return LATE
    const operation = operations[name] as (...args: readonly unknown[]) => unknown
    return { value: operation(...args) }
  }

  function together(asks: readonly Ask[]): readonly Answer[] {
    const startedAt = performance.now()
    const weight = heaviest(asks)
    const answers = within(weight, () => asks.map(answer))
    told({ operations: asks.length, seconds: (performance.now() - startedAt) / 1_000, durable: weight === 'durable' })
    return answers
  }

  function run(asks: readonly Ask[]): readonly Answer[] {
    try {
      return together(asks)
    } catch (error) {
      const fault = faultOf(error)
      if (asks.length === 1) return [{ fault }]
      if (!OF_ALL.has(fault.word)) return asks.flatMap(ask => run([ask]))
      // Reads can succeed even if the transaction failed.
      return asks.flatMap(ask => (weightOf(ask) === 'read' ? run([ask]) : [{ fault }]))
    }
  }

  return { run, write: (act: () => void, weight: 'moment' | 'durable' = 'moment') => within(weight, act) }
}
