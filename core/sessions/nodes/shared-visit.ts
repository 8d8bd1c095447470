// One request to a session that any node may serve: what the registry of a node gives to shared-sessions.ts.
import type { RequestId } from '../../mcp/protocol.ts'
import type { Session } from '../session.ts'
import type { SessionOpening, SessionRecord } from './session-store.ts'

/** A request that names a session by its id, which its signature says to be the caller's. */
export interface SharedVisit {
  readonly digest: string
  readonly requests: readonly RequestId[]
  /** Throws for a session that is not the caller's, or not here. */
  readonly check: (opening: SessionOpening) => void
  /** Builds a session of this node from its record: `configureSession` runs again. */
  readonly rebuild: (record: SessionRecord) => Promise<Session>
}
