// What a session's record says is taken over by the session here: other nodes change it too.
import type { Session } from './session.ts'
import type { SessionRecord, SessionState, StateChange } from './session-record.ts'

/** What its record says, where that is newer than what is known here. `node`: this one. */
export function takeRecord(session: Session, record: Omit<SessionRecord, 'opening'>, node: string): void {
  const { version, home, state } = record
  if (session.version >= version) return
  session.version = version
  // Another node took this one for dead, and runs it now.
  if (session.home === node && home !== node) session.endRun()
  session.home = home
  takeState(session, state)
}

function takeState(session: Session, { revision, client, logLevel, watched }: SessionState) {
  Object.assign(session, { revision, client, logLevel })
  const wanted = new Set(watched)
  for (const uri of session.watched) if (!wanted.has(uri)) session.unwatch(uri)
  for (const uri of wanted) session.watch(uri, true)
}

/** A change that the session made here before the store had it: a record that came meanwhile, without it, has undone it. */
export function takeChange(session: Session, change: StateChange) {
  if ('watch' in change) session.watch(change.watch, true)
  else if ('unwatch' in change) session.unwatch(change.unwatch)
  else Object.assign(session, change)
}
