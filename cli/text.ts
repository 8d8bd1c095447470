// Text for people and programs: shell words, times and JSON documents.
import { isObject, printable, printableLines } from '../client/text.ts'
import { nearest } from '../core/mcp/nearest.ts'

/** Parses a JSON object; returns undefined for any other text. */
export function parseObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const serverText = (text: string): string => printable(text, 4_000)

/** Formats one word of a shell command, quoted if required. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

export function nearestHint(given: string, known: Iterable<string>): string {
  const near = nearest(given, known)
  return near === undefined ? '' : `; did you mean "${near}"?`
}

/** ISO 8601 of milliseconds since the epoch; undefined if a Date cannot represent the time. */
export function isoTime(at: number): string | undefined {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** Swedish has the format of ISO 8601: `2026-11-22 15:00`. */
export const localTime = (at: number): string =>
  new Date(at).toLocaleString('sv', { dateStyle: 'short', timeStyle: 'short' })

/** Such as `1 client` or `2 clients`. */
export const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Indented JSON. JSON.stringify does not escape C1 controls and direction marks. */
export const jsonText = (value: unknown): string => printableLines(JSON.stringify(value, undefined, 2))
