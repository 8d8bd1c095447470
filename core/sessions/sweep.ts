// Looks now and then for sessions of this node whose time is over, and keeps what is in use from expiring. For registry.ts.
import type { Session } from './session.ts'
import { shortId } from './session-id.ts'
import type { SessionMarks } from './session-marks.ts'
import type { ThisNode } from './this-node.ts'

/** Sessions are looked at this often at least, milliseconds. */
const INTERVAL = 30_000
/** How often streams that nobody writes to are kept from expiring, milliseconds. */
const RENEW_INTERVAL = 300_000

/** Until the returned function is called. */
export function startSweeping(
  { name, store, bounds, log, clock, sessions }: ThisNode,
  { mark }: SessionMarks,
): () => void {
  let renewedAt = clock.monotonic()

  /** Used elsewhere or not at all: a node need not keep it, unless it runs it or nobody else could go on with it. */
  async function sweepIdle(session: Session) {
    const before = session.lastUsed
    const left = await store.timeLeft(session.digest)
    if (session.inUse || session.lastUsed !== before) return
    if (left === undefined) {
      log.debug({ session: shortId(session.id) }, 'a session ended: idle')
      session.dispose(new Error('the session was idle for too long'))
    } else if (!store.shared || (session.offer.spansRun && session.home === name)) {
      session.lastUsed = clock.now() - Math.max(0, bounds.idleTimeout - left)
    } else session.dispose(new Error('the session is not used here'), true)
  }

  async function sweep() {
    const limit = clock.now() - bounds.idleTimeout
    const renews = clock.monotonic() - renewedAt > RENEW_INTERVAL
    if (renews) renewedAt = clock.monotonic()
    for (const session of sessions.values()) {
      if (renews) for (const stream of session.streams.values()) stream.reopen()
      if (session.inUse) mark(session, true)
      else if (session.lastUsed <= limit) await sweepIdle(session)
    }
  }

  const timer = clock
    .setInterval(
      () => void sweep().catch(err => log.debug({ err }, 'the store could not be asked')),
      Math.min(INTERVAL, Math.max(50, bounds.idleTimeout / 4)),
    )
    .unref()
  return () => clock.clear(timer)
}
