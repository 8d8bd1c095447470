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

export const cut = (text: string): string => (text.length > MOST ? `${text.slice(0, MOST)}…` : text)

/** A value in a line: JSON, cut. */
export function shown(value: unknown): string {
  if (value === undefined) return 'none'
  return cut(JSON.stringify(value) ?? 'none')
}
