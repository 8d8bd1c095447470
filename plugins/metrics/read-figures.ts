// Reads the metrics that the host and plugins offer with `host.metrics`, with a limit on labels.
import type { InternalHost } from '../../core/internal.ts'
import { errorText } from '../../core/plugin.ts'
import {
  type Aggregator,
  bucketsFor,
  knownLabels,
  type Labels,
  type Metric,
  OTHER,
  type Sample,
  Series,
} from './series.ts'

type FigureReader = Parameters<InternalHost['metrics']['readBy']>[0]
type Figure = Parameters<FigureReader['counter']>[0]
type Read = Parameters<FigureReader['gauge']>[1]
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
  readonly reads: Read[]
  readonly tell: ReturnType<FigureReader['counter']>
}

const NAME = /^[a-zA-Z_:][\w:]*$/
const LABEL = /^(?!__|le$)[a-zA-Z_]\w*$/

function faultOf({ name, labels = [] }: Figure): string | undefined {
  if (!NAME.test(name)) return 'a name is made of letters, digits and _'
  const wrong = labels.find(label => !LABEL.test(label))
  return wrong === undefined ? undefined : `"${wrong}" is no name of a label`
}

const labelsOf = ({ labels = [] }: Figure, given: Labels | undefined): Labels =>
  Object.fromEntries(labels.map(label => [label, given?.[label]]))

function createTold(kind: Family['kind'], figure: Figure, limits?: readonly number[]): Family {
  const series = new Series(figure, limits)
  const others: Labels = Object.fromEntries((figure.labels ?? []).map(label => [label, OTHER]))
  if (!figure.labels?.length) series.of({})
  return {
    kind,
    reads: [],
    read: () => series.read(),
    tell(value, given) {
      if (!Number.isFinite(value) || (kind === 'counter' && value <= 0)) return
      const labels = labelsOf(figure, given)
      const isKnown = series.size < MAX_SERIES || series.has(labels)
      series.of(isKnown ? labels : others)(value)
    },
  }
}

function createGauge(figure: Figure, failed: (error: unknown) => void): Family {
  const aggregator = WORST[figure.name] ?? 'sum'
  const combine = COMBINE[aggregator] ?? ((one: number, other: number) => one + other)
  const reads: Read[] = []

  function readAll(): Sample[] {
    const rows = new Map<string, Sample>()
    for (const read of reads) {
      const found = read()
      for (const [value, given] of typeof found === 'number' ? [[found, {}] as const] : found) {
        const labels = labelsOf(figure, given)
        const key = Object.values(labels).join('\n')
        const other = rows.get(key)
        if (other || rows.size < MAX_SERIES)
          rows.set(key, { labels: knownLabels(labels), value: other ? combine(other.value, value) : value })
      }
    }
    return [...rows.values()]
  }

  function read(): Metric {
    const facts = { name: figure.name, help: figure.help, type: 'gauge', aggregator } as const
    try {
      return { ...facts, values: readAll() }
    } catch (error) {
      failed(error)
      return { ...facts, values: [] }
    }
  }
  return { kind: 'gauge', reads, read, tell: () => undefined }
}

/** `taken`: names of other metrics. */
export function createFigureReader(
  log: InternalHost['log'],
  taken: ReadonlySet<string>,
): { readonly reader: FigureReader; read(): Metric[] } {
  const families = new Map<string, Family>()
  const warned = new Set<string>()

  function warn({ name }: Figure, problem: string) {
    if (warned.has(name)) return
    warned.add(name)
    log.warn({ code: 'MH2606', figure: name, problem }, 'A metric of a plugin is invalid and not served')
  }

  function find(figure: Figure, kind: Family['kind'], create: () => Family): Family | undefined {
    const fault = taken.has(figure.name) ? 'the name is that of another metric' : faultOf(figure)
    if (fault !== undefined) return void warn(figure, fault)
    const known = families.get(figure.name) ?? create()
    if (known.kind !== kind) return void warn(figure, `it is offered as ${known.kind} and as ${kind}`)
    families.set(figure.name, known)
    return known
  }

  const reader: FigureReader = {
    gauge(figure, read) {
      find(figure, 'gauge', () => createGauge(figure, error => warn(figure, errorText(error))))?.reads.push(read)
    },
    counter: figure => find(figure, 'counter', () => createTold('counter', figure))?.tell ?? (() => undefined),
    histogram: figure =>
      find(figure, 'histogram', () => createTold('histogram', figure, bucketsFor(figure.name)))?.tell ??
      (() => undefined),
  }
  return { reader, read: () => [...families.values()].map(family => family.read()) }
}
