// What a measure of the benchmark is: something other than the cost of one repeated request, with its own way to be found.
// A new measure is a new file in measures/ that exports `measure`; run.ts finds it there.
import type { Judged } from './judge.ts'

export interface MeasureOptions {
  /** Folder for the files of this run. */
  readonly scratch: string
  readonly signal: AbortSignal
  /** Fewer rounds and smaller numbers: what can be said within seconds. */
  readonly quick: boolean
  /** Idle sessions to open. */
  readonly sessions: number
}

/** One figure, once for each round. */
export interface Figure {
  readonly what: string
  readonly unit: string
  readonly values: readonly number[]
}

export interface MeasureResult {
  readonly figures: readonly Figure[]
  readonly targets: readonly Judged[]
  /** What is no figure: how it was measured here, or why it was not. */
  readonly notes: readonly string[]
}

export interface Measure {
  readonly name: string
  /** False where `--quick` leaves it out. */
  readonly quick: boolean
  run(options: MeasureOptions): Promise<MeasureResult>
}

export const notMeasured = (why: string): MeasureResult => ({
  figures: [],
  targets: [],
  notes: [`not measured: ${why}`],
})
