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
  gauge(figure: Metric, read: () => number | Iterable<readonly [value: number, labels: MetricLabels]>): void
  counter(figure: Metric): Update
  /** Takes measurements in seconds or bytes. */
  histogram(figure: Metric): Update
}

export interface Metrics extends MetricsReader {
  readBy(reader: MetricsReader): void
}

export function createMetrics(): Metrics {
  const readers: MetricsReader[] = []
  const offers: Array<(reader: MetricsReader) => void> = []
  const offer = (give: (reader: MetricsReader) => void) => {
    offers.push(give)
    for (const reader of readers) give(reader)
  }
  const updateReaders = (kind: 'counter' | 'histogram', figure: Metric): Update => {
    const updates: Update[] = []
    offer(reader => updates.push(reader[kind](figure)))
    return (value, labels) => {
      for (const tell of updates) tell(value, labels)
    }
  }
  return {
    gauge: (figure, read) => offer(reader => reader.gauge(figure, read)),
    counter: figure => updateReaders('counter', figure),
    histogram: figure => updateReaders('histogram', figure),
    readBy(reader) {
      readers.push(reader)
      for (const give of offers) give(reader)
    },
  }
}
