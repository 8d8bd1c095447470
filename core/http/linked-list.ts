// A list of entries that are linked through themselves, for requests and idle sessions. A Set allocates 120 bytes per deletion.

/** The list writes these fields. An entry can be in one list. */
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

  add(entry: T): void {
    this.delete(entry)
    entry.linked = true
    entry.older = this.#newest
    if (this.#newest) this.#newest.newer = entry
    else this.#oldest = entry
    this.#newest = entry
    this.#size++
  }

  /** False if the entry was not in the list. */
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

  /** The current entry can be deleted during iteration. */
  *[Symbol.iterator](): Generator<T, void> {
    for (let next = this.#oldest; next; ) {
      const entry = next
      next = entry.newer
      yield entry
    }
  }
}
