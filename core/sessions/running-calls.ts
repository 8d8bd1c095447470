// Limits the concurrent requests of a session, and those of its owner in all sessions.
import { HostError } from '../http/errors.ts'
import type { Session } from './session.ts'
import { sessionNotFound } from './session-errors.ts'
import type { SessionLimits } from './session-store.ts'

/** A session, or the owner of a request without a session. */
export type CountedCalls = Pick<Session, 'holder' | 'calls' | 'disposed'>

/** Limits concurrent requests per session and owner. A call continues after a disconnect. */
export interface RunningCalls {
  /** Registers requests. Throws `sessionNotFound` and `tooManyRequests`. Accepts a batch if one request is allowed. */
  enter(session: CountedCalls, requests: number): void
  leave(session: CountedCalls, requests: number): void
}

const tooMany = (detail: string) => new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '1' } })

/** Maximum idle owners, removed in batches: a Map with constantly changing keys is often reallocated. */
const MAX_IDLE_OWNERS = 1_000

export function createRunningCalls({ maxCallsPerSession, maxCallsPerOwner }: SessionLimits): RunningCalls {
  const byOwner = new Map<string, number>()
  let idleOwners = 0

  return {
    enter(session, requests) {
      if (session.disposed) throw sessionNotFound()
      if (requests === 0) return
      const { holder } = session
      const owned = byOwner.get(holder)
      if (session.calls >= maxCallsPerSession) {
        throw tooMany(`at most ${maxCallsPerSession} concurrent requests per session`)
      }
      if ((owned ?? 0) >= maxCallsPerOwner) {
        throw tooMany(`at most ${maxCallsPerOwner} concurrent requests per user or address`)
      }
      session.calls += requests
      if (owned === 0) idleOwners--
      byOwner.set(holder, (owned ?? 0) + requests)
    },
    leave(session, requests) {
      if (requests === 0) return
      const left = (byOwner.get(session.holder) ?? 0) - requests
      session.calls -= requests
      byOwner.set(session.holder, left)
      if (left > 0 || ++idleOwners <= MAX_IDLE_OWNERS) return
      for (const [owner, calls] of byOwner) if (calls === 0) byOwner.delete(owner)
      idleOwners = 0
    },
  }
}
