// Who is next where few can be served at a time: whoever has the fewest places, and among those whoever came, or
// got one, the longest ago. Who asks often waits for himself, and keeps nobody else out.
import { type Linked, LinkedList } from '../http/linked-list.ts'

interface Share<Entry extends Linked> {
  places: number
  readonly waiting: LinkedList<Entry>
}

export class FairLine<Entry extends Linked> {
  /** Of each owner that has or waits for a place, in the order in which they came or last got one. */
  readonly #shares = new Map<string, Share<Entry>>()
  #size = 0

  /** How many wait. */
  get size(): number {
    return this.#size
  }

  waitingOf(owner: string): number {
    return this.#shares.get(owner)?.waiting.size ?? 0
  }

  /** Behind all else of this owner. */
  add(owner: string, entry: Entry): void {
    this.#shareOf(owner).waiting.add(entry)
    this.#size++
  }

  /** It waits no longer. */
  delete(owner: string, entry: Entry): void {
    if (!this.#shares.get(owner)?.waiting.delete(entry)) return
    this.#size--
    this.#forgetIdle(owner)
  }

  /** The owner has one place more. */
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

  /** Whose turn it is; undefined where nobody waits. */
  next(): Entry | undefined {
    let least: Share<Entry> | undefined
    if (this.#size === 0) return undefined
    for (const share of this.#shares.values()) {
      if (share.waiting.size > 0 && share.places < (least?.places ?? Number.POSITIVE_INFINITY)) least = share
    }
    return least?.waiting.oldest
  }

  #shareOf(owner: string): Share<Entry> {
    const known = this.#shares.get(owner)
    if (known) return known
    const share = { places: 0, waiting: new LinkedList<Entry>() }
    this.#shares.set(owner, share)
    return share
  }

  #forgetIdle(owner: string): void {
    const share = this.#shares.get(owner)
    if (share?.places === 0 && share.waiting.size === 0) this.#shares.delete(owner)
  }
}
