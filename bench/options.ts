// Parses the command-line options of the benchmark.
import { parseArgs } from 'node:util'

/** The warm-up before a round ends at the first limit that is reached. */
export interface WarmUpLimits {
  readonly firstRoundLoads: number
  readonly laterRoundLoads: number
  readonly requests: number
}

export interface BenchOptions {
  /** Duration of the load on one server in one round. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUps: WarmUpLimits
  /** Number of sessions for the idle session benchmark. */
  readonly sessions: number
  /** Selects rows, servers and measures whose name contains one of these texts. Empty: all. */
  readonly only: readonly string[]
  readonly quick: boolean
  readonly chart: boolean
  /** Results file of an earlier run: its chart is drawn, without a new measurement. */
  readonly from: string | undefined
}

const parseInteger = (name: string, text: string, min: number): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value >= min) return value
  throw new Error(`--${name} ${text}: must be an integer of at least ${min}`)
}

export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      sessions: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      quick: { type: 'boolean', default: false },
      chart: { type: 'boolean', default: false },
      from: { type: 'string' },
    },
  })
  const { quick, chart, only, from } = values
  if (from !== undefined && !chart) throw new Error(`--from ${from}: requires --chart`)
  return {
    seconds: parseInteger('seconds', values.seconds ?? (quick ? '1' : '3'), 1),
    rounds: parseInteger('rounds', values.rounds ?? '3', 1),
    // V8 compiles hot code within about ten thousand requests. A server that was idle is slow again for about a second:
    // only a full run has time for another warm-up.
    warmUps: quick
      ? { firstRoundLoads: 4, laterRoundLoads: 0, requests: 20_000 }
      : { firstRoundLoads: 12, laterRoundLoads: 12, requests: Number.POSITIVE_INFINITY },
    sessions: parseInteger('sessions', values.sessions ?? '100000', 0),
    only,
    quick,
    chart,
    from,
  }
}

/** Whether the name contains one of the texts of `--only`, or there are none. */
export const isSelected = (only: readonly string[], name: string) =>
  only.length === 0 || only.some(text => name.includes(text))
