// What is counted, by the values of labels: one table a metric. Looked up by one text a request, which costs a fraction of
// what a counter of prom-client does with as many labels; prom-client gets the figures when somebody looks (exposition.ts).

/** As prom-client reads and writes metrics. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the figures of several processes become one. Default: `sum`. */
  readonly aggregator?: Aggregator
  readonly values: readonly Sample[]
}

export type Aggregator = 'sum' | 'min' | 'max' | 'average' | 'first' | 'omit'

export interface Sample {
  readonly labels: Labels
  readonly value: number
  /** Of a histogram, whose samples have names of their own. */
  readonly metricName?: string
}

export type Labels = Readonly<Record<string, string | number | undefined>>

/** A label that is not there and one that is empty are the same to Prometheus. */
export const knownLabels = (labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined))

export interface Named {
  readonly name: string
  readonly help: string
}

/** How often, or how much. */
export interface Count {
  value: number
}

interface Spread {
  /** How many fell at or below each bound, and below no smaller one; the last: above all. */
  readonly counts: number[]
  sum: number
}

interface Row<Value> {
  readonly labels: Labels
  readonly value: Value
}

export interface Counter {
  /** Undefined for a key that has none yet. */
  find(key: string): Count | undefined
  add(key: string, labels: Labels): Count
  readonly size: number
  read(): Metric
}

export function createCounter({ name, help }: Named): Counter {
  const rows = new Map<string, Row<Count>>()
  return {
    find: key => rows.get(key)?.value,
    add(key, labels) {
      const value = { value: 0 }
      rows.set(key, { labels: knownLabels(labels), value })
      return value
    },
    get size() {
      return rows.size
    },
    read: () => ({
      name,
      help,
      type: 'counter',
      values: [...rows.values()].map(({ labels, value: { value } }) => ({ labels, value })),
    }),
  }
}

/** Takes one measurement. */
export type Measure = (value: number) => void

export interface Histogram {
  find(key: string): Measure | undefined
  add(key: string, labels: Labels): Measure
  readonly size: number
  read(): Metric
}

/** `bounds`: the greatest value of each bucket, ascending. */
export function createHistogram({ name, help }: Named, bounds: readonly number[]): Histogram {
  const rows = new Map<string, Row<Spread> & { readonly measure: Measure }>()

  function samplesOf({ labels, value: { counts, sum } }: Row<Spread>): Sample[] {
    let count = 0
    const buckets = counts.map((own, index) => {
      count += own
      return { labels: { ...labels, le: String(bounds[index] ?? '+Inf') }, value: count, metricName: `${name}_bucket` }
    })
    return [
      ...buckets,
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ]
  }

  return {
    find: key => rows.get(key)?.measure,
    add(key, labels) {
      const spread: Spread = { counts: new Array(bounds.length + 1).fill(0), sum: 0 }
      const { counts } = spread
      const measure = (value: number) => {
        let index = 0
        while (index < bounds.length && value > (bounds[index] as number)) index++
        counts[index] = (counts[index] as number) + 1
        spread.sum += value
      }
      rows.set(key, { labels: knownLabels(labels), value: spread, measure })
      return measure
    },
    get size() {
      return rows.size
    },
    read: () => ({ name, help, type: 'histogram', values: [...rows.values()].flatMap(samplesOf) }),
  }
}
