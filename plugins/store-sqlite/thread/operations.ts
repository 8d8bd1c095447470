// All operations by name, and their durability.
import type { DatabaseSync } from 'node:sqlite'
import { applySteps, type Outcome, type Query, type Step } from '../../../core/store.ts'
import type { StoreBounds } from './bounds.ts'
import { prepareStore, SqlPartition } from './partition.ts'
import { taskOperations } from './tasks.ts'

function storeOperations(db: DatabaseSync) {
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

export const operationsOn = (db: DatabaseSync, bounds: StoreBounds) => ({
  ...storeOperations(db),
  ...taskOperations(db, bounds),
})

export type Operations = ReturnType<typeof operationsOn>

/** `read`: no lock; `moment`: can be lost in a power cut; `durable`: on the disk when answered. */
export type Weight = 'read' | 'moment' | 'durable'

const READS: ReadonlySet<keyof Operations> = new Set([
  ...(['read', 'getTask', 'lookAtTask', 'listTasks', 'taskDepths'] as const),
])

interface Asked {
  readonly name: keyof Operations
  readonly args: readonly unknown[]
}

export function weightOf({ name, args }: Asked): Weight {
  if (READS.has(name)) return 'read'
  return name === 'renewTasks' || (name === 'transact' && args[2] === 'relaxed') ? 'moment' : 'durable'
}
