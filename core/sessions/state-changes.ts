// What a session's client sets is kept in its record, told to the other nodes that have a copy, and taken over by those.
import { tooManyWatched } from '../mcp/methods/session-settings.ts'
import type { NodeMessages } from './nodes/messages.ts'
import type { Session } from './session.ts'
import type { SessionKeeper } from './session-keeper.ts'
import type { SessionRecord, SessionState, StateChange } from './session-record.ts'
import type { Changed } from './session-store.ts'
import type { ThisNode } from './this-node.ts'

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
function takeChange(session: Session, change: StateChange) {
  if ('watch' in change) session.watch(change.watch, true)
  else if ('unwatch' in change) session.unwatch(change.unwatch)
  else Object.assign(session, change)
}

/** Keeps a change that the session here has made already; undefined where it is kept. */
export function createKeeping({ name, store }: ThisNode, tell: NodeMessages['tell']): SessionKeeper<Session>['keep'] {
  function kept(session: Session, change: StateChange, changed: Changed | 'full' | undefined) {
    if (changed === undefined) return undefined
    if (changed === 'full') {
      // Other nodes watch for it too: all together they have come to the bound.
      if ('watch' in change) session.unwatch(change.watch)
      throw tooManyWatched()
    }
    const { record, nodes } = changed
    const { version, state } = record
    if (version === session.version + 1 && record.home === session.home) {
      // Nobody else has changed anything.
      session.version = version
      takeChange(session, change)
    } else takeRecord(session, record, name)
    return tell(nodes, { type: 'changed', session: session.digest, version, state })?.then(() => undefined)
  }

  return (session, change) => {
    const changed = store.change(session.digest, change)
    return changed instanceof Promise
      ? changed.then(found => kept(session, change, found))
      : kept(session, change, changed)
  }
}
