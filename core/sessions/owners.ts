// Who holds how many sessions, and which of them idle: what makes the bounds fair. One greedy client loses its own
// oldest sessions; it never costs another one theirs.
import { MAX_WATCHED_BYTES_PER_OWNER } from '../mcp/limits.ts'

/** What the bounds need to know of a session. */
export interface Held {
  readonly id: string
  /** The user, or for anonymous callers the address. */
  readonly holder: string
}

interface Holder<S extends Held> {
  /** Idle sessions, longest idle first. */
  readonly idle: Set<S>
  count: number
  /** Bytes that its sessions watch together. */
  watched: number
}

export interface Owners<S extends Held> {
  readonly count: number
  readonly idleCount: number
  countOf(holder: string): number
  add(session: S): void
  remove(session: S): void
  /**
   * Counts bytes of what the session watches, fewer where they are negative. False, and not counted, past what the
   * sessions of its holder may watch together, unless another node has `letIn` them. They end with the session.
   */
  charge(session: S, bytes: number, letIn?: boolean): boolean
  /** The session idles from now on. */
  idle(session: S): void
  /** The session is in use: it cannot go for being idle. */
  use(session: S): void
  /** The session that should go first: the longest idle one of the holder who has most of them. */
  victim(): S | undefined
  /** Idle sessions of everybody, longest idle first. */
  oldestFirst(): Iterable<S>
}

export function createOwners<S extends Held>(): Owners<S> {
  const holders = new Map<string, Holder<S>>()
  const idle = new Set<S>()
  const watched = new Map<S, number>()
  let count = 0

  function holderOf(session: S): Holder<S> {
    const holder = holders.get(session.holder) ?? { idle: new Set<S>(), count: 0, watched: 0 }
    holders.set(session.holder, holder)
    return holder
  }

  return {
    get count() {
      return count
    },
    get idleCount() {
      return idle.size
    },
    countOf: holder => holders.get(holder)?.count ?? 0,
    add(session) {
      holderOf(session).count++
      count++
    },
    remove(session) {
      const holder = holderOf(session)
      holder.idle.delete(session)
      idle.delete(session)
      holder.watched -= watched.get(session) ?? 0
      watched.delete(session)
      count--
      if (--holder.count === 0) holders.delete(session.holder)
    },
    charge(session, bytes, letIn = false) {
      const holder = holderOf(session)
      if (bytes > 0 && !letIn && holder.watched + bytes > MAX_WATCHED_BYTES_PER_OWNER) return false
      holder.watched += bytes
      const left = (watched.get(session) ?? 0) + bytes
      if (left > 0) watched.set(session, left)
      else watched.delete(session)
      return true
    },
    idle(session) {
      const holder = holderOf(session)
      holder.idle.delete(session)
      holder.idle.add(session)
      idle.delete(session)
      idle.add(session)
    },
    use(session) {
      holders.get(session.holder)?.idle.delete(session)
      idle.delete(session)
    },
    victim() {
      let most: Holder<S> | undefined
      for (const holder of holders.values()) if (holder.idle.size > (most?.idle.size ?? 0)) most = holder
      const [oldest] = most?.idle ?? []
      return oldest
    },
    oldestFirst: () => idle,
  }
}
