// The operations of the store by name, and their durability.
import type { DatabaseSync } from 'node:sqlite'
import { applySteps, type Outcome, type Query, type Step } from '../../../core/store.ts'
import { prepareStore, SqlPartition } from './partition.ts'

export function operationsOn(db: DatabaseSync) {
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

/** `read`: no lock; `moment`: can be lost in a power cut; `durable`: on the disk when answered. */
export type Weight = 'read' | 'moment' | 'durable'

interface Asked {
  readonly name: keyof Operations
  readonly args: readonly unknown[]
}

export function weightOf({ name, args }: Asked): Weight {
  if (name === 'read') return 'read'
  return args[2] === 'relaxed' ? 'moment' : 'durable'
}
