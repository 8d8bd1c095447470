// All operations by name, and their durability.
import type { DatabaseSync } from 'node:sqlite'
import type { StoreBounds } from './bounds.ts'
import { eventOperations } from './events.ts'
import { grantOperations } from './grants.ts'
import { sessionOperations } from './sessions.ts'
import { taskOperations } from './tasks.ts'

export const operationsOn = (db: DatabaseSync, bounds: StoreBounds) => ({
  ...sessionOperations(db, bounds),
  ...eventOperations(db, bounds),
  ...grantOperations(db, bounds),
  ...taskOperations(db, bounds),
})

export type Operations = ReturnType<typeof operationsOn>

/** `read`: no lock; `moment`: can be lost in a power cut; `durable`: on the disk when answered. */
export type Weight = 'read' | 'moment' | 'durable'

const READS: ReadonlySet<keyof Operations> = new Set([
  ...(['nodeOfRequest', 'sessionTimeLeft', 'streamState', 'eventsAfter', 'getGrant', 'grantMembers'] as const),
  ...(['getTask', 'lookAtTask', 'listTasks', 'taskDepths'] as const),
])

/** Short-lived facts: running requests, session use, leases. */
const MOMENTS: ReadonlySet<keyof Operations> = new Set(['enterSession', 'leaveSession', 'markSessions', 'renewTasks'])

export const weightOf = (name: keyof Operations): Weight =>
  READS.has(name) ? 'read' : MOMENTS.has(name) ? 'moment' : 'durable'
