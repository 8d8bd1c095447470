// Metrics of the host's components and their readers. Nothing is counted without a reader.

/** Labels come from config or code, never from clients, because each combination is kept forever. */
type FigureLabels = Readonly<Record<string, string>>

export interface Figure {
  /** A Prometheus name with its unit, such as `mcp_host_queue_wait_seconds`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

type Tell = (value: number, labels?: FigureLabels) => void

/** Receives metrics. Metrics with the same name are merged. */
export interface FigureReader {
  /** The current value, or one per label set. Read on demand and summed. */
  gauge(figure: Figure, read: () => number | Iterable<readonly [value: number, labels: FigureLabels]>): void
  counter(figure: Figure): Tell
  /** Takes measurements in seconds or bytes. */
  histogram(figure: Figure): Tell
}

export interface Figures extends FigureReader {
  readBy(reader: FigureReader): void
}

export function createFigures(): Figures {
  const readers: FigureReader[] = []
  const offers: Array<(reader: FigureReader) => void> = []
  const offer = (give: (reader: FigureReader) => void) => {
    offers.push(give)
    for (const reader of readers) give(reader)
  }
  const toldBy = (kind: 'counter' | 'histogram', figure: Figure): Tell => {
    const tells: Tell[] = []
    offer(reader => tells.push(reader[kind](figure)))
    return (value, labels) => {
      for (const tell of tells) tell(value, labels)
    }
  }
  return {
    gauge: (figure, read) => offer(reader => reader.gauge(figure, read)),
    counter: figure => toldBy('counter', figure),
    histogram: figure => toldBy('histogram', figure),
    readBy(reader) {
      readers.push(reader)
      for (const give of offers) give(reader)
    },
  }
}
