// The response to a scrape: the metrics of every process that serves this config, combined, as Prometheus or OpenMetrics text.

import { setTimeout as pause } from 'node:timers/promises'
import type { AggregatorRegistry, Registry } from 'prom-client'
import type { Aggregator, Labels, Metric, Sample } from './series.ts'

/** What one process gives; JSON. Of one that is gone there is `lasting` alone. */
export interface Snapshot {
  /** Gauges, and what the counts are called, without them. */
  readonly metrics?: readonly Metric[]
  /** Counts and sums by what they are of (`keyOf`): they are added up. */
  readonly lasting: Readonly<Record<string, number>>
}

export type Format = 'text' | 'openmetrics'

/** How figures of processes become one, where prom-client leaves them out or takes the mean: who is worst hides in a mean. */
const PROCESS_AGGREGATORS: Readonly<Record<string, Aggregator>> = {
  process_start_time_seconds: 'min',
  nodejs_eventloop_lag_seconds: 'max',
  nodejs_eventloop_lag_p50_seconds: 'max',
  nodejs_eventloop_lag_p90_seconds: 'max',
  nodejs_eventloop_lag_p99_seconds: 'max',
}

const keyOf = (name: string, { labels, metricName }: Sample) => JSON.stringify([name, metricName, labels])

export function snapshotOf(metrics: readonly Metric[]): Snapshot {
  const lasting: Record<string, number> = {}
  const others = metrics.map(metric => {
    const { name, type, values } = metric
    const aggregator = PROCESS_AGGREGATORS[name]
    // Between processes what is no number arrives as none.
    if (type === 'gauge') {
      return {
        ...metric,
        ...(aggregator && { aggregator }),
        values: values.filter(({ value }) => Number.isFinite(value)),
      }
    }
    for (const sample of values) lasting[keyOf(name, sample)] = sample.value
    return { ...metric, values: [] }
  })
  return { metrics: others, lasting }
}

const isSnapshot = (given: unknown): given is Snapshot =>
  typeof given === 'object' && given !== null && 'lasting' in given && typeof given.lasting === 'object'

/** The counts of all, by the name of their metric. */
function addUp(snapshots: readonly Snapshot[]): Map<string, Sample[]> {
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

/** One list of metrics a process, and the counts of all in the first: what prom-client's `aggregate` takes. */
function joined(snapshots: readonly Snapshot[], format: Format): Metric[][] {
  const totals = addUp(snapshots)
  const shown = new Set<string>()
  // prom-client writes `_total` behind the name of a counter in OpenMetrics, and does not look whether it is there.
  const nameOf = ({ name, type }: Metric) =>
    format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name
  return snapshots.map(({ metrics = [] }) =>
    metrics.flatMap(metric => {
      if (metric.type === 'gauge') return [{ aggregator: 'sum', ...metric }]
      if (shown.has(metric.name)) return []
      shown.add(metric.name)
      return [{ aggregator: 'sum', ...metric, name: nameOf(metric), values: totals.get(metric.name) ?? [] }]
    }),
  )
}

export interface Exposition {
  readonly type: string
  /** The bytes of the text: once in memory, however many read it. */
  readonly body: Buffer
}

/** `given`: what each process gave. */
export async function expose(
  given: readonly unknown[],
  format: Format,
  registries: typeof AggregatorRegistry,
): Promise<Exposition> {
  const registry = registries.aggregate(joined(given.filter(isSnapshot), format))
  const type = format === 'openmetrics' ? registries.OPENMETRICS_CONTENT_TYPE : registries.PROMETHEUS_CONTENT_TYPE
  registry.setContentType(type)
  return { type, body: Buffer.from(await registry.metrics()) }
}

let watched: Promise<Registry> | undefined

async function watch(): Promise<Registry> {
  const { default: prometheus } = await import('prom-client')
  const register = new prometheus.Registry()
  prometheus.collectDefaultMetrics({ register })
  return register
}

/** Begins to watch, where nobody did. */
export async function watchProcess(): Promise<void> {
  watched ??= watch()
  await watched
}

/** Nothing, as long as nobody watches. */
export async function readProcess(): Promise<readonly Metric[]> {
  const register = await watched
  return register ? ((await register.getMetricsAsJSON()) as unknown as Metric[]) : []
}

/** Times as long as it took to make the last one: who floods gets a fifth of the process. */
const REST = 4
/** Milliseconds. */
const LONGEST_REST = 1_000

/** Gives what `make` makes of a key. Who asks while the same is being made, or waits for its turn, gets that one. */
export function shareInTurn<Key, Made>(make: (key: Key) => Promise<Made>): (key: Key) => Promise<Made> {
  const asked = new Map<Key, Promise<Made>>()
  let idle: Promise<void> = Promise.resolve()

  function begin(key: Key): Promise<Made> {
    let begun = 0
    const made = idle.then(() => {
      begun = performance.now()
      return make(key)
    })
    const rest = () => {
      asked.delete(key)
      const took = performance.now() - begun
      return pause(Math.min(LONGEST_REST, took * REST), undefined, { ref: false })
    }
    idle = made.then(rest, rest)
    asked.set(key, made)
    return made
  }

  return key => asked.get(key) ?? begin(key)
}
