// What a host can be measured by: figures that its parts offer, and whoever reads them, such as a plugin that shows metrics.
// Where nobody reads, nothing is counted.

/** Values are of the config or of a list in the code, never what a client says: each combination is kept for ever. */
export type FigureLabels = Readonly<Record<string, string>>

export interface Figure {
  /** As Prometheus names metrics, with its unit at the end: `mcp_host_sessions`, `mcp_host_queue_wait_seconds`, `mcp_host_jobs_total`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

type Tell = (value: number, labels?: FigureLabels) => void

/** Takes figures. A name may come several times, from a plugin that is there twice: it is one figure. */
export interface FigureReader {
  /** What is there now, one number or one for each combination of labels; read when somebody looks, and added up. */
  gauge(figure: Figure, read: () => number | Iterable<readonly [value: number, labels: FigureLabels]>): void
  /** What happens: tell 1, or how many, each time. */
  counter(figure: Figure): Tell
  /** What is measured again and again, in seconds or bytes. */
  histogram(figure: Figure): Tell
}

export interface Figures extends FigureReader {
  /** Reads all that was offered, and all that will be. */
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
