// What enters and leaves with every request, in the order in which it entered, linked through itself: the table of a Set is
// made anew about once for each that leaves, 120 bytes that only a full collection frees. For requests and idle sessions.

/** What a list needs of what is in it, and alone writes. In one list at a time. */
export interface Linked {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
}

export class LinkedList<T extends Linked> {
  #size = 0
  #oldest: T | undefined
  #newest: T | undefined

  get size(): number {
    return this.#size
  }
  get oldest(): T | undefined {
    return this.#oldest
  }

  /** At its end. */
  add(entry: T): void {
    this.delete(entry)
    entry.linked = true
    entry.older = this.#newest
    if (this.#newest) this.#newest.newer = entry
    else this.#oldest = entry
    this.#newest = entry
    this.#size++
  }

  /** False where it was not in it. */
  delete(entry: T): boolean {
    if (!entry.linked) return false
    const { older, newer } = entry
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
    entry.older = entry.newer = undefined
    entry.linked = false
    this.#size--
    return true
  }

  /** The one that is given may leave meanwhile. */
  *[Symbol.iterator](): Generator<T, void> {
    for (let next = this.#oldest; next; ) {
      const entry = next
      next = entry.newer
      yield entry
    }
  }
}
