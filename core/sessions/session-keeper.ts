// What a session needs of the node that has it: registry.ts gives it that. For session.ts.
import type { Clock } from '../http/clock.ts'
import type { Offer } from '../mcp/call.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { StateChange } from './session-record.ts'

export interface SessionKeeper<Session> {
  readonly clock: Clock
  /** The session's first use begins, or its last one ended. */
  used(session: Session, inUse: boolean): void
  /** `elsewhere`: other nodes may go on with it. */
  disposed(session: Session, elsewhere: boolean): void
  /** Calls are answered, or will not begin. */
  finished(session: Session, ids: readonly RequestId[]): void
  /** Keeps a change in its record; undefined where that is done. */
  keep(session: Session, change: StateChange): Promise<void> | undefined
  /** Brings an answer to the node that asked; undefined where that is no other one. */
  passAnswer(session: Session, id: RequestId, body: Readonly<Record<string, unknown>>): Promise<void> | undefined
  /** Brings a cancellation to the node that runs the request; undefined where that is no other one. */
  passCancel(session: Session, id: RequestId, reason: string): Promise<void> | undefined
  /** Gives names for the questions that this node asks in the session, each once. */
  nameQuestions(session: Session): () => string
  /** Counts what its sessions watch, in bytes; as `Charge` says. */
  charge(session: Session, bytes: number, letIn: boolean): boolean
  feedOn(route: Offer['route']): ChangeFeed
}
