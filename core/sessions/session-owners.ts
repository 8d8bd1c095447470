// The sessions of this process per owner, and the idle ones in order.
import { type Linked, LinkedList } from '../http/linked-list.ts'

export interface OwnedSession extends Linked {
  readonly holder: string
  readonly lastUsed: number
}

/** Counts sessions per owner. Eviction affects the owner's own oldest sessions. */
export class SessionOwners<S extends OwnedSession> {
  readonly #holders = new Map<string, { readonly idle: LinkedList<S>; count: number }>()
  idleCount = 0

  countOf(holder: string): number {
    return this.#holders.get(holder)?.count ?? 0
  }

  idleOf(holder: string): Iterable<S> {
    return this.#holders.get(holder)?.idle ?? []
  }

  add({ holder }: Pick<OwnedSession, 'holder'>): void {
    const known = this.#holders.get(holder)
    if (known) known.count++
    else this.#holders.set(holder, { idle: new LinkedList<S>(), count: 1 })
  }

  /** Reverts `add` for a session that is not idle. */
  discount({ holder }: Pick<OwnedSession, 'holder'>): void {
    const known = this.#holders.get(holder)
    if (known && --known.count === 0) this.#holders.delete(holder)
  }

  remove(session: S): void {
    this.use(session)
    this.discount(session)
  }

  idle(session: S): void {
    if (!session.linked) this.idleCount++
    this.#holders.get(session.holder)?.idle.add(session)
  }

  use(session: S): void {
    if (this.#holders.get(session.holder)?.idle.delete(session)) this.idleCount--
  }

  /** Returns the longest idle session of the holders with most idle sessions. */
  victim(): S | undefined {
    let most = 1
    let victim: S | undefined
    for (const { idle } of this.#holders.values()) {
      const { size, oldest } = idle
      if (!oldest || size < most) continue
      if (!victim || size > most || oldest.lastUsed < victim.lastUsed) victim = oldest
      most = size
    }
    return victim
  }
}
