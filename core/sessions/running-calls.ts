// How many calls run at once, of a session and of an owner: a call whose client has gone runs on, with its arguments and
// its questions, so clients alone would not bound them. For every transport with sessions.
import { HostError } from '../http/errors.ts'
import { sessionGone } from './refusals.ts'
import type { Session } from './session.ts'
import type { SessionBounds } from './session-bounds.ts'

/** The requests that run at a node, by their session. */
export interface RunningCalls {
  /**
   * Counts requests that begin. A batch is let in whole, where a single request would be. Throws `sessionNotFound` where the
   * session ended since it was found, and `tooManyRequests` where it or its owner has as many as it may; nothing is counted
   * then.
   */
  enter(session: Session, requests: number): void
  leave(session: Session, requests: number): void
}

const tooMany = (detail: string) => new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '1' } })

export function createRunningCalls({ maxCallsPerSession, maxCallsPerOwner }: SessionBounds): RunningCalls {
  const byOwner = new Map<string, number>()
  return {
    enter(session, requests) {
      if (session.disposed) throw sessionGone()
      const owned = byOwner.get(session.holder) ?? 0
      if (requests > 0 && session.calls >= maxCallsPerSession) {
        throw tooMany(`at most ${maxCallsPerSession} requests of a session run at once`)
      }
      if (requests > 0 && owned >= maxCallsPerOwner) {
        throw tooMany(`at most ${maxCallsPerOwner} requests of one user or address run at once`)
      }
      session.calls += requests
      byOwner.set(session.holder, owned + requests)
    },
    leave(session, requests) {
      session.calls -= requests
      const left = (byOwner.get(session.holder) ?? 0) - requests
      if (left > 0) byOwner.set(session.holder, left)
      else byOwner.delete(session.holder)
    },
  }
}
