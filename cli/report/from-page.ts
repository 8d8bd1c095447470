// The same report from a metrics page: sums since the processes of the host began, with no times of single calls.

import { printable } from '../../client/printable.ts'
import { isoTime } from '../iso-time.ts'
import {
  greatest,
  histogramsBy,
  type Labels,
  quantileOf,
  resolutionOf,
  samplesOf,
  sum,
  sumBy,
} from '../metrics-page/figures.ts'
import { CALLS, CLIENT_CALLS, PLAIN_REQUESTS, QUESTIONS, REFUSALS, STARTED } from '../metrics-page/names.ts'
import type { MetricsPage } from '../metrics-page/parse-page.ts'
import { adviseOn, type Span } from './advice.ts'
import { DCR, FEATURES, HTTP_SSE, isOldRevision, SESSIONS } from './features.ts'
import { NAMELESS } from './legacy.ts'
import type { CauseRow, ClientRow, FeatureRow, Legacy, Report, ToolRow, Verdict } from './report.ts'
import { slowestFirst } from './tally.ts'

/** In the place of what came too late to have a series of its own. */
const OTHER = '_OTHER'

const shown = (text: string | undefined): string | undefined => (text ? printable(text, 160) : undefined)
const isFailed = ({ outcome }: Labels) => outcome === 'error' || outcome === 'tool_error'
const byCount = (a: { calls: number }, b: { calls: number }) => b.calls - a.calls
const untimed = (calls: number) => ({ calls, first: undefined, last: undefined })

const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1_000)

function toolsOf(page: MetricsPage): ToolRow[] {
  const keyOf = ({ mcp_method_name: method, gen_ai_tool_name: tool, route = '' }: Labels) =>
    method === 'tools/call' && tool ? `${printable(tool, 128)}\n${printable(route, 128)}` : undefined
  const failed = sumBy(page, `${CALLS}_count`, labels => (isFailed(labels) ? keyOf(labels) : undefined))
  return [...histogramsBy(page, CALLS, keyOf)]
    .map(([key, histogram]): ToolRow => {
      const [tool = '', route] = key.split('\n')
      const [p50, p95, p99] = [0.5, 0.95, 0.99].map(part => milliseconds(quantileOf(histogram, part)))
      const resolution = milliseconds(resolutionOf(histogram))
      const errors = failed.get(key) ?? 0
      return { tool, route: shown(route), calls: histogram.count, errors, p50, p95, p99, resolution }
    })
    .sort(byCount)
}

function causesOf(page: MetricsPage): CauseRow[] {
  const keyOf = ({ refused_by: by = '', error_type: error }: Labels) =>
    error ? `${printable(by, 64)}\n${printable(error, 48)}` : undefined
  return [...sumBy(page, REFUSALS, keyOf)]
    .map(([key, count]) => {
      const [by, error = ''] = key.split('\n')
      return { by: shown(by), error, reason: undefined, count }
    })
    .sort((a, b) => b.count - a.count)
}

/** Client, version and revision of each series. */
const clientOf = ({ client, version = '' }: Labels) =>
  client ? printable(`${client} ${version}`.trim(), 97) : NAMELESS

function clientRows(page: MetricsPage): ClientRow[] {
  const counts = new Map<string, { calls: number; sessions: number; sse: number }>()
  for (const { labels, value } of samplesOf(page, CLIENT_CALLS)) {
    const { protocol_version: revision, transport } = labels
    if (!isOldRevision(revision) || !(value > 0)) continue
    const key = `${clientOf(labels)}\n${revision}`
    const known = counts.get(key) ?? { calls: 0, sessions: 0, sse: 0 }
    known.calls += value
    if (transport) known.sessions += value
    if (transport === 'transport-sse') known.sse += value
    counts.set(key, known)
  }
  return [...counts]
    .map(([key, { calls, sessions, sse }]): ClientRow => {
      const [client = '', revision = ''] = key.split('\n')
      const uses = [
        ['old revision', calls],
        [SESSIONS, sessions],
        [HTTP_SSE, sse],
      ] as const
      const features = uses.flatMap(([feature, count]) => (count > 0 ? [{ feature, ...untimed(count) }] : []))
      return { client, revision, ...untimed(calls), features }
    })
    .sort(byCount)
}

