// What the command line of the benchmark says.
import { parseArgs } from 'node:util'

/** How a server is warmed before each round; all that is said here bounds it. */
export interface WarmUps {
  /** Seconds of load before the first round, and before each later one. */
  readonly first: number
  readonly later: number
  /** Requests after which it is warm enough. */
  readonly requests: number
}

export interface BenchOptions {
  /** Of one server in one round. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUps: WarmUps
  /** Idle sessions to open; 0: none. */
  readonly sessions: number
  /** Rows, servers and measures whose name holds one of these; all where empty. */
  readonly only: readonly string[]
  readonly quick: boolean
  /** Writes the chart. */
  readonly chart: boolean
  /** Results of an earlier run to draw, instead of measuring. */
  readonly from: string | undefined
}

const wholeNumber = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new Error(`--${name} ${text}: give a whole number from ${least}`)
}

/** Throws with what to write instead. */
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
  if (from !== undefined && !chart)
    throw new Error(`--from ${from}: give --chart with it, it is what is drawn from there`)
  return {
    seconds: wholeNumber('seconds', values.seconds ?? (quick ? '1' : '3'), 1),
    rounds: wholeNumber('rounds', values.rounds ?? '3', 1),
    // V8 has compiled what is hot after some ten thousand requests. A server that had no turn for a while is slow for a
    // second: only a full run has the time to warm it again.
    warmUps: quick
      ? { first: 4, later: 0, requests: 20_000 }
      : { first: 12, later: 12, requests: Number.POSITIVE_INFINITY },
    sessions: wholeNumber('sessions', values.sessions ?? '100000', 0),
    only,
    quick,
    chart,
    from,
  }
}

/** Whether one of the texts of `--only` is in the name, or there are none. */
export const isChosen = (only: readonly string[], name: string) =>
  only.length === 0 || only.some(text => name.includes(text))
