// Reads the metrics that the host and plugins offer with `host.metrics`, with a limit on labels.
import type { InternalHost } from '../../core/internal.ts'
import { errorText } from '../../core/plugin.ts'
import {
  type Aggregator,
  bucketsFor,
  definedLabels,
  type Labels,
  type Metric,
  OTHER,
  type Sample,
  Series,
} from './series.ts'

type MetricRegistrar = Parameters<InternalHost['metrics']['readBy']>[0]
type MetricDefinition = Parameters<MetricRegistrar['counter']>[0]
type GaugeReader = Parameters<MetricRegistrar['gauge']>[1]
/** Maximum label combinations of one metric; further combinations are counted together. */
const MAX_SERIES = 1_000

/** Gauges for which the worst value of several processes is reported, not the sum. */
const WORST: Readonly<Record<string, Aggregator>> = {
  mcp_host_redis_up: 'min',
  mcp_host_upstream_up: 'min',
  mcp_host_upstream_withheld: 'max',
  mcp_host_sqlite_up: 'min',
  mcp_host_sqlite_file_bytes: 'max',
  mcp_host_key_age_seconds: 'max',
  mcp_host_tasks: 'max',
  mcp_host_task_queue_age_seconds: 'max',
  mcp_host_tls_certificate_expiry_timestamp_seconds: 'min',
}

const COMBINE: Partial<Record<Aggregator, (one: number, other: number) => number>> = { min: Math.min, max: Math.max }

interface Family {
  readonly kind: Metric['type']
  read(): Metric
  readonly readers: GaugeReader[]
  readonly add: ReturnType<MetricRegistrar['counter']>
}

const NAME_PATTERN = /^[a-zA-Z_:][\w:]*$/
const LABEL_PATTERN = /^(?!__|le$)[a-zA-Z_]\w*$/

function findProblem({ name, labels = [] }: MetricDefinition): string | undefined {
  if (!NAME_PATTERN.test(name)) return 'a name is made of letters, digits and _'
  const invalid = labels.find(label => !LABEL_PATTERN.test(label))
  return invalid === undefined ? undefined : `"${invalid}" is not a label name`
}

const selectLabels = ({ labels = [] }: MetricDefinition, labelValues: Labels | undefined): Labels =>
  Object.fromEntries(labels.map(label => [label, labelValues?.[label]]))

function createSeries(kind: Family['kind'], metric: MetricDefinition, limits?: readonly number[]): Family {
  const series = new Series(metric, limits)
  const others: Labels = Object.fromEntries((metric.labels ?? []).map(label => [label, OTHER]))
  if (!metric.labels?.length) series.with({})
  return {
    kind,
    readers: [],
    read: () => series.read(),
    add(value, labelValues) {
      if (!Number.isFinite(value) || (kind === 'counter' && value <= 0)) return
      const labels = selectLabels(metric, labelValues)
      const isKnown = series.size < MAX_SERIES || series.has(labels)
      series.with(isKnown ? labels : others)(value)
    },
  }
}

function createGauge(metric: MetricDefinition, onError: (error: unknown) => void): Family {
  const aggregator = WORST[metric.name] ?? 'sum'
  const combine = COMBINE[aggregator] ?? ((one: number, other: number) => one + other)
  const readers: GaugeReader[] = []

  function readAll(): Sample[] {
    const rows = new Map<string, Sample>()
    for (const read of readers) {
      const measured = read()
      for (const [value, labelValues] of typeof measured === 'number' ? [[measured, {}] as const] : measured) {
        const labels = selectLabels(metric, labelValues)
        const key = Object.values(labels).join('\n')
        const existing = rows.get(key)
        if (existing || rows.size < MAX_SERIES)
          rows.set(key, { labels: definedLabels(labels), value: existing ? combine(existing.value, value) : value })
      }
    }
    return [...rows.values()]
  }

  function read(): Metric {
    const base = { name: metric.name, help: metric.help, type: 'gauge', aggregator } as const
    try {
      return { ...base, values: readAll() }
    } catch (error) {
      onError(error)
      return { ...base, values: [] }
    }
  }
  return { kind: 'gauge', readers, read, add: () => undefined }
}

/** `reservedNames`: names of other metrics. */
export function createPluginMetrics(
  log: InternalHost['log'],
  reservedNames: ReadonlySet<string>,
): { readonly registrar: MetricRegistrar; read(): Metric[] } {
  const families = new Map<string, Family>()
  const warned = new Set<string>()

  function warn({ name }: MetricDefinition, problem: string) {
    if (warned.has(name)) return
    warned.add(name)
    log.warn({ code: 'MH2606', figure: name, problem }, 'A metric of a plugin is invalid and not served')
  }

  function findFamily(metric: MetricDefinition, kind: Family['kind'], create: () => Family): Family | undefined {
    const problem = reservedNames.has(metric.name) ? 'another metric has this name' : findProblem(metric)
    if (problem !== undefined) return void warn(metric, problem)
    const family = families.get(metric.name) ?? create()
    if (family.kind !== kind) return void warn(metric, `it is registered as ${family.kind} and as ${kind}`)
    families.set(metric.name, family)
    return family
  }

  const registrar: MetricRegistrar = {
    gauge(metric, read) {
      findFamily(metric, 'gauge', () => createGauge(metric, error => warn(metric, errorText(error))))?.readers.push(
        read,
      )
    },
    counter: metric => findFamily(metric, 'counter', () => createSeries('counter', metric))?.add ?? (() => undefined),
    histogram: metric =>
      findFamily(metric, 'histogram', () => createSeries('histogram', metric, bucketsFor(metric.name)))?.add ??
      (() => undefined),
  }
  return { registrar, read: () => [...families.values()].map(family => family.read()) }
}
