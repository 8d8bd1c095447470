// What several rounds came to: the middle one and how far they lie apart. One round says nothing on a machine of many tenants.

/** Of the same figure in each round. */
export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
}

/** The value below which so many hundredths of the values lie (nearest rank); NaN of none. */
export function percentile(values: readonly number[], hundredths: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * hundredths) / 100) - 1)] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  lowest: values.length === 0 ? Number.NaN : Math.min(...values),
  highest: values.length === 0 ? Number.NaN : Math.max(...values),
})

/** 0.123, 1.23, 12.3, 1,234. */
export const short = (value: number) => {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1)
}

/** `1.13 (1.10 .. 1.20)`. */
export const formatSpread = ({ median, lowest, highest }: Spread) =>
  `${short(median)} (${short(lowest)} .. ${short(highest)})`
