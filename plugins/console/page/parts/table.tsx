// A table that renders only visible rows, with sorting and arrow keys. Rows have one height, so that their position is known.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Optional } from './text.tsx'

/** Pixels; the same in style.css. */
const ROW = 40
/** Rows rendered above and below the visible ones. */
const MARGIN = 8

export interface Column<Row> {
  readonly title: string
  /** Enables sorting. Shown unless there is a `cell`. */
  readonly value?: (row: Row) => string | number | undefined
  /** Strings are untrusted. */
  readonly cell?: (row: Row) => ComponentChildren
  /** CSS width. The columns without one share the rest. */
  readonly width?: string
  /** Right-aligned. */
  readonly isNumber?: boolean
  /** Hidden on narrow screens. */
  readonly isExtra?: boolean
}

interface TableProps<Row> {
  /** Read by screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  /** Opens the details of a row: by click, or with the button in its first cell. */
  readonly onOpen?: ((row: Row) => void) | undefined
  /** Called when the first row leaves or enters the view. */
  readonly onScroll?: ((isAtTop: boolean) => void) | undefined
}

interface Order {
  readonly column: number
  readonly isDescending: boolean
}

function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: Order | undefined): readonly Row[] {
  const by = order && columns[order.column]?.value
  if (!by) return rows
  const sign = order.isDescending ? -1 : 1
  return rows.toSorted((a, b) => {
    const [left = '', right = ''] = [by(a), by(b)]
    return left === right ? 0 : left < right ? -sign : sign
  })
}

const Cell = <Row,>({ column: { cell, value }, row }: { readonly column: Column<Row>; readonly row: Row }) => (
  <Optional value={(cell ?? value)?.(row)} />
)

const classOf = <Row,>({ isNumber = false, isExtra = false }: Column<Row>) =>
  [isNumber && 'right', isExtra && 'wide-only'].filter(Boolean).join(' ') || undefined

export function Table<Row>({ caption, columns, rows: given, keyOf, onOpen, onScroll }: TableProps<Row>) {
  const frame = useRef<HTMLElement>(null)
  const [order, setOrder] = useState<Order>()
  const [seen, setSeen] = useState({ top: 0, height: 800 })
  const rows = sorted(given, columns, order)
  const first = Math.max(0, Math.min(Math.floor(seen.top / ROW) - MARGIN, rows.length - 1))
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / ROW) + MARGIN)

  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = () => setSeen({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  function scrolled() {
    const element = frame.current
    if (!element) return
    setSeen({ top: element.scrollTop, height: element.clientHeight })
    onScroll?.(element.scrollTop < ROW)
  }

  function pressed(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const row = event.target instanceof Element ? event.target.closest('tr[data-row]') : null
    if (step === undefined || row === null) return
    const next = step === 1 ? row.nextElementSibling : row.previousElementSibling
    const button = next?.querySelector<HTMLElement>('button, a')
    if (!button) return
    event.preventDefault()
    button.focus()
    button.scrollIntoView({ block: 'nearest' })
  }

  const space = (height: number) =>
    height > 0 && (
      // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row is not focusable.
      <tr class="space" aria-hidden="true">
        <td style={{ height: `${height}px` }} />
      </tr>
    )

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
    <section class="table" ref={frame} tabIndex={0} aria-label={caption} onScroll={scrolled} onKeyDown={pressed}>
      <table aria-rowcount={rows.length + 1}>
        <caption>{caption}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column, index) => {
              const isSorted = order?.column === index
              return (
                <th
                  key={column.title}
                  scope="col"
                  class={classOf(column)}
                  style={column.width === undefined ? undefined : { width: column.width }}
                  aria-sort={isSorted ? (order.isDescending ? 'descending' : 'ascending') : undefined}
                >
                  {column.value ? (
                    <button
                      type="button"
                      onClick={() => setOrder({ column: index, isDescending: isSorted && !order.isDescending })}
                    >
                      {column.title}
                      <span aria-hidden="true">{isSorted ? (order.isDescending ? ' ↓' : ' ↑') : ''}</span>
                    </button>
                  ) : (
                    column.title
                  )}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>
          {space(first * ROW)}
          {rows.slice(first, last).map((row, index) => (
            <tr
              key={keyOf(row)}
              data-row={onOpen ? '' : undefined}
              aria-rowindex={first + index + 2}
              onClick={event => {
                const isControl = event.target instanceof Element && event.target.closest('a, button') !== null
                if (!isControl) onOpen?.(row)
              }}
            >
              {columns.map((column, at) => (
                <td key={column.title} class={classOf(column)}>
                  {at === 0 && onOpen ? (
                    <button type="button" class="link" onClick={() => onOpen(row)}>
                      <Cell column={column} row={row} />
                    </button>
                  ) : (
                    <Cell column={column} row={row} />
                  )}
                </td>
              ))}
            </tr>
          ))}
          {space((rows.length - last) * ROW)}
        </tbody>
      </table>
    </section>
  )
}
