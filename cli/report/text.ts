// Formats the report as tables for the terminal, most important first, followed by features that can be disabled.
import { type Cell, tableLines } from '../render.ts'
import { countText } from '../text.ts'
import type { Count } from './counts.ts'
import { type ClientRow, minuteOf } from './legacy.ts'
import type { Report, ToolRow } from './tally.ts'

const section = (title: string, head: readonly string[], rows: ReadonlyArray<readonly Cell[]>, width: number) =>
  rows.length === 0 ? [] : ['', title, ...tableLines(head, rows, width - 2).map(line => `  ${line}`)]

const timeText = (milliseconds: number | undefined): string =>
  milliseconds === undefined ? '-' : milliseconds >= 100 ? milliseconds.toFixed(0) : milliseconds.toPrecision(2)

const percent = (ratio: number) => `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.01 ? 2 : 1)} %`

const approx = (count: Count | undefined, noun: string) =>
  count ? [`${count.exact ? '' : 'about '}${countText(count.count, noun)}`] : []

const minute = (at: string | undefined) => (at === undefined ? '-' : minuteOf(at))

function linesText({ counted: kept, outside, future, skipped }: Report['lines']): string {
  const parts = [
    `${countText(kept, 'line')} counted`,
    outside > 0 && `${outside} outside of the requested time`,
    future > 0 && `${future} with a time in the future`,
    skipped > 0 && `${skipped} skipped as incomplete or unknown`,
  ]
  return parts.filter(Boolean).join(', ')
}

function head(report: Report): string[] {
  const { from, until, calls, errors, errorRatio, requests, users, clients, sessions, lines } = report
  const approxCount = report.estimated ? 'about ' : ''
  const others = `${requests > 0 ? approxCount : ''}${countText(requests, 'other request')}`
  const callersText = [...approx(clients, 'client'), ...approx(users, 'user'), ...approx(sessions, 'session')]
  const span = from === undefined ? 'no times are known' : `${minute(from)} to ${minute(until)} UTC`
  return [
    span,
    `${approxCount}${countText(calls, 'call')}, ${countText(errors, 'error')} (${approxCount}${percent(errorRatio)}); ${others}`,
    ...(callersText.length > 0 ? [callersText.join(', ')] : []),
    linesText(lines),
    ...report.notes.map(note => `note: ${note}`),
  ]
}

const TOOL_HEAD = ['tool', 'route', 'calls', 'errors', 'p50 ms', 'p95 ms', 'p99 ms']

const toolCells = ({ tool, route, calls, errors, p50, p95, p99 }: ToolRow): Cell[] => [
  tool,
  route,
  calls,
  errors,
  ...[p50, p95, p99].map(timeText),
]

const usedCells = ({ calls, first, last }: Pick<ClientRow, 'calls' | 'first' | 'last'>): Cell[] => [
  calls,
  minute(first),
  minute(last),
]

const clientCells = (row: ClientRow): Cell[] => [
  row.client,
  row.revision,
  row.features
    .map(({ feature }) => feature)
    .filter(feature => feature !== 'old revision')
    .join(', ') || '-',
  ...usedCells(row),
]

const VERDICTS = { used: 'used', unused: 'not used', unknown: 'unknown' } as const

function legacyLines({ legacy: { features, clients, notListed } }: Report, width: number): string[] {
  const featureRows = features.map((row): Cell[] => [
    row.feature,
    VERDICTS[row.verdict],
    row.clients,
    ...usedCells(row),
  ])
  const clientHead = ['client', 'revision', 'uses', 'requests', 'first seen', 'last seen']
  return [
    ...section('the legacy protocol', ['', '', 'clients', 'requests', 'first seen', 'last seen'], featureRows, width),
    ...section('its users', clientHead, clients.map(clientCells), width),
    ...(notListed > 0 ? [`  and ${countText(notListed, 'request')} of clients that are not listed`] : []),
  ]
}

export function reportText(report: Report, width: number): string {
  const about = report.estimated ? ' (about)' : ''
  const { outcomes, busiest, slowest, causes, causesNotListed, refused } = report
  const causeRows = causes.map(({ by, error, reason, count }): Cell[] => [count, by, error, reason])
  const refusedRows = refused.map(({ user, error, count }): Cell[] => [count, user, error])
  return [
    ...head(report),
    ...section(`outcomes${about}`, ['', ''], Object.entries(outcomes), width),
    ...section(`busiest tools${about}`, TOOL_HEAD, busiest.map(toolCells), width),
    ...section(`slowest tools${about}`, TOOL_HEAD, slowest.map(toolCells), width),
    ...section('refusals and errors, by cause', ['', 'by', 'error', 'reason'], causeRows, width),
    ...(causesNotListed > 0 ? [`  and ${causesNotListed} of other causes`] : []),
    ...section('refused users', ['', 'user', 'error'], refusedRows, width),
    ...legacyLines(report, width),
  ].join('\n')
}
