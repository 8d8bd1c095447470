// One picture of `mcp-host top`: lines that fit into the terminal, most important first.
import { durationText } from '../report/advice.ts'
import { timeText } from '../report/text.ts'
import { type Cell, cutTo, tableLines } from '../text-table.ts'
import type { CauseFigures, ToolFigures, TopFigures } from './figures.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

export type Order = 'rate' | 'time'

export interface Picture {
  /** Where it is from. */
  readonly url: string
  /** Undefined: nothing was answered yet. */
  readonly figures: TopFigures | undefined
  /** What is to be known beside: the host is away, or nothing is asked. */
  readonly status: readonly string[]
  readonly order: Order
  /** The last line, such as what keys do. */
  readonly foot?: string
}

const REFUSED_ROWS = 5
/** Lines beside the tables. */
const TITLES = 3

const rateText = (rate: number | undefined): string =>
  rate === undefined ? '-' : rate >= 100 ? rate.toFixed(0) : rate.toFixed(rate >= 10 ? 1 : 2)

const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1_000)

/** Of seconds. */
const msText = (seconds: number | undefined, resolution?: number) =>
  timeText(milliseconds(seconds), milliseconds(resolution))

const whole = (count: number | undefined) => (count === undefined ? '-' : String(Math.round(count)))

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

export function bytesText(bytes: number | undefined): string {
  if (bytes === undefined) return '-'
  let [left, unit] = [bytes, 0]
  for (; left >= 1_000 && unit < UNITS.length - 1; unit++) left /= 1_000
  return `${left.toFixed(unit > 0 && left < 10 ? 1 : 0)} ${UNITS[unit]}`
}

function redisText({ redis }: TopFigures): string[] {
  const texts = redis.map(
    ({ name, isUp, p99, resolution }) => `${name} ${isUp ? `up, p99 ${msText(p99, resolution)} ms` : 'AWAY'}`,
  )
  return texts.length === 0 ? [] : [`Redis    ${texts.join('; ')}`]
}

function sessionsText({ sessions }: TopFigures): string {
  if (!sessions) return '-'
  const count = sessions.reduce((total, [, one]) => total + one, 0)
  const revisions = sessions.map(([revision, one]) => `${revision}: ${one}`).join(', ')
  return revisions === '' ? String(count) : `${count} (${revisions})`
}

const overText = ({ over }: TopFigures): string =>
  over === undefined ? 'of all until now; rates follow' : `of the last ${Math.max(1, Math.round(over))} s`

function summary(figures: TopFigures): string[] {
  const { calls, errors, p50, p99, resolution, inFlight, streams, waiting, memory, lag } = figures
  const [half, most] = [p50, p99].map(time => msText(time, resolution))
  return [
    `calls    ${rateText(calls)}/s, errors ${rateText(errors)}/s, p50 ${half} ms, p99 ${most} ms, ${overText(figures)}`,
    `now      ${whole(inFlight)} in flight, ${whole(streams)} streams, ${bytesText(waiting)} waiting for readers`,
    `sessions ${sessionsText(figures)}`,
    `process  ${bytesText(memory)} memory, event loop lag ${msText(lag)} ms`,
    ...redisText(figures),
  ]
}

const toolCells = ({ tool, route, calls, errors, time, p50, p99, resolution }: ToolFigures): Cell[] => [
  tool,
  route,
  ...[calls, errors].map(rateText),
  `${(time * 100).toFixed(0)} %`,
  ...[p50, p99].map(seconds => msText(seconds, resolution)),
]

const causeCells = ({ by, error, rate, total }: CauseFigures): Cell[] => [error, by || '-', rateText(rate), total]

const byOrder =
  (order: Order) =>
  (a: ToolFigures, b: ToolFigures): number =>
    order === 'rate' ? b.count - a.count || b.time - a.time : b.time - a.time || b.count - a.count

function tables({ tools, causes }: TopFigures, order: Order, { columns, rows }: Size): string[] {
  const refused = causes.slice(0, REFUSED_ROWS)
  const below = refused.length === 0 ? 0 : refused.length + TITLES - 1
  const room = Math.max(1, rows - below - TITLES + 1)
  const shown = [...tools].sort(byOrder(order)).slice(0, room)
  const head = ['tool', 'route', 'calls/s', 'errors/s', 'time', 'p50 ms', 'p99 ms']
  const ofTools = shown.length === 0 ? [] : ['', ...tableLines(head, shown.map(toolCells), columns)]
  const causeHead = ['refused or failed', 'by', '/s', 'all']
  return [...ofTools, ...(refused.length === 0 ? [] : ['', ...tableLines(causeHead, refused.map(causeCells), columns)])]
}

/** At most `rows` lines of at most `columns` characters. */
export function frameLines({ url, figures, status, order, foot }: Picture, size: Size): string[] {
  const up = figures?.up === undefined ? '' : `, up ${durationText(figures.up * 1_000)}`
  const top = [`${url}${up}`, ...status, ...(figures ? ['', ...summary(figures)] : [])]
  const feet = foot === undefined ? [] : ['', foot]
  const room = { columns: size.columns, rows: size.rows - top.length - feet.length }
  const middle = figures ? tables(figures, order, room) : []
  const lines = [...top, ...middle].slice(0, Math.max(1, size.rows - feet.length))
  return [...lines, ...feet].slice(0, size.rows).map(line => cutTo(line, size.columns))
}
