// A queue that is fair between owners: the owner with the fewest places is next. Of several, it is the owner who came, or got a
// place, the longest ago.
import { type Linked, LinkedList } from '../http/linked-list.ts'

/** An entry of a `FairLine`. */
export interface InLine extends Linked {
  /** Whether it had a place before. It is then ahead of other entries of its owner. Constant while it is in the queue. */
  readonly returns: boolean
}

interface Share<Entry extends InLine> {
  places: number
  /** Entries that gave their place back, also if they are not in the queue. */
  paused: number
  readonly returning: LinkedList<Entry>
  readonly waiting: LinkedList<Entry>
}

const listOf = <Entry extends InLine>(share: Share<Entry>, { returns }: Entry) =>
  returns ? share.returning : share.waiting

function firstOf<Entry extends InLine>({ returning, waiting }: Share<Entry>, fits: (entry: Entry) => boolean) {
  for (const entry of returning) if (fits(entry)) return entry
  for (const entry of waiting) if (fits(entry)) return entry
  return undefined
}

/** A queue that is fair between owners. */
export class FairLine<Entry extends InLine> {
  /** The owners with a place, a paused entry or an entry in the queue, in the order in which they came or last got a place. */
  readonly #shares = new Map<string, Share<Entry>>()
  #size = 0
  #returning = 0
  #paused = 0

  /** Number of entries in the queue. */
  get size(): number {
    return this.#size
  }
  /** Number of entries in the queue that had a place before. */
  get returning(): number {
    return this.#returning
  }
  /** Number of paused entries of all owners. */
  get paused(): number {
    return this.#paused
  }

  waitingOf(owner: string): number {
    const share = this.#shares.get(owner)
    return share ? share.returning.size + share.waiting.size : 0
  }
  pausedOf(owner: string): number {
    return this.#shares.get(owner)?.paused ?? 0
  }

  add(owner: string, entry: Entry): void {
    listOf(this.#shareOf(owner), entry).add(entry)
    this.#size++
    if (entry.returns) this.#returning++
  }

  /** Returns false if it was not in the queue. */
  delete(owner: string, entry: Entry): boolean {
    const share = this.#shares.get(owner)
    if (!share || !listOf(share, entry).delete(entry)) return false
    this.#size--
    if (entry.returns) this.#returning--
    this.#forgetIdle(owner)
    return true
  }

  /** The owner has one more place. */
  take(owner: string): void {
    const share = this.#shareOf(owner)
    share.places++
    this.#shares.delete(owner)
    this.#shares.set(owner, share)
  }

  /** The owner has one place less. */
  leave(owner: string): void {
    this.#shareOf(owner).places--
    this.#forgetIdle(owner)
  }

  /** The owner has one more paused entry. */
  pause(owner: string): void {
    this.#shareOf(owner).paused++
    this.#paused++
  }

  /** The owner has one paused entry less. */
  unpause(owner: string): void {
    this.#shareOf(owner).paused--
    this.#paused--
    this.#forgetIdle(owner)
  }

  /** The next entry of those that fit; undefined if there is none. It remains in the queue. */
  next(fits: (entry: Entry) => boolean): Entry | undefined {
    let next: Entry | undefined
    let least = Number.POSITIVE_INFINITY
    if (this.#size === 0) return undefined
    for (const share of this.#shares.values()) {
      const first = share.places < least ? firstOf(share, fits) : undefined
      if (!first) continue
      next = first
      least = share.places
    }
    return next
  }

  #shareOf(owner: string): Share<Entry> {
    const known = this.#shares.get(owner)
    if (known) return known
    const share = { places: 0, paused: 0, returning: new LinkedList<Entry>(), waiting: new LinkedList<Entry>() }
    this.#shares.set(owner, share)
    return share
  }

  #forgetIdle(owner: string): void {
    const share = this.#shares.get(owner)
    if (share?.places === 0 && share.paused === 0 && this.waitingOf(owner) === 0) this.#shares.delete(owner)
  }
}
