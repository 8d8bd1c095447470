// Counters with constant memory: percentiles, distinct texts and the most frequent names.
import { createHash } from 'node:crypto'

/** Maximum relative error of a percentile. */
const ERROR = 0.02

const GROWTH = (1 + ERROR) / (1 - ERROR)
const LOG_GROWTH = Math.log(GROWTH)
/** Milliseconds, the precision of the logs. Smaller values count as 0; the maximum is eleven days. */
const LEAST = 0.01
const MOST = 1e9
const BUCKETS = Math.ceil(Math.log(MOST / LEAST) / LOG_GROWTH) + 2

/** Bucket 0 is below LEAST; bucket n is (LEAST x GROWTH^(n-2), LEAST x GROWTH^(n-1)]. */
const bucketOf = (value: number): number =>
  value < LEAST ? 0 : Math.max(1, Math.ceil(Math.log(Math.min(value, MOST) / LEAST) / LOG_GROWTH) + 1)

const valueIn = (bucket: number): number => (bucket === 0 ? 0 : (LEAST * 2 * GROWTH ** (bucket - 1)) / (GROWTH + 1))

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
      return valueIn(bucket)
    },
  }
}

/** Maximum kept hashes; counts up to here are exact. */
const EXACT = 2_048

export interface Count {
  readonly count: number
  /** False if the count is an estimate. */
  readonly exact: boolean
}

const SPACE = 2 ** 48

/** Hashes a text to 48 bits. */
const hashOf = (text: string): number => createHash('md5').update(text).digest().readUIntBE(0, 6)

export function createDistinct() {
  let kept = new Set<number>()
  let most = SPACE
  let last: string | undefined

  function prune() {
    const least = [...kept].sort((a, b) => a - b).slice(0, EXACT)
    kept = new Set(least)
    most = least.at(-1) ?? SPACE
  }

  return {
    add(text: string): void {
      if (text === last) return
      last = text
      const hash = hashOf(text)
      if (hash > most) return
      kept.add(hash)
      if (kept.size >= 2 * EXACT) prune()
    },
    count(): Count {
      if (kept.size > EXACT) prune()
      if (most === SPACE) return { count: kept.size, exact: true }
      return { count: Math.round(((EXACT - 1) * SPACE) / most), exact: false }
    },
  }
}

export interface Ranked<Entry> {
  readonly key: string
  count: number
  readonly entry: Entry
}

/** Keeps `most` to twice as many entries. A dropped name starts again at 0. */
export function createRanking<Entry>(most: number, begin: () => Entry) {
  let kept = new Map<string, Ranked<Entry>>()
  let forgotten = 0

  const sorted = () => [...kept.values()].sort((a, b) => b.count - a.count)

  function prune() {
    const all = sorted()
    for (const { count } of all.slice(most)) forgotten += count
    kept = new Map(all.slice(0, most).map(one => [one.key, one]))
  }

  return {
    count(key: string, weight: number): Entry {
      const known = kept.get(key)
      if (known) {
        known.count += weight
        return known.entry
      }
      if (kept.size >= 2 * most) prune()
      const entry = begin()
      kept.set(key, { key, count: weight, entry })
      return entry
    },
    list: sorted,
    get forgotten() {
      return forgotten
    },
  }
}
