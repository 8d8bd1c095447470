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

/** Breaks text between words. Words longer than `width` are kept whole. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

/** The least width of a wrapped right column; below it the text starts on its own line. */
const LEAST_TEXT = 36
const INDENT = 8

/** Two columns, the right one wrapped at `width`. */
export function columns(rows: ReadonlyArray<readonly [string, string]>, width = Number.POSITIVE_INFINITY): string {
  const left = rows.reduce((most, [name]) => Math.max(most, Math.min(name.length, 100)), 0)
  const room = width - left - 4
  const isNarrow = room < LEAST_TEXT
  const lines = rows.flatMap(([name, text]) => {
    if (isNarrow) return [`  ${name}`, ...wrapText(text, width - INDENT).map(line => ' '.repeat(INDENT) + line)]
    return wrapText(text, room).map((line, index) => `  ${(index === 0 ? name : '').padEnd(left)}  ${line}`)
  })
  return lines.map(line => line.trimEnd()).join('\n')
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
