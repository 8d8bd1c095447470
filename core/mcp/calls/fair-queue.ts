// A queue that is fair between owners: the owner with the fewest slots is next, then the longest queued entry.
import { type Linked, LinkedList } from '../../http/linked-list.ts'

export interface Queued extends Linked {
  /** True if the entry had a slot before: it is ahead of its owner's other entries. Constant while queued. */
  readonly isResuming: boolean
}

interface Share<Entry extends Queued> {
  slots: number
  paused: number
  readonly resuming: LinkedList<Entry>
  readonly waiting: LinkedList<Entry>
}

const listOf = <Entry extends Queued>(share: Share<Entry>, { isResuming }: Entry) =>
  isResuming ? share.resuming : share.waiting

function firstOf<Entry extends Queued>(
  { resuming, waiting }: Share<Entry>,
  fits: (entry: Entry) => boolean,
  depth: 'first' | 'all',
) {
  for (const list of [resuming, waiting])
    for (const entry of list) {
      if (fits(entry)) return entry
      if (depth === 'first') break
    }
  return undefined
}

export class FairQueue<Entry extends Queued> {
  readonly #shares = new Map<string, Share<Entry>>()
  #size = 0
  #slots = 0
  #resuming = 0
  #paused = 0

  get size(): number {
    return this.#size
  }
  get slots(): number {
    return this.#slots
  }
  get resuming(): number {
    return this.#resuming
  }
  get paused(): number {
    return this.#paused
  }

  waitingOf(owner: string): number {
    const share = this.#shares.get(owner)
    return share ? share.resuming.size + share.waiting.size : 0
  }
  slotsOf(owner: string): number {
    return this.#shares.get(owner)?.slots ?? 0
  }
  pausedOf(owner: string): number {
    return this.#shares.get(owner)?.paused ?? 0
  }

  add(owner: string, entry: Entry): void {
    listOf(this.#shareOf(owner), entry).add(entry)
    this.#size++
    if (entry.isResuming) this.#resuming++
  }

  delete(owner: string, entry: Entry): boolean {
    const share = this.#shares.get(owner)
    if (!share || !listOf(share, entry).delete(entry)) return false
    this.#size--
    if (entry.isResuming) this.#resuming--
    this.#forgetIdle(owner)
    return true
  }

  take(owner: string): void {
    const share = this.#shareOf(owner)
    share.slots++
    this.#slots++
    // The only owner keeps its position, and each move can reallocate the table of the Map.
    if (this.#shares.size === 1) return
    this.#shares.delete(owner)
    this.#shares.set(owner, share)
  }

  leave(owner: string): void {
    this.#shareOf(owner).slots--
    this.#slots--
    this.#forgetIdle(owner)
  }

  pause(owner: string): void {
    this.#shareOf(owner).paused++
    this.#paused++
  }

  unpause(owner: string): void {
    this.#shareOf(owner).paused--
    this.#paused--
    this.#forgetIdle(owner)
  }

  /**
   * Tests the first resuming and the first waiting entry of each owner. `depth` `all`: tests all entries, for
   * conditions that can differ between entries of one owner.
   */
  next(fits: (entry: Entry) => boolean, depth: 'first' | 'all' = 'first'): Entry | undefined {
    let next: Entry | undefined
    let least = Number.POSITIVE_INFINITY
    if (this.#size === 0) return undefined
    for (const share of this.#shares.values()) {
      const first = share.slots < least ? firstOf(share, fits, depth) : undefined
      if (!first) continue
      next = first
      least = share.slots
    }
    return next
  }

  #shareOf(owner: string): Share<Entry> {
    const known = this.#shares.get(owner)
    if (known) return known
    const share = { slots: 0, paused: 0, resuming: new LinkedList<Entry>(), waiting: new LinkedList<Entry>() }
    this.#shares.set(owner, share)
    return share
  }

  #forgetIdle(owner: string): void {
    const share = this.#shares.get(owner)
    if (share?.slots === 0 && share.paused === 0 && this.waitingOf(owner) === 0) this.#shares.delete(owner)
  }
}
