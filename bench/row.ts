// A row of the benchmark compares the cost of one request between servers. Each file in rows/ exports a `row`.
import type { BenchRequest } from './requests.ts'
import type { Relation } from './targets.ts'

/** One server in a row. */
export interface Contestant {
  readonly name: string
  /** Arguments of node: a script and its arguments. Files such as configs are written to the folder `scratch`. */
  command(scratch: string): readonly string[]
  /** Path of the Node.js executable. Default: the one that runs the benchmark. */
  nodePath?(): string
  /** Creates the request to repeat, once the server listens. Opens a session or a stream first if required. */
  request(url: string): BenchRequest | Promise<BenchRequest>
  /** Whether a process of the server counts, by its command line. Default: all processes count. */
  isCounted?(commandLine: string): boolean
  /** A package that is not in bench/package.json. If it is not installed, the server is skipped and reported. */
  readonly requiredPackage?: string
}

/** Returns the cost per request of a contestant in one round, in microseconds. */
export type CostLookup = (contestant: string) => number

export interface Target {
  readonly text: string
  /** Computed for each round, so that speed changes of the machine between rounds do not matter. The median counts. */
  value(costOf: CostLookup): number
  readonly relation: Relation
  readonly limit: number
}

export interface Row {
  readonly name: string
  /** The first is the baseline: costs are also shown as multiples of its cost, unless `baseline` is false. */
  readonly contestants: readonly Contestant[]
  readonly targets: readonly Target[]
  readonly baseline?: false
  /** Names of the contestants that run with `--quick`. Default: none, the row is skipped. */
  readonly quick?: readonly string[]
  /** Number of concurrent connections. Default: 32. */
  readonly connections?: number
  /** Minimum duration of each load, for slow responses. */
  readonly minSeconds?: number
}

/** Limits the cost of a contestant divided by the cost of another. */
export const ratio = (name: string, other: string, relation: Relation, limit: number): Target => ({
  text: `${name} / ${other} ${relation} ${limit}`,
  value: costOf => costOf(name) / costOf(other),
  relation,
  limit,
})

/** Limits the cost of a contestant minus the cost of another, in microseconds per request. */
export const difference = (name: string, other: string, limit: number): Target => ({
  text: `${name} - ${other} <= ${limit} µs`,
  value: costOf => costOf(name) - costOf(other),
  relation: '<=',
  limit,
})
