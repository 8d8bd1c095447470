// How many calls run at once, of a session and of an owner: a call whose client has gone runs on, with its arguments and
// its questions, so clients alone would not bound them. For every transport with sessions.
import { HostError } from '../http/errors.ts'
import { sessionGone } from './refusals.ts'
import type { Session } from './session.ts'
import type { SessionBounds } from './session-bounds.ts'

/** What is asked of a session. */
type Caller = Pick<Session, 'holder' | 'calls' | 'disposed'>

/** The requests that run at a node, by their session. */
export interface RunningCalls {
  /**
   * Counts requests that begin. A batch is let in whole, where a single request would be. Throws `sessionNotFound` where the
   * session ended since it was found, and `tooManyRequests` where it or its owner has as many as it may; nothing is counted
   * then.
   */
  enter(session: Caller, requests: number): void
  leave(session: Caller, requests: number): void
}

const tooMany = (detail: string) => new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '1' } })

/**
 * Owners without a running call are kept until there are this many, and forgotten at once: the table of a Map that owners enter
 * and leave with every call is made anew about once a call, 150 bytes that only a full collection frees.
 */
const MAX_QUIET = 1_000

/** How many requests each runs. */
class OwnersCalls {
  readonly #byOwner = new Map<string, number>()
  #quiet = 0

  of(owner: string): number {
    return this.#byOwner.get(owner) ?? 0
  }

  set(owner: string, calls: number): void {
    if (this.#byOwner.get(owner) === 0) this.#quiet--
    this.#byOwner.set(owner, calls)
    if (calls === 0 && ++this.#quiet > MAX_QUIET) this.#forgetQuiet()
  }

  #forgetQuiet() {
    for (const [owner, calls] of this.#byOwner) if (calls === 0) this.#byOwner.delete(owner)
    this.#quiet = 0
  }
}

export function createRunningCalls({ maxCallsPerSession, maxCallsPerOwner }: SessionBounds): RunningCalls {
  const owners = new OwnersCalls()
  return {
    enter(session, requests) {
      if (session.disposed) throw sessionGone()
      const owned = owners.of(session.holder)
      if (requests > 0 && session.calls >= maxCallsPerSession) {
        throw tooMany(`at most ${maxCallsPerSession} requests of a session run at once`)
      }
      if (requests > 0 && owned >= maxCallsPerOwner) {
        throw tooMany(`at most ${maxCallsPerOwner} requests of one user or address run at once`)
      }
      session.calls += requests
      owners.set(session.holder, owned + requests)
    },
    leave(session, requests) {
      session.calls -= requests
      owners.set(session.holder, owners.of(session.holder) - requests)
    },
  }
}
