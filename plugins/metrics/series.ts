// Counters and histograms in the format of prom-client, whose own counters are several times slower.
import { KeyedLru } from '../../core/internal.ts'

/** A metric, as prom-client reads and writes it. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values of several processes are combined. Default: `sum`. */
  readonly aggregator?: Aggregator
  readonly values: readonly Sample[]
}

export type Aggregator = 'sum' | 'min' | 'max' | 'average' | 'first' | 'omit'

export interface Sample {
  readonly labels: Labels
  readonly value: number
  readonly metricName?: string
}

export type Labels = Readonly<Record<string, string | number | undefined>>

/** Replaces label values over the limit. */
export const OTHER = '_OTHER'

export const definedLabels = (labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined))

const labelKeys = (labels: Labels) => Object.values(labels).map(value => String(value ?? ''))

export type Add = (value: number) => void

interface Row {
  readonly add: Add
  samples(): readonly Sample[]
}

function createCounter(labels: Labels): Row {
  let sum = 0
  return {
    add(value) {
      sum += value
    },
    samples: () => [{ labels, value: sum }],
  }
}

function createHistogram(labels: Labels, name: string, limits: readonly number[]): Row {
  /** Measurements per bucket: above the previous limit, and up to this one. The last bucket has no limit. */
  const counts: number[] = new Array(limits.length + 1).fill(0)
  let sum = 0
  return {
    add(value) {
      let index = 0
      while (index < limits.length && value > (limits[index] as number)) index++
      counts[index] = (counts[index] as number) + 1
      sum += value
    },
    samples() {
      let count = 0
      const buckets = counts.map((value, index) => {
        count += value
        return {
          labels: { ...labels, le: String(limits[index] ?? '+Inf') },
          value: count,
          metricName: `${name}_bucket`,
        }
      })
      return [
        ...buckets,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ]
    },
  }
}

/** A counter, or a histogram if it has `limits`: the upper limits of its buckets, ascending. */
export class Series {
  readonly #definition: Pick<Metric, 'name' | 'help'>
  readonly #limits: readonly number[] | undefined
  readonly #rows = new KeyedLru<Row>()

  constructor({ name, help }: Pick<Metric, 'name' | 'help'>, limits?: readonly number[]) {
    this.#definition = { name, help }
    this.#limits = limits
  }
  get size(): number {
    return this.#rows.size
  }
  has(labels: Labels): boolean {
    return this.#rows.get(labelKeys(labels)) !== undefined
  }
  /** `keys` identify the labels. */
  row(keys: ReadonlyArray<string | undefined>, labels: () => Labels): Add {
    return (this.#rows.get(keys) ?? this.#rows.add(keys, this.#create(definedLabels(labels())))).add
  }
  #create(labels: Labels): Row {
    return this.#limits ? createHistogram(labels, this.#definition.name, this.#limits) : createCounter(labels)
  }
  with(labels: Labels): Add {
    return this.row(labelKeys(labels), () => labels)
  }
  read(): Metric {
    const type = this.#limits ? 'histogram' : 'counter'
    return { ...this.#definition, type, values: this.#rows.values().flatMap(row => row.samples()) }
  }
}

/** Buckets in seconds: those of the OpenTelemetry conventions for MCP, and finer ones below 10 ms. */
export const CALL_BUCKETS = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]
/** Buckets for sessions, seconds. The conventions end after five minutes, when most sessions still exist. */
const SESSION_BUCKETS = [1, 10, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400]
const SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60]
const BYTES = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216]

export function bucketsFor(name: string): readonly number[] {
  if (name === 'mcp_server_session_duration_seconds') return SESSION_BUCKETS
  return name.endsWith('_bytes') ? BYTES : SECONDS
}
