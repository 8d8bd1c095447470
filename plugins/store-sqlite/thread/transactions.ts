// The operations of the store. All queued ones run in one transaction, so they share one disk sync.
import type { DatabaseSync } from 'node:sqlite'
import { applySteps, type Outcome, type Query, type Step } from '../../../core/store.ts'
import { type Answer, type Committed, clock, type Operation, toFailure } from './messages.ts'
import { prepareStore, SqlPartition } from './partition.ts'

function createOperations(db: DatabaseSync) {
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

export type Operations = ReturnType<typeof createOperations>

/** `read`: no lock; `moment`: can be lost in a power cut; `durable`: on the disk before the response. */
type Durability = 'read' | 'moment' | 'durable'

function durabilityOf({ name, args }: Operation): Durability {
  if (name === 'read') return 'read'
  return args[2] === 'relaxed' ? 'moment' : 'durable'
}

const EXPIRED: Answer = { failure: { code: 'late', text: 'it waited for too long' } }

/** Faults of the whole file, so operations are not retried one by one. */
const FILE_CODES: ReadonlySet<string> = new Set(['locked', 'damaged', 'alien', 'readonly', 'disk', 'path'])

/** How long a locked file is retried, milliseconds. */
const LOCK_TIMEOUT = 2_000

const nap = new Int32Array(new SharedArrayBuffer(4))

const strongest = (batch: readonly Operation[]): Durability => {
  const weights = new Set(batch.map(durabilityOf))
  return weights.has('durable') ? 'durable' : weights.has('moment') ? 'moment' : 'read'
}

export function createTransactions(db: DatabaseSync, emit: (committed: Committed) => void) {
  const operations = createOperations(db)
  let durability: Durability | undefined

  /** Retries while the file is locked. SQLite itself would back off longer. */
  function withRetry<Value>(weight: Durability, act: () => Value): Value {
    for (const end = performance.now() + LOCK_TIMEOUT; ; Atomics.wait(nap, 0, 0, 1)) {
      try {
        return transaction(weight, act)
      } catch (error) {
        if (toFailure(error).code !== 'locked' || performance.now() > end) throw error
      }
    }
  }

  function transaction<Value>(weight: Durability, act: () => Value): Value {
    if (weight !== 'read' && weight !== durability) {
      db.exec(`PRAGMA synchronous = ${weight === 'durable' ? 'FULL' : 'NORMAL'}`)
      durability = weight
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

  function execute({ name, args, deadline }: Operation): Answer {
    if (clock() > deadline) return EXPIRED
    const operation = operations[name] as (...args: readonly unknown[]) => unknown
    return { value: operation(...args) }
  }

  function runBatch(batch: readonly Operation[]): readonly Answer[] {
    const startedAt = performance.now()
    const weight = strongest(batch)
    const results = withRetry(weight, () => batch.map(execute))
    emit({ operations: batch.length, seconds: (performance.now() - startedAt) / 1_000, durable: weight === 'durable' })
    return results
  }

  function run(batch: readonly Operation[]): readonly Answer[] {
    try {
      return runBatch(batch)
    } catch (error) {
      const failure = toFailure(error)
      if (batch.length === 1) return [{ failure }]
      if (!FILE_CODES.has(failure.code)) return batch.flatMap(operation => run([operation]))
      // Reads can succeed even if the transaction failed.
      return batch.flatMap(operation => (durabilityOf(operation) === 'read' ? run([operation]) : [{ failure }]))
    }
  }

  return { run, write: (act: () => void, weight: 'moment' | 'durable' = 'moment') => withRetry(weight, act) }
}
