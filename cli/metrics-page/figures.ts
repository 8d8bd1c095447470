// Asks a metrics page: sums by labels, and histograms with their quantiles. What a page has not is undefined, not zero.
import type { MetricsPage, Sample } from './parse-page.ts'

export type Labels = Sample['labels']

const NONE: readonly Sample[] = []

export const samplesOf = (page: MetricsPage, name: string): readonly Sample[] => page.samples.get(name) ?? NONE

/** All samples of a name together, or those of some labels; undefined where there are none. Not numbers are passed over. */
export function sum(
  page: MetricsPage,
  name: string,
  fits: (labels: Labels) => boolean = () => true,
): number | undefined {
  const found = samplesOf(page, name).filter(({ labels, value }) => !Number.isNaN(value) && fits(labels))
  return found.length === 0 ? undefined : found.reduce((total, { value }) => total + value, 0)
}

/** The greatest of them. */
export function greatest(page: MetricsPage, name: string): number | undefined {
  const values = samplesOf(page, name).flatMap(({ value }) => (Number.isNaN(value) ? [] : [value]))
  return values.length === 0 ? undefined : values.reduce((most, value) => Math.max(most, value))
}

/** Sums by what `keyOf` makes of the labels; undefined leaves a sample out. */
export function sumBy(
  page: MetricsPage,
  name: string,
  keyOf: (labels: Labels) => string | undefined,
): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { labels, value } of samplesOf(page, name)) {
    const key = keyOf(labels)
    if (key !== undefined && !Number.isNaN(value)) sums.set(key, (sums.get(key) ?? 0) + value)
  }
  return sums
}

export interface Histogram {
  readonly count: number
  readonly sum: number
  /** How many there are of at most this much, by `le`. */
  readonly buckets: ReadonlyMap<number, number>
}

/** Histograms by what `keyOf` makes of the labels, those of one key together. */
export function histogramsBy(
  page: MetricsPage,
  name: string,
  keyOf: (labels: Labels) => string | undefined,
): Map<string, Histogram> {
  const counts = sumBy(page, `${name}_count`, keyOf)
  const sums = sumBy(page, `${name}_sum`, keyOf)
  const buckets = new Map<string, Map<number, number>>()
  for (const { labels, value } of samplesOf(page, `${name}_bucket`)) {
    const key = keyOf(labels)
    const { le = '' } = labels
    const bound = le === '+Inf' ? Infinity : Number(le)
    if (key === undefined || le === '' || Number.isNaN(bound) || Number.isNaN(value)) continue
    const known = buckets.get(key) ?? new Map<number, number>()
    known.set(bound, (known.get(bound) ?? 0) + value)
    buckets.set(key, known)
  }
  return new Map(
    [...counts].map(([key, count]) => [
      key,
      { count, sum: sums.get(key) ?? 0, buckets: buckets.get(key) ?? new Map<number, number>() },
    ]),
  )
}

/** The least time that a histogram resolves, which is its first bound. A quantile that equals it is below it. */
export const resolutionOf = ({ buckets }: Histogram): number | undefined =>
  buckets.size === 0 ? undefined : Math.min(...buckets.keys())

/**
 * As Prometheus computes it, by interpolation within a bucket; above the last bound, that bound. In the first bucket it is the
 * bucket's bound: interpolation between zero and that bound gives a value that nobody measured. Undefined if nothing was
 * counted.
 */
export function quantileOf({ buckets }: Histogram, part: number): number | undefined {
  const bounds = [...buckets].sort(([a], [b]) => a - b)
  const [, total = 0] = bounds.at(-1) ?? []
  if (!(total > 0)) return undefined
  const rank = part * total
  let lower: number | undefined
  let below = 0
  for (const [bound, count] of bounds) {
    if (count >= rank && count > below) {
      if (bound === Infinity) return lower
      if (lower === undefined) return bound
      return lower + ((bound - lower) * Math.max(0, rank - below)) / (count - below)
    }
    lower = bound
    below = Math.max(below, count)
  }
  return lower
}

/** What was counted from one page to the next; a counter that is less than before began anew. */
export const grown = (before: number, now: number): number => (now < before ? now : now - before)

/** The same of a histogram. Where it began anew, or was not there before, all of it. */
export function grownHistogram(before: Histogram | undefined, now: Histogram): Histogram {
  if (!before || now.count < before.count) return now
  const buckets = [...now.buckets].map(([bound, count]): [number, number] => [
    bound,
    Math.max(0, count - (before.buckets.get(bound) ?? 0)),
  ])
  return { count: now.count - before.count, sum: Math.max(0, now.sum - before.sum), buckets: new Map(buckets) }
}
