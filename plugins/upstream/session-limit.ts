// Limits the sessions of callers, with a share for each owner: a user, or the network of anonymous callers.
import { ToolError } from '../../core/index.ts'

export interface LimitedSession {
  readonly owner: string
  readonly users: number
  readonly isClosed: boolean
  /** Resolves when its connection or process has ended. */
  readonly ended: Promise<void>
  close(): void
}

/** Maximum share of the slots that one owner can use, rounded up. */
const MAX_SHARE = 1 / 4

/** Returns the session to end first: a closed one, or the least recently used one without calls. */
const findLeastUsed = (list: readonly LimitedSession[]): LimitedSession | undefined =>
  list.find(({ isClosed }) => isClosed) ?? list.find(({ users }) => users === 0)

export class SessionLimit {
  readonly #max: number
  readonly #share: number
  /** Sessions in order of use; the most recently used session is last. */
  readonly #sessions = new Set<LimitedSession>()

  /** `isShared`: false if all callers are the same user. */
  constructor(max: number, isShared: boolean) {
    this.#max = max
    this.#share = isShared ? Math.ceil(max * MAX_SHARE) : max
  }

  get all(): readonly LimitedSession[] {
    return [...this.#sessions]
  }

  /**
   * Returns the session to replace with a new one of `owner`; undefined if a slot is free. Throws a ToolError if none
   * can be replaced.
   */
  findEvictable(owner: string, server: string): LimitedSession | undefined {
    const byOwner = new Map<string, LimitedSession[]>()
    for (const session of this.#sessions) byOwner.set(session.owner, [...(byOwner.get(session.owner) ?? []), session])
    const ownSessions = byOwner.get(owner) ?? []
    const limitError = () => new ToolError(`The server "${server}" has too many sessions. Try again later.`)
    if (ownSessions.length >= this.#share) {
      const found = findLeastUsed(ownSessions)
      if (!found) throw limitError()
      return found
    }
    if (this.#sessions.size < this.#max) return undefined
    // Owners with fewer sessions lose none.
    const others = [...byOwner.values()].filter(list => list.length >= ownSessions.length)
    for (const list of others.sort((one, other) => other.length - one.length)) {
      const found = findLeastUsed(list)
      if (found) return found
    }
    throw limitError()
  }

  /** Takes the slot of `evicted`, which ends before the new session begins. */
  take(one: LimitedSession, evicted: LimitedSession | undefined): void {
    if (evicted) {
      this.#sessions.delete(evicted)
      evicted.close()
    }
    this.#sessions.add(one)
  }

  used(one: LimitedSession): void {
    if (this.#sessions.delete(one)) this.#sessions.add(one)
  }

  free(one: LimitedSession): void {
    this.#sessions.delete(one)
  }
}
