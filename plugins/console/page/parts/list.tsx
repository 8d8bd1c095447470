// A list of rows for a screen: filters, table, empty states, and a drawer for the row in the URL.
import type { ComponentChildren } from 'preact'
import { useQuery } from '../data/query.ts'
import { count, plural, visibleText } from '../data/text.ts'
import { Drawer } from './dialogs.tsx'
import { Empty } from './states.tsx'
import { type Column, Table } from './table.tsx'
import { Text } from './text.tsx'

interface ChoiceProps {
  readonly label: string
  readonly value: string
  /** Value and text. */
  readonly options: Iterable<readonly [string, string]>
  readonly onChange: (value: string) => void
}

export const Choice = ({ label, value, options, onChange }: ChoiceProps) => (
  <label class="inline">
    <span>{label}</span>
    <select value={value} onChange={event => onChange(event.currentTarget.value)}>
      {[...options].map(([one, text]) => (
        <option key={one} value={one}>
          {visibleText(text, 100)}
        </option>
      ))}
    </select>
  </label>
)

export interface Filter<Row> {
  /** The parameter of the URL. */
  readonly name: string
  readonly label: string
  readonly options: Iterable<readonly [string, string]>
  readonly of: (row: Row) => string
}

interface Details<Row> {
  readonly title: (row: Row) => string
  readonly content: (row: Row, close: () => void) => ComponentChildren
}

export interface ListProps<Row> {
  /** Such as `call`. */
  readonly noun: string
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  /** The parameters of the URL that identify a row. The first is enough if it is unique. */
  readonly keyOf: (row: Row) => Readonly<Record<string, string>>
  readonly details?: Details<Row>
  /** Enables the text filter. */
  readonly textOf?: (row: Row) => string
  readonly placeholder?: string
  readonly filters?: readonly Filter<Row>[]
  /** Default: the number of rows. */
  readonly summary?: (shown: number) => string
  /** Controls after the filters. */
  readonly children?: ComponentChildren
  /** For lists without rows. */
  readonly hint?: ComponentChildren
  readonly onOpen?: () => void
  readonly onClose?: () => void
  readonly onScroll?: (isAtTop: boolean) => void
}

export function List<Row>(props: ListProps<Row>) {
  const { noun, rows, keyOf, details, textOf, filters = [], onOpen, onClose } = props
  const [query, change] = useQuery()
  const words = (query.get('q') ?? '').toLowerCase()
  const isShown = (row: Row) =>
    filters.every(({ name, of }) => [of(row), ''].includes(query.get(name) ?? '')) &&
    (words === '' || textOf === undefined || textOf(row).toLowerCase().includes(words))
  const shown = rows.filter(isShown)
  const isOpened = (row: Row) =>
    Object.entries(keyOf(row)).every(
      ([name, value], index) => (query.get(name) ?? (index > 0 ? value : null)) === value,
    )
  const opened = details && rows.find(isOpened)
  const none = (keys: Iterable<string>) => Object.fromEntries([...keys].map(key => [key, undefined]))
  const { summary = (some: number) => (some === rows.length ? '' : `${count(some)} of `) + plural(rows.length, noun) } =
    props

  function close(row: Row) {
    change(none(Object.keys(keyOf(row))))
    onClose?.()
  }

  return (
    <>
      <div class="tools">
        {textOf && (
          <label class="inline">
            <span>Filter</span>
            <input
              type="search"
              value={query.get('q') ?? ''}
              placeholder={props.placeholder}
              onInput={event => change({ q: event.currentTarget.value })}
            />
          </label>
        )}
        {filters.map(({ name, label, options }) => (
          <Choice
            key={name}
            label={label}
            value={query.get(name) ?? ''}
            options={[['', 'All'], ...options]}
            onChange={value => change({ [name]: value })}
          />
        ))}
        {props.children}
        <span class="muted small number">{summary(shown.length)}</span>
      </div>
      {shown.length > 0 ? (
        <Table
          caption={props.caption}
          columns={props.columns}
          rows={shown}
          keyOf={row => Object.values(keyOf(row)).join('\n')}
          onScroll={props.onScroll}
          onOpen={
            details &&
            (row => {
              onOpen?.()
              change(keyOf(row))
            })
          }
        />
      ) : rows.length === 0 ? (
        <Empty title={`No ${noun}s`}>{props.hint}</Empty>
      ) : (
        <Empty title={`No ${noun} matches the filter`}>
          <button type="button" onClick={() => change(none(['q', ...filters.map(({ name }) => name)]))}>
            Clear the filter
          </button>
        </Empty>
      )}
      {opened && (
        <Drawer title={<Text value={details.title(opened)} most={160} />} onClose={() => close(opened)}>
          {details.content(opened, () => close(opened))}
        </Drawer>
      )}
    </>
  )
}
