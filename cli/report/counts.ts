// Report types and counters with constant memory: percentiles, distinct texts and the most frequent names.
import { createHash } from 'node:crypto'

/** Maximum relative error of a percentile. */
const ERROR = 0.02

const GROWTH = (1 + ERROR) / (1 - ERROR)
const LOG_GROWTH = Math.log(GROWTH)
/** Milliseconds, the precision of the logs. Smaller values count as 0; the maximum is eleven days. */
const LEAST = 0.01
const MOST = 1e9
const BUCKETS = Math.ceil(Math.log(MOST / LEAST) / LOG_GROWTH) + 2

export interface Digest {
  add(value: number, weight: number): void
  /** The smallest value with at least `part` (0 to 1) of the weight at or below it; undefined without values. */
  quantile(part: number): number | undefined
}

/** Bucket 0 is below LEAST; bucket n is (LEAST x GROWTH^(n-2), LEAST x GROWTH^(n-1)]. */
const bucketOf = (value: number): number =>
  value < LEAST ? 0 : Math.max(1, Math.ceil(Math.log(Math.min(value, MOST) / LEAST) / LOG_GROWTH) + 1)

const valueIn = (bucket: number): number => (bucket === 0 ? 0 : (LEAST * 2 * GROWTH ** (bucket - 1)) / (GROWTH + 1))

export function createDigest(): Digest {
  const counts = new Float64Array(BUCKETS)
  let count = 0
  return {
    add(value, weight) {
      const bucket = bucketOf(value)
      counts[bucket] = (counts[bucket] ?? 0) + weight
      count += weight
    },
    quantile(part) {
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

export interface Distinct {
  add(text: string): void
  count(): Count
}

const SPACE = 2 ** 48

/** Hashes a text to 48 bits. */
const hashOf = (text: string): number => createHash('md5').update(text).digest().readUIntBE(0, 6)

export function createDistinct(): Distinct {
  let kept = new Set<number>()
  let most = SPACE
  let last: string | undefined

  function prune() {
    const least = [...kept].sort((a, b) => a - b).slice(0, EXACT)
    kept = new Set(least)
    most = least.at(-1) ?? SPACE
  }

  return {
    add(text) {
      if (text === last) return
      last = text
      const hash = hashOf(text)
      if (hash > most) return
      kept.add(hash)
      if (kept.size >= 2 * EXACT) prune()
    },
    count() {
      if (kept.size > EXACT) prune()
      if (most === SPACE) return { count: kept.size, exact: true }
      return { count: Math.round(((EXACT - 1) * SPACE) / most), exact: false }
    },
  }
}

interface Ranking<Entry> {
  count(key: string, weight: number): Entry
  list(): ReadonlyArray<Ranked<Entry>>
  readonly forgotten: number
}

export interface Ranked<Entry> {
  readonly key: string
  readonly count: number
  readonly entry: Entry
}

/** Keeps `most` to twice as many entries. A dropped name starts again at 0. */
export function createRanking<Entry>(most: number, begin: () => Entry): Ranking<Entry> {
  let kept = new Map<string, { readonly key: string; count: number; readonly entry: Entry }>()
  let forgotten = 0

  const sorted = () => [...kept.values()].sort((a, b) => b.count - a.count)

  function prune() {
    const all = sorted()
    for (const { count } of all.slice(most)) forgotten += count
    kept = new Map(all.slice(0, most).map(one => [one.key, one]))
  }

  return {
    count(key, weight) {
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

/** One tool. Times in milliseconds; undefined if unknown. */
export interface ToolRow {
  readonly tool: string
  readonly route: string | undefined
  readonly calls: number
  readonly errors: number
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

export interface CauseRow {
  readonly by: string | undefined
  readonly error: string
  readonly reason: string | undefined
  readonly count: number
}

export interface RefusedRow {
  readonly user: string
  readonly error: string
  readonly count: number
}

export interface Use {
  readonly calls: number
  readonly first: string | undefined
  readonly last: string | undefined
}

/** `untold`: the source does not contain the information. */
export type Verdict = 'used' | 'unused' | 'untold'

export interface FeatureRow extends Use {
  readonly feature: string
  readonly verdict: Verdict
  readonly clients: number
}

export interface ClientRow extends Use {
  readonly client: string
  readonly revision: string
  readonly features: ReadonlyArray<Use & { readonly feature: string }>
}

export interface Legacy {
  readonly features: readonly FeatureRow[]
  readonly clients: readonly ClientRow[]
  readonly notListed: number
  readonly advice: readonly string[]
}

export interface Report {
  /** The access log was sampled: success counts and percentiles are estimates, and rare callers can be missing. */
  readonly estimated: boolean
  readonly from: string | undefined
  readonly until: string | undefined
  readonly calls: number
  readonly errors: number
  readonly errorRatio: number
  readonly requests: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly busiest: readonly ToolRow[]
  readonly slowest: readonly ToolRow[]
  readonly causes: readonly CauseRow[]
  readonly causesNotListed: number
  /** Users whose requests were refused. Empty if the source names no users. */
  readonly refused: readonly RefusedRow[]
  /** Undefined if the log was sampled, like `clients` and `sessions`. */
  readonly users: Count | undefined
  readonly clients: Count | undefined
  readonly sessions: Count | undefined
  readonly legacy: Legacy
  readonly lines: LineCounts
  readonly notes: readonly string[]
}

export interface LineCounts {
  readonly counted: number
  readonly outside: number
  readonly future: number
  readonly skipped: number
}
