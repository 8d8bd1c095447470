// Summarizes several rounds as their median and range. On a shared machine, a single round is not reliable.

export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
}

/** Nearest-rank percentile. NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export const computeSpread = (values: readonly number[]): Spread => ({
  median: median(values),
  lowest: values.length === 0 ? Number.NaN : Math.min(...values),
  highest: values.length === 0 ? Number.NaN : Math.max(...values),
})

/** Three significant digits: 1.23, 12.3, 1,234. */
export const formatNumber = (value: number) => {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1)
}

/** `1.13 (1.10 .. 1.20)`. */
export const formatSpread = ({ median, lowest, highest }: Spread) =>
  `${formatNumber(median)} (${formatNumber(lowest)} .. ${formatNumber(highest)})`
