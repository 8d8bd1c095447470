// A histogram with logarithmic buckets: quantiles with an error of at most 25 %, in constant memory.

const BUCKETS = 64
/** Upper limit of the first bucket, milliseconds. */
const FIRST = 0.05
const GROWTH = 1.25
const LOG_GROWTH = Math.log(GROWTH)

export type Histogram = Uint32Array<ArrayBuffer>

export const createHistogram = (): Histogram => new Uint32Array(BUCKETS)

export const findBucket = (milliseconds: number): number =>
  milliseconds <= FIRST ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(milliseconds / FIRST) / LOG_GROWTH))

/** Index and count of each bucket that is not empty: the form of histograms in messages between nodes. */
export type PackedHistogram = readonly number[]

export const packHistogram = (histogram: Histogram): PackedHistogram =>
  [...histogram].flatMap((count, index) => (count > 0 ? [index, count] : []))

export function unpackHistogram(packed: PackedHistogram): Histogram {
  const histogram = createHistogram()
  for (let at = 0; at + 1 < packed.length; at += 2) histogram[packed[at] as number] = packed[at + 1] as number
  return histogram
}

/** Milliseconds; undefined without measurements. */
export function quantile(histograms: Iterable<Histogram>, share: number): number | undefined {
  const sums = new Array<number>(BUCKETS).fill(0)
  let all = 0
  for (const histogram of histograms) {
    for (let index = 0; index < BUCKETS; index++) {
      const count = histogram[index] ?? 0
      sums[index] = (sums[index] ?? 0) + count
      all += count
    }
  }
  if (all === 0) return undefined
  let remaining = share * all
  const found = sums.findIndex(count => {
    remaining -= count
    return remaining <= 0
  })
  const index = found === -1 ? BUCKETS - 1 : found
  return Number((FIRST * GROWTH ** index).toPrecision(3))
}

export const toQuantiles = (histograms: readonly Histogram[]) => {
  const [p50, p99] = [quantile(histograms, 0.5), quantile(histograms, 0.99)]
  return { ...(p50 !== undefined && { p50 }), ...(p99 !== undefined && { p99 }) }
}