/** A feature by the clients that have it in their rows. */
function rowOf(feature: string, clients: readonly ClientRow[]): FeatureRow {
  const using = clients.flatMap(({ client, features }) =>
    features.flatMap(used => (used.feature === feature ? [{ client, calls: used.calls }] : [])),
  )
  const calls = using.reduce((total, one) => total + one.calls, 0)
  const verdict: Verdict = calls > 0 ? 'used' : 'unused'
  return { feature, verdict, ...untimed(calls), clients: new Set(using.map(({ client }) => client)).size }
}

/** What is known by its method alone. */
function methodRow(page: MetricsPage, feature: string, methods: readonly string[]): FeatureRow {
  const calls = sum(
    page,
    `${CALLS}_count`,
    ({ mcp_method_name: method = '', mcp_protocol_version: revision }) =>
      methods.includes(method) && isOldRevision(revision),
  )
  return { feature, verdict: calls ? 'used' : 'unused', ...untimed(calls ?? 0), clients: 0 }
}

/** In 2026-07-28 a question is part of an answer: it is of the old protocol where its revision is. */
function questionRow(page: MetricsPage, feature: string): FeatureRow {
  const counts = sumBy(page, QUESTIONS, labels =>
    labels['kind'] === feature && isOldRevision(labels['protocol_version']) ? clientOf(labels) : undefined,
  )
  const using = [...counts].filter(([, count]) => count > 0)
  const calls = using.reduce((total, [, count]) => total + count, 0)
  return { feature, verdict: calls > 0 ? 'used' : 'unused', ...untimed(calls), clients: using.length }
}

function legacyOf(page: MetricsPage, most: number, span: Span): Legacy {
  const clients = clientRows(page)
  const untold = (feature: string): FeatureRow => ({ feature, verdict: 'untold', ...untimed(0), clients: 0 })
  const isCounted = page.samples.has(CLIENT_CALLS)
  const features = FEATURES.map(({ name }) => {
    if (!isCounted || (name === 'batches' && clients.length > 0)) return untold(name)
    if (name === 'logging/setLevel') return methodRow(page, name, [name])
    if (name === 'resources/subscribe') return methodRow(page, name, [name, 'resources/unsubscribe'])
    return ['sampling', 'elicitation', 'roots'].includes(name) ? questionRow(page, name) : rowOf(name, clients)
  })
  const rows = [...features, untold(DCR)]
  const notListed = clients.slice(most).reduce((total, { calls }) => total + calls, 0)
  return { features: rows, clients: clients.slice(0, most), notListed, advice: adviseOn(rows, clients, span) }
}

/** `now`: milliseconds since the epoch; `most`: rows of a table. */
export function reportOnPage(page: MetricsPage, now: number, most: number): Report {
  const started = greatest(page, STARTED)
  const from = started === undefined ? Number.NaN : started * 1_000
  // What a page says of times may be anything.
  const span = { from: from >= 0 && from <= now ? from : Number.NaN, until: now, sampled: false }
  const outcomes = sumBy(page, `${CALLS}_count`, ({ outcome }) => (outcome ? printable(outcome, 48) : undefined))
  for (const [outcome, count] of sumBy(page, PLAIN_REQUESTS, ({ outcome }) => outcome && printable(outcome, 48))) {
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count)
  }
  const calls = sum(page, `${CALLS}_count`) ?? 0
  const errors = sum(page, `${CALLS}_count`, isFailed) ?? 0
  const tools = toolsOf(page)
  const causes = causesOf(page)
  const names = new Set(samplesOf(page, CLIENT_CALLS).map(({ labels }) => clientOf(labels)))
  const isWhole = ![...names].some(name => name.startsWith(OTHER))
  return {
    source: 'metrics',
    estimated: false,
    from: isoTime(span.from),
    until: new Date(now).toISOString(),
    calls,
    errors,
    errorRatio: calls === 0 ? 0 : errors / calls,
    requests: sum(page, PLAIN_REQUESTS),
    outcomes: Object.fromEntries([...outcomes].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)),
    busiest: tools.slice(0, most),
    slowest: [...tools].sort(slowestFirst).slice(0, most),
    causes: causes.slice(0, most),
    causesNotListed: causes.slice(most).reduce((total, { count }) => total + count, 0),
    users: undefined,
    clients: { count: names.size, exact: isWhole },
    sessions: undefined,
    legacy: legacyOf(page, most, span),
    lines: undefined,
    notes: [],
  }
}
