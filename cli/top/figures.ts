// What `mcp-host top` shows of metrics pages: rates from an older one to the newest, and what is there now. One page alone has no
// rates: its counts are those of workers that ended, too, and nobody knows since when.
import { printable } from '../../client/printable.ts'
import {
  greatest,
  grown,
  grownHistogram,
  type Histogram,
  histogramsBy,
  type Labels,
  quantileOf,
  resolutionOf,
  sum,
  sumBy,
} from '../metrics-page/figures.ts'
import {
  CALLS,
  IN_FLIGHT,
  LAG,
  MEMORY,
  REDIS_TIME,
  REDIS_UP,
  REFUSALS,
  SESSIONS_NOW,
  STARTED,
  STREAMS,
  WAITING_BYTES,
} from '../metrics-page/names.ts'
import type { MetricsPage } from '../metrics-page/parse-page.ts'

export interface TimedPage {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly page: MetricsPage
}

/** Rates are of a second, times in seconds; what the page does not tell is undefined. */
export interface TopFigures {
  /** Seconds that rates and percentiles are of; undefined where there is no older page: no rates, and percentiles of all. */
  readonly over: number | undefined
  /** Seconds since the host began. */
  readonly up: number | undefined
  readonly calls: number | undefined
  readonly errors: number | undefined
  readonly p50: number | undefined
  readonly p99: number | undefined
  /** Percentiles that are not more are below it. */
  readonly resolution: number | undefined
  readonly inFlight: number | undefined
  readonly sessions: ReadonlyArray<readonly [revision: string, count: number]> | undefined
  readonly streams: number | undefined
  readonly waiting: number | undefined
  readonly redis: readonly RedisFigures[]
  readonly lag: number | undefined
  readonly memory: number | undefined
  readonly tools: readonly ToolFigures[]
  readonly causes: readonly CauseFigures[]
}

export interface RedisFigures {
  readonly name: string
  readonly isUp: boolean
  readonly p99: number | undefined
  readonly resolution: number | undefined
}

export interface ToolFigures {
  readonly tool: string
  readonly route: string
  /** Calls in that time. */
  readonly count: number
  readonly calls: number | undefined
  readonly errors: number | undefined
  /** Of the time of all tools, 0 to 1. */
  readonly time: number
  readonly p50: number | undefined
  readonly p99: number | undefined
  readonly resolution: number | undefined
}

export interface CauseFigures {
  readonly by: string
  readonly error: string
  readonly rate: number | undefined
  readonly total: number
}

const isFailed = ({ outcome }: Labels) => outcome === 'error' || outcome === 'tool_error'
const all = () => 'all'

/** What came from the older page, which may be none, to the newest. */
class Change {
  readonly #before: MetricsPage | undefined
  readonly #now: MetricsPage
  readonly over: number | undefined

  constructor(before: TimedPage | undefined, now: TimedPage) {
    this.#before = before?.page
    this.#now = now.page
    this.over = before === undefined || now.at <= before.at ? undefined : (now.at - before.at) / 1_000
  }

  /** Of a second. */
  rate(count: number | undefined): number | undefined {
    return count === undefined || this.over === undefined ? undefined : count / this.over
  }

