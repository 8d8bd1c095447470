// A queue of entries with the same time limit. They share one timer: a timer per request costs 0.6 of its 26 µs.
import { type Clock, systemClock, type Timer } from './clock.ts'
import { type Linked, LinkedList } from './linked-list.ts'

/** The queue writes all fields. */
export interface Waiting extends Linked {
  /** Monotonic time. */
  due?: number
  /** Called when the time is over. */
  overdue(): void
}

/** Calls `overdue` of each entry in insertion order. */
export class EqualWait<T extends Waiting> {
  readonly #milliseconds: number
  readonly #clock: Clock
  readonly #waiting = new LinkedList<T>()
  #timer: Timer | undefined

  constructor(milliseconds: number, clock: Clock = systemClock) {
    this.#milliseconds = milliseconds
    this.#clock = clock
  }

  add(entry: T): void {
    entry.due = this.#clock.monotonic() + this.#milliseconds
    this.#waiting.add(entry)
    this.#timer ??= this.#lookIn(this.#milliseconds)
  }

  delete(entry: T): void {
    this.#waiting.delete(entry)
  }

  #lookIn(milliseconds: number): Timer {
    return this.#clock.setTimeout(() => this.#look(), milliseconds).unref()
  }

  #look(): void {
    const now = this.#clock.monotonic()
    try {
      for (let { oldest } = this.#waiting; oldest && (oldest.due ?? 0) <= now; { oldest } = this.#waiting) {
        this.#waiting.delete(oldest)
        oldest.overdue()
      }
    } finally {
      const { oldest } = this.#waiting
      this.#timer = oldest && this.#lookIn((oldest.due ?? 0) - now)
    }
  }
}
