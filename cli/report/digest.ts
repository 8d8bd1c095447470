// Percentiles of durations in a fixed room: counts of values by buckets whose bounds grow by a factor, so that what is read
// back differs by ERROR at most.

/** Of a value that is told, against the one that it stands for. */
export const ERROR = 0.02

const GROWTH = (1 + ERROR) / (1 - ERROR)
const LOG_GROWTH = Math.log(GROWTH)
/** Milliseconds: the logs round to 0.01; less is told as 0, and what is longer than eleven days as that. */
const LEAST = 0.01
const MOST = 1e9
const BUCKETS = Math.ceil(Math.log(MOST / LEAST) / LOG_GROWTH) + 2

export interface Digest {
  /** Milliseconds; `weight`: how many it stands for. */
  add(value: number, weight: number): void
  /** The least value that `part` (0 to 1) of all are no greater than; undefined where there are none. */
  quantile(part: number): number | undefined
}

/** Bucket 0 is for what is less than LEAST, bucket n for (LEAST x GROWTH^(n-2), LEAST x GROWTH^(n-1)]. */
const bucketOf = (value: number): number =>
  value < LEAST ? 0 : Math.max(1, Math.ceil(Math.log(Math.min(value, MOST) / LEAST) / LOG_GROWTH) + 1)

/** The value whose distance to both ends of the bucket is the same part of them. */
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
        // Sums of weights are not exact.
        return those > 0 && seen >= rank * (1 - 1e-9)
      })
      return valueIn(bucket)
    },
  }
}
