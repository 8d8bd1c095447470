// Table columns for times and nodes, shared by several screens.
import { clock } from '../data/clock.ts'
import { duration, fullTime } from '../data/text.ts'
import type { Column } from './table.tsx'

export const ago = (at: number): string => `${duration(clock.value - at)} ago`

export const timeColumn = <Row,>(title: string, of: (row: Row) => number): Column<Row> => ({
  title,
  value: of,
  cell: row => fullTime(of(row)),
  width: '13rem',
  isExtra: true,
})

export const agoColumn = <Row,>(
  title: string,
  of: (row: Row) => number | undefined,
  { isExtra = true, none }: { readonly isExtra?: boolean; readonly none?: string } = {},
): Column<Row> => ({
  title,
  value: of,
  cell(row) {
    const at = of(row)
    return at === undefined ? none : ago(at)
  },
  isNumber: true,
  width: '9rem',
  isExtra,
})

/** Adds a node column if the data comes from several nodes. */
export const withNodes = <Row,>(
  columns: readonly Column<Row>[],
  { nodeStates }: { readonly nodeStates?: unknown },
  nodesOf: (row: Row) => string | undefined,
): readonly Column<Row>[] => (nodeStates ? [...columns, { title: 'Node', value: nodesOf, isExtra: true }] : columns)
