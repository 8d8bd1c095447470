// What the comparisons of two surfaces share: verdicts, values as text, and whether two pieces of JSON are the same.
import { isDeepStrictEqual } from 'node:util'

/**
 * What a newer schema accepts, held against the older: `less`, `more`, or of both (`other`); `unknown` where that cannot be
 * judged. `words`: only what models and people read differs. `same`: something was named that had no name.
 */
export type Verdict = 'less' | 'more' | 'other' | 'unknown' | 'words' | 'same'

/** Most characters of a value that a line shows. */
const MOST = 160

export const isSame = (one: unknown, other: unknown): boolean => Object.is(one, other) || isDeepStrictEqual(one, other)

/** The beginning, and how much is not shown. */
export const cut = (text: string, most = MOST): string =>
  text.length > most ? `${text.slice(0, most)}… (and ${text.length - most} more characters)` : text

/** Whether a value in a line is not whole. */
export const isCut = (value: unknown): boolean => (JSON.stringify(value) ?? '').length > MOST

/** Both, where a line cannot show them whole: for the lines below it. */
export const sidesOf = (before: unknown, after: unknown): { before?: unknown; after?: unknown } =>
  isCut(before) || isCut(after) ? { before, after } : {}

/** A value in a line: JSON, cut. */
export function shown(value: unknown): string {
  if (value === undefined) return 'none'
  return cut(JSON.stringify(value) ?? 'none')
}
