// Reads what the host and its plugins offer to be measured by (core/kernel/figures.ts). A figure that is offered several times,
// by a plugin that is there twice, is one metric. What a plugin does wrong is logged, and harms neither it nor the others.
import { errorText, type PluginHost } from '../../core/index.ts'
import { OTHER } from './bounded.ts'
import { bucketsFor } from './buckets.ts'
import {
  type Aggregator,
  createCounter,
  createHistogram,
  knownLabels,
  type Labels,
  type Metric,
  type Sample,
} from './series.ts'

type FigureReader = Parameters<PluginHost['figures']['readBy']>[0]
type Figure = Parameters<FigureReader['counter']>[0]
type Read = Parameters<FigureReader['gauge']>[1]
type Tell = ReturnType<FigureReader['counter']>

/** Combinations of labels of one figure; whatever comes beyond is counted together. */
const MOST_SERIES = 1_000

/** Figures of which a sum says nothing: of several processes, or parts of one, the worst counts. */
const WORST: Readonly<Record<string, Aggregator>> = {
  mcp_host_redis_up: 'min',
  mcp_host_sqlite_up: 'min',
  mcp_host_sqlite_file_bytes: 'max',
  mcp_host_key_age_seconds: 'max',
  mcp_host_tasks: 'max',
  mcp_host_task_queue_age_seconds: 'max',
  mcp_host_tls_certificate_expiry_timestamp_seconds: 'min',
}

const COMBINE: Partial<Record<Aggregator, (one: number, other: number) => number>> = { min: Math.min, max: Math.max }

interface Family {
  readonly kind: 'gauge' | 'counter' | 'histogram'
  read(): Metric
}

interface Gauge extends Family {
  readonly kind: 'gauge'
  readonly reads: Read[]
}

interface Told extends Family {
  readonly kind: 'counter' | 'histogram'
  readonly tell: Tell
}

const NAME = /^[a-zA-Z_:][\w:]*$/
const LABEL = /^(?!__|le$)[a-zA-Z_]\w*$/

function faultOf({ name, labels = [] }: Figure): string | undefined {
  if (!NAME.test(name)) return 'a name is made of letters, digits and _'
  const wrong = labels.find(label => !LABEL.test(label))
  return wrong === undefined ? undefined : `"${wrong}" is no name of a label`
}

/** The labels that a figure has, in its order. */
const labelsOf = ({ labels = [] }: Figure, given: Labels | undefined): Labels =>
  Object.fromEntries(labels.map(label => [label, given?.[label]]))

const keyOf = (labels: Labels) => Object.values(labels).join('\n')

/** What each combination of labels counts in, up to the bound. */
function seriesOf<Row extends object>(
  figure: Figure,
  table: { find(key: string): Row | undefined; add(key: string, labels: Labels): Row; readonly size: number },
): (given: Labels | undefined) => Row {
  const others: Labels = Object.fromEntries((figure.labels ?? []).map(label => [label, OTHER]))
  /** Of labels that are told again and again, as one object. */
  const known = new WeakMap<Labels, Row>()

  function lookUp(given: Labels | undefined): Row {
    const labels = labelsOf(figure, given)
    const key = keyOf(labels)
    const found = table.find(key)
    if (found !== undefined) return found
    if (table.size < MOST_SERIES) return table.add(key, labels)
    return table.find(keyOf(others)) ?? table.add(keyOf(others), others)
  }

  return given => {
    if (given === undefined) return lookUp(given)
    const found = known.get(given) ?? lookUp(given)
    known.set(given, found)
    return found
  }
}

function counterOf(figure: Figure): Told {
  const table = createCounter(figure)
  const rowOf = seriesOf(figure, table)
  // What has no labels is there from the start.
  if (!figure.labels?.length) rowOf(undefined)
  const tell: Tell = (value, labels) => {
    if (value > 0 && Number.isFinite(value)) rowOf(labels).value += value
  }
  return { kind: 'counter', tell, read: table.read }
}

function histogramOf(figure: Figure): Told {
  const table = createHistogram(figure, bucketsFor(figure.name))
  const rowOf = seriesOf(figure, table)
  if (!figure.labels?.length) rowOf(undefined)
  const tell: Tell = (value, labels) => {
    if (Number.isFinite(value)) rowOf(labels)(value)
  }
  return { kind: 'histogram', tell, read: table.read }
}

function gaugeOf(figure: Figure, failed: (error: unknown) => void): Gauge {
  const aggregator = WORST[figure.name] ?? 'sum'
  const combine = COMBINE[aggregator] ?? ((one: number, other: number) => one + other)
  const reads: Read[] = []

  function readAll(): Sample[] {
    const rows = new Map<string, Sample>()
    for (const read of reads) {
      const found = read()
      for (const [value, given] of typeof found === 'number' ? [[found, {}] as const] : found) {
        const labels = labelsOf(figure, given)
        const key = keyOf(labels)
        const other = rows.get(key)
        if (other || rows.size < MOST_SERIES)
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
  return { kind: 'gauge', reads, read }
}

const IGNORED: Tell = () => undefined

/** `taken`: names that are not to be had. */
export function createFigureReader(
  log: PluginHost['log'],
  taken: ReadonlySet<string>,
): { readonly reader: FigureReader; read(): Metric[] } {
  const families = new Map<string, Gauge | Told>()
  const told = new Set<string>()

  function warn({ name }: Figure, problem: string) {
    if (told.has(name)) return
    told.add(name)
    log.warn({ figure: name, problem }, 'a figure is not shown among the metrics; mend what its plugin offers')
  }

  function find<Kind extends Family['kind']>(figure: Figure, kind: Kind, make: () => Gauge | Told) {
    const fault = taken.has(figure.name) ? 'the name is that of another metric' : faultOf(figure)
    if (fault !== undefined) return void warn(figure, fault)
    const known = families.get(figure.name) ?? make()
    if (known.kind !== kind) return void warn(figure, `it is offered as ${known.kind} and as ${kind}`)
    families.set(figure.name, known)
    return known as Extract<Gauge | Told, { kind: Kind }>
  }

  const reader: FigureReader = {
    gauge(figure, read) {
      find(figure, 'gauge', () => gaugeOf(figure, error => warn(figure, errorText(error))))?.reads.push(read)
    },
    counter: figure => (find(figure, 'counter', () => counterOf(figure)) as Told | undefined)?.tell ?? IGNORED,
    histogram: figure => (find(figure, 'histogram', () => histogramOf(figure)) as Told | undefined)?.tell ?? IGNORED,
  }
  return { reader, read: () => [...families.values()].map(family => family.read()) }
}
