// A table for people: columns as wide as what is in them, numbers and times to the right, and all of it no wider than the
// terminal. What a cell says begins no line of its own.

import { printable } from '../client/text.ts'

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
