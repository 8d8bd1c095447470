// Parses durations and sizes of the config. The patterns are part of JSON Schemas.
/** Milliseconds, or a number with its unit: `'250ms'`, `'30s'`, `'5m'`, `'2h'`, `'1d'`. */
export type Duration = string | number
/** Bytes, or a number with its unit: `'64kb'`, `'4mb'`, `'1gb'` (1 kb = 1,024 bytes). */
export type Size = string | number

/** Matches durations such as `'250ms'` and `'1.5h'`. */
export const DURATION_PATTERN = '^\\d+(\\.\\d+)?(ms|s|m|h|d)$'
export const POSITIVE_DURATION_PATTERN = `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`
/** Matches sizes such as `'64kb'` and `'1.5mb'`. */
export const SIZE_PATTERN = '^\\d+(\\.\\d+)?(b|kb|mb|gb)$'

/** Matches a claim, or claims joined by dots, but neither JSONPath nor JSON Pointer. */
export const CLAIM_PATH_PATTERN = '^[^$/]'

export const DURATION_WORDS = "a duration such as '30s', or milliseconds"
export const SIZE_WORDS = "a size such as '4mb', or bytes"

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_UNITS: Readonly<Record<string, number>> = { b: 1, kb: 1_024, mb: 1_024 ** 2, gb: 1_024 ** 3 }

/** Converts a duration to milliseconds. Throws a RangeError. */
export const parseDuration = (value: string | number): number =>
  parse(value, DURATION_PATTERN, DURATION_UNITS, DURATION_WORDS)

/** Converts a size to bytes. Throws a RangeError. */
export const parseSize = (value: string | number): number => parse(value, SIZE_PATTERN, SIZE_UNITS, SIZE_WORDS)

function parse(value: string | number, pattern: string, units: Readonly<Record<string, number>>, words: string) {
  const amount = typeof value === 'number' ? value : amountOf(value, pattern, units)
  if (!Number.isFinite(amount) || amount < 0) throw new RangeError(`found ${JSON.stringify(value)}; expected ${words}`)
  return Math.round(amount)
}

function amountOf(value: string, pattern: string, units: Readonly<Record<string, number>>): number {
  if (!new RegExp(pattern).test(value)) return Number.NaN
  const unit = value.replace(/^[\d.]+/, '')
  return Number.parseFloat(value) * (units[unit] ?? Number.NaN)
}
