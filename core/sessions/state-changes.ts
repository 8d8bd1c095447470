// What a session's client sets is kept in its record, and told to the other nodes that have a copy. For registry.ts.
import { tooManyWatched } from '../mcp/methods/session-settings.ts'
import { changedTo } from './nodes/changes-elsewhere.ts'
import type { NodeMessages } from './nodes/messages.ts'
import type { Session } from './session.ts'
import type { SessionKeeper } from './session-keeper.ts'
import type { StateChange } from './session-record.ts'
import type { Changed } from './session-store.ts'
import { takeChange, takeRecord } from './take-record.ts'
import type { ThisNode } from './this-node.ts'

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
    const { version } = record
    if (version === session.version + 1 && record.home === session.home) {
      // Nobody else has changed anything.
      session.version = version
      takeChange(session, change)
    } else takeRecord(session, record, name)
    return tell(nodes, changedTo(session, version, change))?.then(() => undefined)
  }

  return (session, change) => {
    const changed = store.change(session.digest, change)
    return changed instanceof Promise
      ? changed.then(found => kept(session, change, found))
      : kept(session, change, changed)
  }
}
