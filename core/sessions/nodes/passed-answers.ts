// Answers that were brought to the node that asked: each is brought once, however often a client sends it. For messages.ts.
import type { RequestId } from '../../mcp/protocol.ts'
import type { Session } from '../session.ts'

/** Of a session's answers, the last ones that are remembered. */
const REMEMBERED = 256

/** `pass` brings it; one that failed may be tried again. */
export type PassOnce = (session: Session, id: RequestId, pass: () => Promise<unknown>) => Promise<void>

export function createPassOnce(): PassOnce {
  const bySession = new WeakMap<Session, Map<RequestId, Promise<void>>>()

  return (session, id, pass) => {
    const passed = bySession.get(session) ?? new Map<RequestId, Promise<void>>()
    bySession.set(session, passed)
    const before = passed.get(id)
    if (before) return before
    const passing = pass().then(
      () => undefined,
      error => {
        passed.delete(id)
        throw error
      },
    )
    passed.set(id, passing)
    const [oldest] = passed.keys()
    if (passed.size > REMEMBERED && oldest !== undefined) passed.delete(oldest)
    return passing
  }
}
