// Indexes by what they are of, as many as there is room for: what was not asked for in a while makes room.

/** As many as there are views of which something is kept. */
const MOST_ENTRIES = 1_000

export class Kept<Key, Value> {
  readonly #most: number
  /** What was asked for last is at the end. */
  readonly #entries = new Map<Key, { readonly value: Value; readonly bytes: number }>()
  #bytes = 0

  /** Keeps this many bytes, or the one that was asked for last; and never more than 1,000. */
  constructor(most: number) {
    this.#most = most
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  set(key: Key, value: Value, bytes: number): void {
    this.delete(key)
    this.#entries.set(key, { value, bytes })
    this.#bytes += bytes
    for (const oldest of this.#entries.keys()) {
      if ((this.#bytes <= this.#most && this.#entries.size <= MOST_ENTRIES) || oldest === key) break
      this.delete(oldest)
    }
  }

  delete(key: Key): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0
    this.#entries.delete(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  entries(): Iterable<readonly [key: Key, value: Value]> {
    return [...this.#entries].map(([key, { value }]) => [key, value] as const)
  }
}
