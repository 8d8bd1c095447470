// An intrusive linked list for requests and idle sessions (a Set allocates on deletion), and a queue with one shared timer.

import { type Clock, systemClock, type Timer } from './clock.ts'

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

export interface TimeoutEntry extends Linked {
  due?: number
  onTimeout(): void
}

/** Calls `onTimeout` of each entry in insertion order, with one timer for all entries. */
export class TimeoutQueue<T extends TimeoutEntry> extends LinkedList<T> {
  readonly #milliseconds: number
  readonly #clock: Clock
  #timer: Timer | undefined

  constructor(milliseconds: number, clock: Clock = systemClock) {
    super()
    this.#milliseconds = milliseconds
    this.#clock = clock
  }

  override add(entry: T): void {
    entry.due = this.#clock.monotonic() + this.#milliseconds
    super.add(entry)
    this.#timer ??= this.#schedule(this.#milliseconds)
  }

  #schedule(milliseconds: number): Timer {
    return this.#clock.setTimeout(() => this.#expire(), milliseconds).unref()
  }

  #expire(): void {
    const now = this.#clock.monotonic()
    try {
      for (let { oldest } = this; oldest && (oldest.due ?? 0) <= now; { oldest } = this) {
        this.delete(oldest)
        oldest.onTimeout()
      }
    } finally {
      const { oldest } = this
      this.#timer = oldest && this.#schedule((oldest.due ?? 0) - now)
    }
  }
}
