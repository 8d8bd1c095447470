// Text for people and programs: shell words, times, JSON documents and tables.
import { printable, printableLines } from '../client/printable.ts'

/** Text of a server, made printable and cut. */
export const serverText = (text: string): string => printable(text, 4_000)

const PLAIN = /^[\w@%+=:,./-]+$/

/** As it is where no shell sees more in it, else in single quotes. */
export const shellWord = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/** ISO 8601 of milliseconds since the epoch; undefined for a time that no date can have. */
export function isoTime(at: number): string | undefined {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** `2026-01-31 18:05`; milliseconds since the epoch. */
export function localTime(at: number): string {
  const date = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** Until when a login serves. */
export function describeEnd(expiresAt: number | undefined, refreshable: boolean): string {
  const end = expiresAt === undefined ? 'until it is revoked' : `until ${localTime(expiresAt)}`
  return refreshable ? `${end}, then renewed by itself` : end
}

/** Indented. JSON.stringify leaves C1 controls and what turns the direction of text as they are. */
export const jsonText = (value: unknown): string => printableLines(JSON.stringify(value, undefined, 2))

export type Cell = string | number | undefined

const LEAST_WIDTH = 8
const GAP = '  '

/** Characters of one cell that are looked at. */
const MOST = 2_000

const textOf = (cell: Cell): string => (cell === undefined ? '-' : printable(String(cell), MOST))

/** Short, for it is not cut. */
const NUMBER = /^[\d.]{1,12}(?: %)?$/

/** Nothing but numbers, some of which may be missing. */
function isNumberColumn(texts: readonly string[]): boolean {
  const known = texts.filter(text => text !== '-')
  return known.length > 0 && known.every(text => NUMBER.test(text))
}

/** Cuts the end off, and shows that it did. */
const cutTo = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`

/** Takes from the widest column of texts until all fit, or none of them can give more. */
function narrow(widths: readonly number[], mayShrink: readonly boolean[], width: number): number[] {
  const fitted = [...widths]
  const total = () => fitted.reduce((all, one) => all + one, 0) + GAP.length * (fitted.length - 1)
  for (let over = total() - width; over > 0; over = total() - width) {
    const widest = Math.max(...fitted.filter((_, column) => mayShrink[column]), 0)
    const column = fitted.findIndex((own, index) => mayShrink[index] && own === widest)
    if (column === -1 || widest <= LEAST_WIDTH) break
    fitted[column] = Math.max(LEAST_WIDTH, widest - 1)
  }
  return fitted
}

/** Lines; without a first one where `head` is empty texts. `width`: characters of a line, as far as they do. */
export function tableLines(head: readonly string[], rows: ReadonlyArray<readonly Cell[]>, width: number): string[] {
  const body = rows.map(row => row.map(textOf))
  const isNumeric = head.map((_, column) => isNumberColumn(body.map(row => row[column] ?? '')))
  const texts = head.some(title => title !== '') ? [head, ...body] : body
  const widths = head.map((_, column) => texts.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0))
  const mayShrink = isNumeric.map(numeric => !numeric)
  const fitted = narrow(widths, mayShrink, width)
  return texts.map(row =>
    fitted
      .map((own, column) => {
        const text = cutTo(row[column] ?? '', own)
        return isNumeric[column] ? text.padStart(own) : text.padEnd(own)
      })
      .join(GAP)
      .trimEnd(),
  )
}
