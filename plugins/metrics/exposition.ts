// Combines the metrics of all processes and formats them as Prometheus or OpenMetrics text.

import { setTimeout as pause } from 'node:timers/promises'
import type { AggregatorRegistry, Registry } from 'prom-client'
import type { Aggregator, Labels, Metric, Sample } from './series.ts'

/** Metrics of one process, as JSON. Ended processes have `lasting` only. */
export interface Snapshot {
  /** Gauges, and metadata of counters. */
  readonly metrics?: readonly Metric[]
  /** Counters by `keyOf`, summed over processes. */
  readonly lasting: Readonly<Record<string, number>>
}

export type Format = 'text' | 'openmetrics'

/** Aggregators of process metrics that prom-client omits or averages; a mean would hide the worst process. */
const PROCESS_AGGREGATORS: Readonly<Record<string, Aggregator>> = {
  process_start_time_seconds: 'min',
  nodejs_eventloop_lag_seconds: 'max',
  nodejs_eventloop_lag_p50_seconds: 'max',
  nodejs_eventloop_lag_p90_seconds: 'max',
  nodejs_eventloop_lag_p99_seconds: 'max',
}

export function snapshotOf(metrics: readonly Metric[]): Snapshot {
  const lasting: Record<string, number> = {}
  const others = metrics.map(metric => {
    const { name, type, values } = metric
    const aggregator = PROCESS_AGGREGATORS[name]
    // JSON turns NaN into null.
    if (type === 'gauge') {
      return {
        ...metric,
        ...(aggregator && { aggregator }),
        values: values.filter(({ value }) => Number.isFinite(value)),
      }
    }
    for (const sample of values) lasting[JSON.stringify([name, sample.metricName, sample.labels])] = sample.value
    return { ...metric, values: [] }
  })
  return { metrics: others, lasting }
}

const isSnapshot = (value: unknown): value is Snapshot =>
  typeof value === 'object' && value !== null && 'lasting' in value && typeof value.lasting === 'object'

function sumCounters(snapshots: readonly Snapshot[]): Map<string, Sample[]> {
  const totals = new Map<string, number>()
  for (const { lasting } of snapshots) {
    for (const [key, value] of Object.entries(lasting)) totals.set(key, (totals.get(key) ?? 0) + value)
  }
  const byName = new Map<string, Sample[]>()
  for (const [key, value] of totals) {
    const [name, metricName, labels] = JSON.parse(key) as [string, string | null, Labels]
    const samples = byName.get(name) ?? []
    samples.push({ labels, value, ...(metricName !== null && { metricName }) })
    byName.set(name, samples)
  }
  return byName
}

/** Builds the input of prom-client's `aggregate`: all counters are in the first list. */
function mergeSnapshots(snapshots: readonly Snapshot[], format: Format): Metric[][] {
  const totals = sumCounters(snapshots)
  const merged = new Set<string>()
  // prom-client appends `_total` to counters in OpenMetrics even if present.
  const nameOf = ({ name, type }: Metric) =>
    format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name
  return snapshots.map(({ metrics = [] }) =>
    metrics.flatMap(metric => {
      if (metric.type === 'gauge') return [{ aggregator: 'sum', ...metric }]
      if (merged.has(metric.name)) return []
      merged.add(metric.name)
      return [{ aggregator: 'sum', ...metric, name: nameOf(metric), values: totals.get(metric.name) ?? [] }]
    }),
  )
}

export interface Exposition {
  readonly type: string
  /** Encoded once, shared by all responses. */
  readonly body: Buffer
}

export async function expose(
  snapshots: readonly unknown[],
  format: Format,
  registries: typeof AggregatorRegistry,
): Promise<Exposition> {
  const registry = registries.aggregate(mergeSnapshots(snapshots.filter(isSnapshot), format))
  const type = format === 'openmetrics' ? registries.OPENMETRICS_CONTENT_TYPE : registries.PROMETHEUS_CONTENT_TYPE
  registry.setContentType(type)
  return { type, body: Buffer.from(await registry.metrics()) }
}

let processRegistry: Promise<Registry> | undefined

export async function collectProcessMetrics(): Promise<void> {
  processRegistry ??= import('prom-client').then(({ default: prometheus }) => {
    const register = new prometheus.Registry()
    prometheus.collectDefaultMetrics({ register })
    return register
  })
  await processRegistry
}

export async function readProcessMetrics(): Promise<readonly Metric[]> {
  const register = await processRegistry
  return register ? ((await register.getMetricsAsJSON()) as unknown as Metric[]) : []
}

/** Pause as a multiple of the last duration: limits scrapes to a fifth of CPU time. */
const PAUSE_FACTOR = 4
/** Maximum pause, milliseconds. */
const MAX_PAUSE = 1_000

/** Shares results: requests for a key that is queued or in progress get the same result. */
export function shareResults<Key, Result>(run: (key: Key) => Promise<Result>): (key: Key) => Promise<Result> {
  const pending = new Map<Key, Promise<Result>>()
  let idle: Promise<void> = Promise.resolve()

  function start(key: Key): Promise<Result> {
    let startedAt = 0
    const result = idle.then(() => {
      startedAt = performance.now()
      return run(key)
    })
    const pauseAfter = () => {
      pending.delete(key)
      const duration = performance.now() - startedAt
      return pause(Math.min(MAX_PAUSE, duration * PAUSE_FACTOR), undefined, { ref: false })
    }
    idle = result.then(pauseAfter, pauseAfter)
    pending.set(key, result)
    return result
  }

  return key => pending.get(key) ?? start(key)
}
