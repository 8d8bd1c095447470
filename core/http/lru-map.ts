// A table of bounded size for what is looked up again and again: what was not asked for in a while makes room.

interface Entry<Value> {
  readonly value: Value
  /** Milliseconds since the epoch; undefined: for good. */
  readonly until: number | undefined
}

/**
 * Keeps at most `max` entries, each for as long as it was set for; the `max / 2` that were used last are always among them.
 * In two maps, so that to look up what is in use moves nothing: entries that leave a map and enter it again at each look-up
 * have it made anew every so often, in memory that only a full collection frees.
 */
export class LruMap<Key, Value> {
  /** What was used since the other was begun. When it has half of all, it becomes the other, which is let go. */
  #recent = new Map<Key, Entry<Value>>()
  #earlier = new Map<Key, Entry<Value>>()
  readonly #half: number

  constructor(max: number) {
    this.#half = Math.max(1, Math.floor(max / 2))
  }

  get(key: Key): Value | undefined {
    const recent = this.#recent.get(key)
    const entry = recent ?? this.#earlier.get(key)
    if (!entry) return undefined
    if (entry.until !== undefined && entry.until <= Date.now()) {
      this.delete(key)
      return undefined
    }
    if (!recent) this.#enter(key, entry)
    return entry.value
  }

  /** `ttl` in milliseconds; default: until it makes room. */
  set(key: Key, value: Value, ttl?: number): void {
    this.#enter(key, { value, until: ttl === undefined ? undefined : Date.now() + ttl })
  }

  #enter(key: Key, entry: Entry<Value>): void {
    this.delete(key)
    if (this.#recent.size === this.#half) {
      this.#earlier = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, entry)
  }

  delete(key: Key): void {
    this.#recent.delete(key)
    this.#earlier.delete(key)
  }

  clear(): void {
    this.#recent.clear()
    this.#earlier.clear()
  }

  /** What still counts, with the time at which it ends; what was not used in a while first. */
  *entries(): Generator<[key: Key, value: Value, until: number | undefined]> {
    const now = Date.now()
    for (const entries of [this.#earlier, this.#recent]) {
      for (const [key, { value, until }] of entries) if (until === undefined || until > now) yield [key, value, until]
    }
  }
}
