// A task store in memory, with its own limit and clock.
import { createMemoryStore } from '../../../../core/store.ts'
import { systemClock } from '../../../../core/transport.ts'
import { createTaskStore, type TaskStore } from '../../../../plugins/families/task-store/index.ts'

export const createMemoryTaskStore = (mostBytes?: number, now: () => number = Date.now): TaskStore =>
  createTaskStore(createMemoryStore({ now }), { mostBytes, clock: systemClock })
