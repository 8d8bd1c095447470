// Steps that the checks of task stores share.

import { randomUUID } from 'node:crypto'
import type {
  NewTask,
  QueueOffer,
  TaskChange,
  TaskLimits,
  TaskRecord,
  TaskStore,
} from '../../../plugins/families/task-store/index.ts'
import { holds, same } from './assertions.ts'

export const MINUTE = 60_000
export const MANY = 50

export const WIDE: TaskLimits = { openPerHolder: 1_000, keptPerHolder: 1_000, kept: 10_000 }

export const newTask = (more: Partial<NewTask> = {}): NewTask => ({
  id: randomUUID(),
  holder: 'ann',
  owner: 'owner of it',
  queue: 'jobs',
  ttl: MINUTE,
  body: '{}',
  ...more,
})

export const offer = (more: Partial<QueueOffer> = {}): QueueOffer => ({
  queue: 'jobs',
  running: 1_000,
  runningPerHolder: 1_000,
  ...more,
})

export async function create(store: TaskStore, more: Partial<NewTask> = {}, bounds = WIDE): Promise<string> {
  const task = newTask(more)
  same(await store.create(task, bounds), 'created', 'create keeps a task that is within the bounds')
  return task.id
}

export async function begin(store: TaskStore, more: Partial<NewTask> = {}, lease = MINUTE): Promise<TaskRecord> {
  const id = await create(store, more)
  const taken = await store.claim([offer({ queue: more.queue ?? 'jobs' })], lease)
  same(taken?.id, id, 'claim takes the task that waits')
  return taken as TaskRecord
}

export const takenFrom = async (store: TaskStore, ...offers: readonly QueueOffer[]) =>
  (await store.claim(offers.length === 0 ? [offer()] : offers, MINUTE))?.id

export async function read(store: TaskStore, id: string): Promise<TaskRecord> {
  const record = await store.get(id)
  holds(record, 'get gives a task that was created and whose time is not over')
  return record
}

export function hear(store: TaskStore) {
  const updates: TaskChange[] = []
  let missed = 0
  const stop = store.watch(news => {
    if (news) updates.push(news)
    else missed++
  })
  return { told: updates, stop, missed: () => missed }
}
