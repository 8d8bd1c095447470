// A measure of the benchmark has its own procedure and figures, such as startup time or memory.
// Each file in measures/ exports a `measure`.
import type { TargetResult } from './targets.ts'

export interface MeasureOptions {
  /** Folder for temporary files. */
  readonly scratch: string
  readonly signal: AbortSignal
  /** Fewer rounds and smaller numbers, to finish within seconds. */
  readonly quick: boolean
  /** Number of sessions for the idle session benchmark. */
  readonly sessions: number
}

/** `values`: one for each round. */
export interface Figure {
  readonly what: string
  readonly unit: string
  readonly values: readonly number[]
}

export interface MeasureResult {
  readonly figures: readonly Figure[]
  readonly targets: readonly TargetResult[]
  /** Remarks on the method, or the reason why nothing was measured. */
  readonly notes: readonly string[]
}

export interface Measure {
  readonly name: string
  /** Whether it runs with `--quick`. */
  readonly quick: boolean
  run(options: MeasureOptions): Promise<MeasureResult>
}

/** Reason of a skipped measurement. */
export const NO_PROC = 'no /proc on this system'

export const skipMeasure = (reason: string): MeasureResult => ({
  figures: [],
  targets: [],
  notes: [`not measured: ${reason}`],
})
