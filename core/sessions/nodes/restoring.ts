// What this node gives a store that was away and has lost what was kept last: every session that is here.
import type { Session } from '../session.ts'
import type { SessionMarks } from '../session-marks.ts'
import type { ThisNode } from '../this-node.ts'

/** How many records go to the store at once. */
const BATCH = 100

export interface Restoring {
  /** False where the session was ended. */
  restore(session: Session): boolean | Promise<boolean>
  /** From now on, each time the store was away. */
  begin(): void
}

export function createRestoring({ store, bounds, log, sessions }: ThisNode, { mark }: SessionMarks): Restoring {
  const restore = (session: Session) =>
    store.restore(session.digest, session.record, { requests: session.running, claim: session.claim }, bounds)

  async function restoreAll() {
    const here = [...sessions.values()]
    let lost = 0
    for (let at = 0; at < here.length; at += BATCH) {
      const batch = here.slice(at, at + BATCH)
      const kept = await Promise.all(batch.map(restore))
      batch.forEach((session, index) => {
        if (!kept[index]) session.dispose(new Error('the session was ended'))
        else for (const stream of session.streams.values()) stream.reopen()
        if (kept[index]) mark(session, session.inUse)
        else lost++
      })
    }
    if (here.length > 0) log.info({ sessions: here.length - lost, ended: lost }, 'told the store of every session here')
  }

  return {
    restore,
    begin() {
      store.onReturn(() => {
        restoreAll().catch(err => log.warn({ err }, 'the store could not be told of the sessions here'))
      })
    },
  }
}
