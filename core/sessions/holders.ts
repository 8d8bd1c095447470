// Who holds how many sessions, and which of them idle: what makes the bounds fair. One greedy client loses its own
// oldest sessions; it never costs another one theirs. For memory-session-store.ts.
import { type Linked, LinkedList } from '../http/linked-list.ts'

/** What the bounds need to know of a session. */
export interface Held extends Linked {
  /** The user, or for anonymous callers the address. */
  readonly holder: string
}

interface Holder<S extends Held> {
  /** Idle sessions, longest idle first. */
  readonly idle: LinkedList<S>
  count: number
}

export interface Holders<S extends Held> {
  readonly count: number
  readonly idleCount: number
  countOf(holder: string): number
  /** Those of a holder that idle, longest idle first. */
  idleOf(holder: string): Iterable<S>
  add(session: S): void
  remove(session: S): void
  /** The session idles from now on. */
  idle(session: S): void
  /** The session is in use: it cannot go for being idle. */
  use(session: S): void
  /** The session that should go first: the longest idle one of the holder who has most of them. */
  victim(): S | undefined
}

export function createHolders<S extends Held>(): Holders<S> {
  const holders = new Map<string, Holder<S>>()
  let count = 0
  let idleCount = 0

  return {
    get count() {
      return count
    },
    get idleCount() {
      return idleCount
    },
    countOf: holder => holders.get(holder)?.count ?? 0,
    idleOf: holder => holders.get(holder)?.idle ?? [],
    add(session) {
      const holder = holders.get(session.holder) ?? { idle: new LinkedList<S>(), count: 0 }
      holders.set(session.holder, holder)
      holder.count++
      count++
    },
    remove(session) {
      const holder = holders.get(session.holder)
      if (!holder) return
      if (holder.idle.delete(session)) idleCount--
      count--
      if (--holder.count === 0) holders.delete(session.holder)
    },
    idle(session) {
      const holder = holders.get(session.holder)
      if (!holder) return
      if (holder.idle.delete(session)) idleCount--
      holder.idle.add(session)
      idleCount++
    },
    use(session) {
      if (holders.get(session.holder)?.idle.delete(session)) idleCount--
    },
    victim() {
      let most: Holder<S> | undefined
      for (const holder of holders.values()) if (holder.idle.size > (most?.idle.size ?? 0)) most = holder
      return most?.idle.oldest
    },
  }
}
