// A table for people: columns as wide as what is in them, numbers to the right, and all of it no wider than the terminal.

export type Cell = string | number | undefined

const LEAST_WIDTH = 8
const GAP = '  '

const textOf = (cell: Cell): string => (cell === undefined ? '-' : String(cell))

/** Cuts the end off, and shows that it did. */
export const cutTo = (text: string, width: number): string =>
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

/** Lines. A column of numbers stands to the right; `width`: characters of a line, as far as they do. */
export function tableLines(head: readonly string[], rows: ReadonlyArray<readonly Cell[]>, width: number): string[] {
  const isNumeric = head.map((_, column) => rows.some(row => typeof row[column] === 'number'))
  const texts = [head, ...rows.map(row => row.map(textOf))]
  const widths = head.map((_, column) => Math.max(...texts.map(row => row[column]?.length ?? 0)))
  const fitted = narrow(
    widths,
    isNumeric.map(numeric => !numeric),
    width,
  )
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
