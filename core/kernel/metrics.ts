// Metrics of the host's components and their readers. Nothing is counted without a reader.

/** Labels come from config or code, never from clients, because each combination is kept forever. */
type MetricLabels = Readonly<Record<string, string>>

export interface Metric {
  /** A Prometheus name with its unit, such as `mcp_host_queue_wait_seconds`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

type Update = (value: number, labels?: MetricLabels) => void

/** Receives metrics. Metrics with the same name are merged. */
export interface MetricsReader {
  /** The current value, or one per label set. Read on demand and summed. */
  gauge(metric: Metric, read: () => number | Iterable<readonly [value: number, labels: MetricLabels]>): void
  counter(metric: Metric): Update
  /** Takes measurements in seconds or bytes. */
  histogram(metric: Metric): Update
}

export interface Metrics extends MetricsReader {
  readBy(reader: MetricsReader): void
}

export function createMetrics(): Metrics {
  const readers: MetricsReader[] = []
  const definitions: Array<(reader: MetricsReader) => void> = []
  const define = (definition: (reader: MetricsReader) => void) => {
    definitions.push(definition)
    for (const reader of readers) definition(reader)
  }
  const defineUpdate = (kind: 'counter' | 'histogram', metric: Metric): Update => {
    const updates: Update[] = []
    define(reader => updates.push(reader[kind](metric)))
    return (value, labels) => {
      for (const update of updates) update(value, labels)
    }
  }
  return {
    gauge: (metric, read) => define(reader => reader.gauge(metric, read)),
    counter: metric => defineUpdate('counter', metric),
    histogram: metric => defineUpdate('histogram', metric),
    readBy(reader) {
      readers.push(reader)
      for (const define of definitions) define(reader)
    },
  }
}
