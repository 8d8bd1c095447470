// What a row of the benchmark is: servers that answer the same request, and the targets between them.
// A new row is a new file in rows/ that exports `row`; run.ts finds it there.
import type { Relation } from './judge.ts'
import type { BenchRequest } from './requests.ts'

/** One server in a row. */
export interface Contestant {
  readonly name: string
  /** True where it runs our compiled package, which is then built first. */
  readonly ours?: true
  /** What node runs: a script and its arguments. Files that must be written for it go into `scratch`. */
  command(scratch: string): readonly string[]
  /** The path of another Node than this one, which is to run it. */
  node?(): string
  /** The request to repeat, asked for once when the server listens: here a row opens a session or gets a token. */
  request(url: string): BenchRequest | Promise<BenchRequest>
  /** Which of its processes count, by their command lines. Default: all. */
  counts?(commandLine: string): boolean
  /** A package that bench/package.json cannot name; without it the server is left out, and the report says so. */
  readonly needs?: string
}

/** What one request cost a contestant in the round in hand, microseconds. */
export type CostOf = (contestant: string) => number

export interface Target {
  readonly text: string
  /** Contestants without whom it cannot be judged. */
  readonly needs: readonly string[]
  /** Computed in each round, so that a machine that changes its speed between rounds does no harm; the median counts. */
  value(cost: CostOf): number
  readonly relation: Relation
  readonly limit: number
}

export interface Row {
  readonly name: string
  /** The first is the yardstick: what the others cost is shown as multiples of it, where `yardstick` is not false. */
  readonly contestants: readonly Contestant[]
  readonly targets: readonly Target[]
  readonly yardstick?: false
  /** Who runs with `--quick`; without it the row is left out there. */
  readonly quick?: readonly string[]
  /** How many connections repeat the request; 32 where this is not said. */
  readonly connections?: number
  /** For answers that take long: seconds of a load, where the run's are fewer. */
  readonly leastSeconds?: number
}

/** The cost of `one` divided by the cost of `other`, held to a limit. */
export const ratio = (one: string, other: string, relation: Relation, limit: number): Target => ({
  text: `${one} / ${other} ${relation} ${limit}`,
  needs: [one, other],
  value: cost => cost(one) / cost(other),
  relation,
  limit,
})

/** What `one` costs more than `other`, microseconds a request, held to a limit. */
export const difference = (one: string, other: string, limit: number): Target => ({
  text: `${one} - ${other} <= ${limit} µs`,
  needs: [one, other],
  value: cost => cost(one) - cost(other),
  relation: '<=',
  limit,
})
