// An LRU map with several keys per value. Joining and hashing the keys would cost more.
import { getOrCreate } from './get-or-create.ts'
import { type Linked, LinkedList } from './linked-list.ts'

type Key = string | undefined

interface Entry<Value> extends Linked {
  readonly keys: readonly Key[]
  readonly value: Value
  older: this | undefined
  newer: this | undefined
  linked: boolean
}

interface Level<Value> extends Map<Key, Level<Value> | Entry<Value>> {}

/** All lists of keys have the same length. */
export class KeyedLru<Value> {
  readonly #root: Level<Value> = new Map()
  readonly #entries = new LinkedList<Entry<Value>>()
  readonly #max: number
  readonly #evicted: (value: Value) => void

  constructor(max = Infinity, evicted: (value: Value) => void = () => undefined) {
    this.#max = max
    this.#evicted = evicted
  }

  get size(): number {
    return this.#entries.size
  }

  get(keys: readonly Key[]): Value | undefined {
    const last = keys.length - 1
    let level: Level<Value> | undefined = this.#root
    for (let index = 0; level && index < last; index++) level = level.get(keys[index]) as Level<Value> | undefined
    const entry = level?.get(keys[last]) as Entry<Value> | undefined
    if (entry?.newer) this.#entries.add(entry)
    return entry?.value
  }

  add(keys: readonly Key[], value: Value): Value {
    let level = this.#root
    for (const key of keys.slice(0, -1)) level = getOrCreate(level as Map<Key, Level<Value>>, key, () => new Map())
    const entry: Entry<Value> = { keys, value, older: undefined, newer: undefined, linked: false }
    level.set(keys.at(-1), entry)
    this.#entries.add(entry)
    const { oldest } = this.#entries
    if (this.size > this.#max && oldest) {
      this.#entries.delete(oldest)
      this.#delete(this.#root, oldest.keys)
      this.#evicted(oldest.value)
    }
    return value
  }

  #delete(level: Level<Value>, [key, ...others]: readonly Key[]): void {
    if (others.length > 0) {
      const next = level.get(key) as Level<Value>
      this.#delete(next, others)
      if (next.size > 0) return
    }
    level.delete(key)
  }

  /** Returns the values, most recently used first. */
  values(): Value[] {
    return [...this.#entries].map(({ value }) => value).reverse()
  }
}
