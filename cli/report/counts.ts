// Counters with constant memory: percentiles, distinct texts and the most frequent names.
import { createHash } from 'node:crypto'

/** Maximum relative error of a percentile. */
const ERROR = 0.02

const GROWTH = (1 + ERROR) / (1 - ERROR)
const LOG_GROWTH = Math.log(GROWTH)
/** Milliseconds, the precision of the logs. Smaller values count as 0; the maximum is eleven days. */
const MIN = 0.01
const MAX = 1e9
const BUCKETS = Math.ceil(Math.log(MAX / MIN) / LOG_GROWTH) + 2

/** Bucket 0 is below LEAST; bucket n is (LEAST x GROWTH^(n-2), LEAST x GROWTH^(n-1)]. */
const bucketOf = (value: number): number =>
  value < MIN ? 0 : Math.max(1, Math.ceil(Math.log(Math.min(value, MAX) / MIN) / LOG_GROWTH) + 1)

export function createDigest() {
  const counts = new Float64Array(BUCKETS)
  let count = 0
  return {
    add(value: number, weight: number): void {
      const bucket = bucketOf(value)
      counts[bucket] = (counts[bucket] ?? 0) + weight
      count += weight
    },
    /** The smallest value with at least `part` (0 to 1) of the weight at or below it; undefined without values. */
    quantile(part: number): number | undefined {
      if (count === 0) return undefined
      const rank = part * count
      let seen = 0
      const bucket = counts.findIndex(those => {
        seen += those
        return those > 0 && seen >= rank * (1 - 1e-9)
      })
      return bucket === 0 ? 0 : (MIN * 2 * GROWTH ** (bucket - 1)) / (GROWTH + 1)
    },
  }
}

/** Maximum kept hashes; counts up to here are exact. */
const MAX_EXACT = 2_048

export interface Count {
  readonly count: number
  /** False if the count is an estimate. */
  readonly exact: boolean
}

const HASH_SPACE = 2 ** 48

export function createDistinct() {
  let entries = new Set<number>()
  let max = HASH_SPACE
  let last: string | undefined

  function prune() {
    const min = [...entries].sort((a, b) => a - b).slice(0, MAX_EXACT)
    entries = new Set(min)
    max = min.at(-1) ?? HASH_SPACE
  }

  return {
    add(text: string): void {
      if (text === last) return
      last = text
      const hash = createHash('md5').update(text).digest().readUIntBE(0, 6)
      if (hash > max) return
      entries.add(hash)
      if (entries.size >= 2 * MAX_EXACT) prune()
    },
    count(): Count {
      if (entries.size > MAX_EXACT) prune()
      if (max === HASH_SPACE) return { count: entries.size, exact: true }
      return { count: Math.round(((MAX_EXACT - 1) * HASH_SPACE) / max), exact: false }
    },
  }
}

export interface Ranked<Entry> {
  readonly key: string
  count: number
  readonly entry: Entry
}

/** Keeps `most` to twice as many entries. A dropped name starts again at 0. */
export function createRanking<Entry>(max: number, createEntry: () => Entry) {
  let entries = new Map<string, Ranked<Entry>>()
  let evicted = 0

  const sorted = () => [...entries.values()].sort((a, b) => b.count - a.count)

  function prune() {
    const all = sorted()
    for (const { count } of all.slice(max)) evicted += count
    entries = new Map(all.slice(0, max).map(one => [one.key, one]))
  }

  return {
    count(key: string, weight: number): Entry {
      const known = entries.get(key)
      if (known) {
        known.count += weight
        return known.entry
      }
      if (entries.size >= 2 * max) prune()
      const entry = createEntry()
      entries.set(key, { key, count: weight, entry })
      return entry
    },
    list: sorted,
    get forgotten() {
      return evicted
    },
  }
}
