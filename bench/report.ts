// What a run says: a table for people, and one JSON file with every round for whoever compares runs.
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { CONNECTIONS } from './load.ts'
import { type Judged, type Measured, median, type RowResult } from './measure-row.ts'
import { CAN_READ_COST } from './process-cost.ts'
import { CAN_PIN, HAS_WRK } from './processes.ts'

const whole = (value: number) => Math.round(value).toLocaleString('en')
const short = (value: number) => (value < 100 ? value.toFixed(1) : whole(value))

/** How the figures came about, in one line. */
export function describeMethod(seconds: number, rounds: number): string {
  const load = `${HAS_WRK ? 'wrk' : 'autocannon'}, ${CONNECTIONS} connections, ${rounds} x ${seconds} s in turn, medians`
  const cores = CAN_PIN ? 'server on cpu 0, load on cpu 1' : 'not pinned to cores (no taskset, or one core)'
  const cost = CAN_READ_COST
    ? 'CPU time of the server process'
    : 'no /proc here, so wall-clock time stands in for CPU time'
  return `Node ${process.version}; ${load}; ${cores}; ${cost}`
}

function cells(row: string, { name, rounds, peakRss }: Measured): string[] {
  const costs = rounds.map(({ cost }) => cost)
  return [
    name,
    row,
    short(median(costs)),
    `${short(Math.min(...costs))} - ${short(Math.max(...costs))}`,
    whole(median(rounds.map(({ requestsPerSecond }) => requestsPerSecond))),
    peakRss === undefined ? 'unknown' : `${whole(peakRss / 1e6)} MB`,
  ]
}

/** Pads columns; the first `left` of them to the left. */
function alignColumns(lines: readonly string[][], left: number): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0))) ?? []
  const pad = (cell: string, column: number) =>
    column < left ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return lines.map(line => line.map(pad).join('  ').trimEnd()).join('\n')
}

const verdict = ({ text, value, met }: Judged) => {
  if (value === undefined) return [text, '', 'not measured']
  return [text, value < 10 ? value.toFixed(3) : value.toFixed(1), met ? 'met' : 'NOT MET']
}

/** The table of all rows, then the targets. */
export function formatResults(results: readonly RowResult[]): string {
  const unit = CAN_READ_COST ? 'CPU µs/request' : 'wall µs/request'
  const header = ['server', 'call', unit, 'lowest - highest', 'req/s', 'peak RSS']
  const table = results.flatMap(({ row, measured }) => measured.map(one => cells(row, one)))
  const targets = results.flatMap(({ row, targets }) => targets.map(one => [row, ...verdict(one)]))
  return `${alignColumns([header, ...table], 2)}\n\n${alignColumns([['call', 'target', 'is', ''], ...targets], 2)}`
}

/** Writes bench/results/<date>.json and returns its path. */
export function writeResults(results: readonly RowResult[], seconds: number, rounds: number): string {
  const date = new Date().toISOString()
  const folder = new URL('results/', import.meta.url)
  const file = fileURLToPath(new URL(`${date.slice(0, 19).replaceAll(':', '-')}.json`, folder))
  const method = { node: process.version, cpu: cpus()[0]?.model, wrk: HAS_WRK, pinned: CAN_PIN, cpuTime: CAN_READ_COST }
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify({ date, ...method, seconds, rounds, results }, null, 2)}\n`)
  return file
}
