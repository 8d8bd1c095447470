// What a session's client set at another node: a message has the one change, not the record, which may be long. Where a
// message before it has not come, the record is read. For messages.ts.
import type { PeerMessage } from '../peers.ts'
import type { Session } from '../session.ts'
import { FIRST_STATE, type StateChange } from '../session-record.ts'
import { takeChange, takeRecord } from '../take-record.ts'
import type { ThisNode } from '../this-node.ts'

type Changed = Extract<PeerMessage, { type: 'changed' }>

/** `version`: of the record with the change. */
export const changedTo = ({ digest }: Session, version: number, change: StateChange): Changed => ({
  type: 'changed',
  session: digest,
  // What a node of 0.1 passes over: it reads the record with the session's next request there.
  version: 0,
  state: FIRST_STATE,
  change,
  madeVersion: version,
})

/** Takes what another node said of a session that is here. */
export function createTakeChanged({ name, store, bounds, log }: Omit<ThisNode, 'sessions'>) {
  /** Sessions whose records are being read, and whether that is to be done once more. */
  const reading = new Map<Session, boolean>()

  async function read(session: Session) {
    const found = await store.enter(session.digest, { version: session.version, requests: [], from: [] }, bounds)
    if (found.kind === 'entered' && found.record && !session.disposed) takeRecord(session, found.record, name)
  }

  async function readAll(session: Session) {
    if (reading.has(session)) {
      reading.set(session, true)
      return
    }
    try {
      do {
        reading.set(session, false)
        await read(session)
      } while (reading.get(session) && !session.disposed)
    } catch (err) {
      log.debug({ err }, 'what a client set at another node is read with its next request')
    } finally {
      reading.delete(session)
    }
  }

  return (session: Session, { version, state, change, madeVersion }: Changed) => {
    if (!change || madeVersion === undefined) return takeRecord(session, { version, state, home: session.home }, name)
    if (madeVersion <= session.version) return
    if (madeVersion > session.version + 1) return void readAll(session)
    session.version = madeVersion
    takeChange(session, change)
  }
}
