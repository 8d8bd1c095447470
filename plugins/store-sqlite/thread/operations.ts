// All that can be asked of the file, by name, and how safe each is to be once it is answered.
import type { DatabaseSync } from 'node:sqlite'
import type { StoreBounds } from './bounds.ts'
import { eventOperations } from './events.ts'
import { grantOperations } from './grants.ts'
import { sessionOperations } from './sessions.ts'

export const operationsOn = (db: DatabaseSync, bounds: StoreBounds) => ({
  ...sessionOperations(db, bounds),
  ...eventOperations(db, bounds),
  ...grantOperations(db, bounds),
})

export type Operations = ReturnType<typeof operationsOn>

/** What a transaction takes: no lock; or one, and the disk's word that it is there once it is answered, or not. */
export type Weight = 'read' | 'moment' | 'durable'

const READS: ReadonlySet<keyof Operations> = new Set([
  ...(['nodeOfRequest', 'sessionTimeLeft', 'streamState', 'eventsAfter', 'getGrant', 'grantMembers'] as const),
])

/** What describes the moment: a power cut ends what runs, and how lately a session was used may be forgotten. */
const MOMENTS: ReadonlySet<keyof Operations> = new Set(['enterSession', 'leaveSession', 'markSessions'])

export const weightOf = (name: keyof Operations): Weight =>
  READS.has(name) ? 'read' : MOMENTS.has(name) ? 'moment' : 'durable'