  counts(name: string, keyOf: (labels: Labels) => string | undefined): Map<string, number> {
    const before = this.#before && sumBy(this.#before, name, keyOf)
    return new Map([...sumBy(this.#now, name, keyOf)].map(([key, count]) => [key, grown(before?.get(key) ?? 0, count)]))
  }

  histograms(name: string, keyOf: (labels: Labels) => string | undefined): Map<string, Histogram> {
    const before = this.#before && histogramsBy(this.#before, name, keyOf)
    const now = histogramsBy(this.#now, name, keyOf)
    return new Map([...now].map(([key, histogram]) => [key, grownHistogram(before?.get(key), histogram)]))
  }
}

const toolKey = ({ mcp_method_name: method, gen_ai_tool_name: tool, route = '' }: Labels) =>
  method === 'tools/call' && tool ? `${printable(tool, 128)}\n${printable(route, 128)}` : undefined

function toolsOf(change: Change): ToolFigures[] {
  const failed = change.counts(`${CALLS}_count`, labels => (isFailed(labels) ? toolKey(labels) : undefined))
  const histograms = [...change.histograms(CALLS, toolKey)]
  const whole = histograms.reduce((time, [, histogram]) => time + histogram.sum, 0)
  return histograms.map(([key, histogram]) => {
    const [tool = '', route = ''] = key.split('\n')
    return {
      tool,
      route,
      count: histogram.count,
      calls: change.rate(histogram.count),
      errors: change.rate(failed.get(key) ?? 0),
      time: whole > 0 ? histogram.sum / whole : 0,
      p50: quantileOf(histogram, 0.5),
      p99: quantileOf(histogram, 0.99),
      resolution: resolutionOf(histogram),
    }
  })
}

const causeKey = ({ refused_by: by = '', error_type: error }: Labels) =>
  error ? `${printable(by, 64)}\n${printable(error, 48)}` : undefined

function causesOf(change: Change, page: MetricsPage): CauseFigures[] {
  const grownBy = change.counts(REFUSALS, causeKey)
  const causes = [...sumBy(page, REFUSALS, causeKey)].map(([key, total]) => {
    const [by = '', error = ''] = key.split('\n')
    return { by, error, rate: change.rate(grownBy.get(key)), total }
  })
  return causes.sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0) || b.total - a.total)
}

const redisKey = ({ redis }: Labels) => printable(redis || 'Redis', 64)

function redisOf(change: Change, page: MetricsPage): RedisFigures[] {
  const times = change.histograms(REDIS_TIME, redisKey)
  return [...sumBy(page, REDIS_UP, redisKey)].map(([name, up]) => {
    const time = times.get(name)
    return { name, isUp: up > 0, p99: time && quantileOf(time, 0.99), resolution: time && resolutionOf(time) }
  })
}

function sessionsOf(page: MetricsPage): TopFigures['sessions'] {
  if (!page.samples.has(SESSIONS_NOW)) return undefined
  const counts = sumBy(page, SESSIONS_NOW, ({ protocol_version: revision }) => printable(revision || 'none', 24))
  return [...counts].filter(([, count]) => count > 0).sort(([a], [b]) => a.localeCompare(b))
}

/** `before`: a page of the same run of the host. */
export function figuresOf(before: TimedPage | undefined, now: TimedPage): TopFigures {
  const { page } = now
  const change = new Change(before, now)
  const calls = change.histograms(CALLS, all).get('all')
  const failed = change.counts(`${CALLS}_count`, labels => (isFailed(labels) ? 'all' : undefined)).get('all')
  const started = greatest(page, STARTED)
  const [lag] = LAG.flatMap(name => greatest(page, name) ?? [])
  return {
    over: change.over,
    up: started === undefined ? undefined : Math.max(0, now.at / 1_000 - started),
    calls: change.rate(calls?.count),
    errors: change.rate(calls && (failed ?? 0)),
    p50: calls && quantileOf(calls, 0.5),
    p99: calls && quantileOf(calls, 0.99),
    resolution: calls && resolutionOf(calls),
    inFlight: sum(page, IN_FLIGHT),
    sessions: sessionsOf(page),
    streams: sum(page, STREAMS),
    waiting: sum(page, WAITING_BYTES),
    redis: redisOf(change, page),
    lag,
    memory: sum(page, MEMORY),
    tools: toolsOf(change),
    causes: causesOf(change, page),
  }
}

/** Whether the host began anew between two pages: what it has counted is less. */
export function isRestart(before: TimedPage, now: TimedPage): boolean {
  const [then = 0, count = 0] = [before, now].map(({ page }) => sum(page, `${CALLS}_count`))
  const [began, begins] = [before, now].map(({ page }) => greatest(page, STARTED))
  return count < then || (began !== undefined && begins !== undefined && begins > began + 1)
}
