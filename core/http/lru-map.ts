// A table of bounded size for what is looked up again and again: who was not asked for the longest makes room.

interface Entry<Value> {
  readonly value: Value
  /** Milliseconds since the epoch; undefined: for good. */
  readonly until: number | undefined
}

/** Keeps the `max` entries that were used last, each for as long as it was set for. */
export class LruMap<Key, Value> {
  /** In the order of their last use. */
  readonly #entries = new Map<Key, Entry<Value>>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    if (entry.until !== undefined && entry.until <= Date.now()) return undefined
    this.#entries.set(key, entry)
    return entry.value
  }

  /** `ttl` in milliseconds; default: until it makes room. */
  set(key: Key, value: Value, ttl?: number): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, until: ttl === undefined ? undefined : Date.now() + ttl })
    const [oldest] = this.#entries.size > this.#max ? this.#entries.keys() : []
    if (oldest !== undefined) this.#entries.delete(oldest)
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** What still counts, with the time at which it ends; the longest unused first. */
  *entries(): Generator<[key: Key, value: Value, until: number | undefined]> {
    const now = Date.now()
    for (const [key, { value, until }] of this.#entries)
      if (until === undefined || until > now) yield [key, value, until]
  }
}
