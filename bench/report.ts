// Formats the results of a run: the table of the rows, the figures of the measures, and the verdict for each target.
import { CONNECTIONS } from './load.ts'
import type { Figure, MeasureResult } from './measure.ts'
import type { ContestantResult, RowResult } from './measure-row.ts'
import { HAS_PROC } from './process-stats.ts'
import { CAN_PIN_CPUS } from './processes.ts'
import { computeSpread, formatSpread, median } from './spread.ts'
import type { TargetResult } from './targets.ts'

const formatInteger = (value: number) => Math.round(value).toLocaleString('en')

/** Describes the method of measurement in one line. */
export function describeMethod(seconds: number, rounds: number): string {
  const load = `${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s, servers take turns`
  const cores = CAN_PIN_CPUS
    ? 'server on CPU 0, load generator on CPU 1 (busy polling)'
    : 'processes not pinned to CPUs (no taskset, or one CPU)'
  const cost = HAS_PROC
    ? 'CPU time of the server process'
    : 'wall-clock time, because CPU time is unavailable (no /proc)'
  return `Node ${process.version}; ${load}; ${cores}; ${cost}; medians (lowest .. highest round)`
}

/** The costs of a contestant in each round, as multiples of the baseline's cost in the same round. */
export function computeMultiples({ rounds }: ContestantResult, baseline: ContestantResult): number[] {
  return rounds.map(({ cost }, round) => cost / (baseline.rounds[round]?.cost ?? Number.NaN))
}

function formatCells({ row, measured, yardstick }: RowResult, result: ContestantResult): string[] {
  const { name, rounds, peakRss } = result
  const [baseline = result] = measured
  return [
    name,
    row,
    formatSpread(computeSpread(rounds.map(({ cost }) => cost))),
    yardstick ? formatSpread(computeSpread(computeMultiples(result, baseline))) : '',
    formatInteger(median(rounds.map(({ requestsPerSecond }) => requestsPerSecond))),
    peakRss === undefined ? 'unknown' : `${formatInteger(peakRss / 1e6)} MB`,
  ]
}

/** Pads the columns. The first `left` columns are left-aligned. */
function alignColumns(lines: readonly (readonly string[])[], left: number): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0))) ?? []
  const pad = (cell: string, column: number) =>
    column < left ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return lines.map(line => line.map(pad).join('  ').trimEnd()).join('\n')
}

const VERDICTS = {
  met: 'met',
  unclear: 'not met, but met in some rounds',
  missed: 'MISSED',
  busy: 'not met, machine busy',
  unmeasured: 'not measured',
}

const formatTarget = (name: string, { text, found, verdict }: TargetResult): string[] => [
  name,
  text,
  found === undefined ? '' : formatSpread(found),
  VERDICTS[verdict],
]

export function formatRows(results: readonly RowResult[]): string {
  const unit = HAS_PROC ? 'CPU µs/request' : 'wall µs/request'
  const header = ['server', 'row', unit, 'x baseline', 'req/s', 'peak RSS']
  const table = results.flatMap(result => result.measured.map(contestant => formatCells(result, contestant)))
  const absent = results.flatMap(({ row, absent }) => absent.map(name => `${row}: ${name} is not installed`))
  return [alignColumns([header, ...table], 2), ...absent].join('\n')
}

const formatFigure = ({ what, unit, values }: Figure) => [
  `  ${what}`,
  `${formatSpread(computeSpread(values))} ${unit}`.trimEnd(),
]

export interface NamedResult extends MeasureResult {
  readonly name: string
  /** Share of the machine's CPU time used by other processes, 0 to 1. Undefined if the system does not report it. */
  readonly others: number | undefined
}

const formatOtherLoad = (others: number | undefined) =>
  others === undefined ? [] : [`  other processes used ${Math.round(others * 100)} % of the CPU time`]

export function formatMeasure({ name, figures, notes, others }: NamedResult): string {
  const lines = figures.length > 0 ? [alignColumns(figures.map(formatFigure), 2)] : []
  return [name, ...lines, ...notes.map(note => `  ${note}`), ...formatOtherLoad(others)].join('\n')
}

export function formatTargets(rows: readonly RowResult[], measures: readonly NamedResult[]): string {
  const lines = [
    ...rows.flatMap(({ row, targets }) => targets.map(target => formatTarget(row, target))),
    ...measures.flatMap(({ name, targets }) => targets.map(target => formatTarget(name, target))),
  ]
  return alignColumns([['benchmark', 'target', 'measured', ''], ...lines], 4)
}
