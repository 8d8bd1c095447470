// Text for people and programs: shell words, times, JSON documents and tables.
import { isObject, printable, printableLines } from '../client/text.ts'
import { nearest } from '../core/mcp/nearest.ts'

/** The JSON object in a text; undefined for anything else. */
export function parseObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const serverText = (text: string): string => printable(text, 4_000)

/** One word of a shell command, quoted if required. */
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

export function localTime(at: number): string {
  const date = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** Indented JSON. JSON.stringify does not escape C1 controls and direction marks. */
export const jsonText = (value: unknown): string => printableLines(JSON.stringify(value, undefined, 2))

export function columns(rows: ReadonlyArray<readonly [string, string]>): string {
  const width = rows.reduce((most, [left]) => Math.max(most, Math.min(left.length, 100)), 0)
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd()).join('\n')
}

export type Cell = string | number | undefined

const LEAST_WIDTH = 8

function isNumeric(texts: readonly string[]): boolean {
  const known = texts.filter(text => text !== '-')
  return known.length > 0 && known.every(text => /^[\d.]{1,12}(?: %)?$/.test(text))
}

function narrow(widths: number[], mayShrink: readonly boolean[], most: number): void {
  while (widths.reduce((sum, width) => sum + width, 0) > most) {
    const widest = Math.max(...widths.filter((_, column) => mayShrink[column]), 0)
    if (widest <= LEAST_WIDTH) return
    widths[widths.findIndex((width, column) => mayShrink[column] && width === widest)] = widest - 1
  }
}

/**
 * Table lines, numbers right-aligned. No header if all `head` texts are empty. `width`: maximum line length; longer cells are
 * cut.
 */
export function tableLines(
  head: readonly string[],
  rows: ReadonlyArray<readonly Cell[]>,
  width = Number.POSITIVE_INFINITY,
  gap = '  ',
): string[] {
  const body = rows.map(row => row.map(cell => (cell === undefined ? '-' : printable(String(cell), 2_000))))
  const numeric = head.map((_, column) => isNumeric(body.map(row => row[column] ?? '')))
  const all = head.some(title => title !== '') ? [head, ...body] : body
  const widths = head.map((_, column) => all.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0))
  narrow(
    widths,
    numeric.map(one => !one),
    width - gap.length * (head.length - 1),
  )
  const cellText = (text: string, own: number, isNumber = false) => {
    const cut = text.length <= own ? text : `${text.slice(0, own - 1)}…`
    return isNumber ? cut.padStart(own) : cut.padEnd(own)
  }
  return all.map(row =>
    widths
      .map((own, column) => cellText(row[column] ?? '', own, numeric[column]))
      .join(gap)
      .trimEnd(),
  )
}
