// All that can be asked of the file, by name, and how safe each is to be once it is answered.
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

/** What a transaction takes: no lock; or one, and the disk's word that it is there once it is answered, or not. */
export type Weight = 'read' | 'moment' | 'durable'

const READS: ReadonlySet<keyof Operations> = new Set([
  ...(['nodeOfRequest', 'sessionTimeLeft', 'streamState', 'eventsAfter', 'getGrant', 'grantMembers'] as const),
  ...(['getTask', 'lookAtTask', 'listTasks', 'taskDepths'] as const),
])

/** What describes the moment: a power cut ends what runs, how lately a session was used may be forgotten, and who
 * holds a lease renews it soon. */
const MOMENTS: ReadonlySet<keyof Operations> = new Set(['enterSession', 'leaveSession', 'markSessions', 'renewTasks'])

export const weightOf = (name: keyof Operations): Weight =>
  READS.has(name) ? 'read' : MOMENTS.has(name) ? 'moment' : 'durable'
