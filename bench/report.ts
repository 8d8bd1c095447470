// What a run says, for people: a table of the rows, what the measures found, and every target with its verdict.
import type { Judged } from './judge.ts'
import { CONNECTIONS } from './load.ts'
import type { Figure, MeasureResult } from './measure.ts'
import type { Measured, RowResult } from './measure-row.ts'
import { CAN_READ_COST } from './process-cost.ts'
import { CAN_PIN } from './processes.ts'
import { formatSpread, median, spreadOf } from './spread.ts'

const whole = (value: number) => Math.round(value).toLocaleString('en')

/** How the figures came about, in one line. */
export function describeMethod(seconds: number, rounds: number): string {
  const load = `${CONNECTIONS} connections, ${rounds} x ${seconds} s in turn`
  const cores = CAN_PIN
    ? 'server on cpu 0, load on cpu 1, where it never sleeps'
    : 'not pinned to cores (no taskset, or one core)'
  const cost = CAN_READ_COST
    ? 'CPU time of the server process'
    : 'no /proc here, so wall-clock time stands in for CPU time'
  return `Node ${process.version}; ${load}; ${cores}; ${cost}; medians, with the lowest and the highest round in brackets`
}

/** What each of its rounds cost, as multiples of what the first of the row cost in that round. */
export function multiplesOf({ rounds }: Measured, first: Measured): number[] {
  return rounds.map(({ cost }, round) => cost / (first.rounds[round]?.cost ?? Number.NaN))
}

function cells({ row, measured, yardstick }: RowResult, one: Measured): string[] {
  const { name, rounds, peakRss } = one
  const [first = one] = measured
  return [
    name,
    row,
    formatSpread(spreadOf(rounds.map(({ cost }) => cost))),
    yardstick ? formatSpread(spreadOf(multiplesOf(one, first))) : '',
    whole(median(rounds.map(({ requestsPerSecond }) => requestsPerSecond))),
    peakRss === undefined ? 'unknown' : `${whole(peakRss / 1e6)} MB`,
  ]
}

/** Pads columns; the first `left` of them to the left. */
function alignColumns(lines: readonly (readonly string[])[], left: number): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0))) ?? []
  const pad = (cell: string, column: number) =>
    column < left ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return lines.map(line => line.map(pad).join('  ').trimEnd()).join('\n')
}

const VERDICTS = {
  met: 'met',
  unclear: 'not met, within the spread',
  missed: 'MISSED',
  busy: 'not met, on a busy machine',
  unmeasured: 'not measured',
}

const judged = (of: string, { text, found, verdict }: Judged): string[] => [
  of,
  text,
  found === undefined ? '' : formatSpread(found),
  VERDICTS[verdict],
]

/** The table of all rows. */
export function formatRows(results: readonly RowResult[]): string {
  const unit = CAN_READ_COST ? 'CPU µs/request' : 'wall µs/request'
  const header = ['server', 'call', unit, 'x first of its call', 'req/s', 'peak RSS']
  const table = results.flatMap(result => result.measured.map(one => cells(result, one)))
  const absent = results.flatMap(({ row, absent }) => absent.map(name => `${row}: ${name} is not installed`))
  return [alignColumns([header, ...table], 2), ...absent].join('\n')
}

const figure = ({ what, unit, values }: Figure) => [`  ${what}`, `${formatSpread(spreadOf(values))} ${unit}`.trimEnd()]

export interface NamedResult extends MeasureResult {
  readonly name: string
  /** The part of the machine that others used meanwhile, 0 to 1; undefined where the system does not tell. */
  readonly others: number | undefined
}

const share = (others: number | undefined) =>
  others === undefined ? [] : [`  others used ${Math.round(others * 100)} % of the machine meanwhile`]

/** What one measure found. */
export function formatMeasure({ name, figures, notes, others }: NamedResult): string {
  const lines = figures.length > 0 ? [alignColumns(figures.map(figure), 2)] : []
  return [name, ...lines, ...notes.map(note => `  ${note}`), ...share(others)].join('\n')
}

/** Every target of the run. */
export function formatTargets(rows: readonly RowResult[], measures: readonly NamedResult[]): string {
  const lines = [
    ...rows.flatMap(({ row, targets }) => targets.map(one => judged(row, one))),
    ...measures.flatMap(({ name, targets }) => targets.map(one => judged(name, one))),
  ]
  return alignColumns([['of', 'target', 'found', ''], ...lines], 4)
}
