// This node among those that share sessions: what everything that serves a session needs of it.
import type { Clock } from '../http/clock.ts'
import type { Logger } from '../kernel/log.ts'
import type { ChangeBus } from '../mcp/change-bus.ts'
import type { EventStore } from './event-store.ts'
import type { QuestionIds } from './nodes/question-ids.ts'
import type { Peers } from './peers.ts'
import type { Session } from './session.ts'
import type { SessionBounds } from './session-bounds.ts'
import type { SessionFigures } from './session-figures.ts'
import type { SessionStore } from './session-store.ts'

export interface ThisNode {
  /** Random, made with the host. */
  readonly name: string
  readonly store: SessionStore
  readonly peers: Peers
  readonly questionIds: QuestionIds
  /** The events of a session's streams, and the changes it hears of, are kept as its route says. */
  readonly events: (session: Session) => EventStore
  readonly bus: (session: Session) => ChangeBus
  readonly bounds: SessionBounds
  readonly log: Logger
  readonly clock: Clock
  readonly figures: SessionFigures
  /** The sessions that are here, by their digests. */
  readonly sessions: Map<string, Session>
}
