// Measures one row: starts its servers, checks and warms each, then loads them in turn, A B A B.
import { applyLoad } from './load.ts'
import { CAN_READ_COST, readCpuSeconds, readPeakRss } from './process-cost.ts'
import { type RunningServer, startServer } from './processes.ts'
import { type BenchRequest, checkSample } from './requests.ts'
import type { Contestant, Row, Target } from './row.ts'

/** A server is warm when one more second of load no longer makes its answers cheaper; it has at most 10. */
const MOST_WARM_UPS = 10
const LEAST_WARM_UPS = 3
const STILL_FALLING = 0.95

export interface MeasureOptions {
  /** Of one contestant in one round. */
  readonly seconds: number
  readonly rounds: number
  readonly scratch: string
  readonly signal: AbortSignal
}

export interface Round {
  readonly requests: number
  readonly requestsPerSecond: number
  /** CPU time of the server for one request, microseconds; wall-clock time where the system does not tell. */
  readonly cost: number
}

export interface Measured {
  readonly name: string
  readonly rounds: readonly Round[]
  /** Bytes; undefined where the system does not tell. */
  readonly peakRss: number | undefined
}

export interface Judged {
  readonly text: string
  /** Undefined when a contestant that it needs did not run. */
  readonly value: number | undefined
  readonly met: boolean
}

export interface RowResult {
  readonly row: string
  readonly measured: readonly Measured[]
  readonly targets: readonly Judged[]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

interface Entrant {
  readonly name: string
  readonly server: RunningServer
  readonly request: BenchRequest
  readonly rounds: Round[]
}

const inContext = async <T>(name: string, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/** Slow peers need more seconds than fast ones until their code is compiled: the same for all would be unfair to them. */
async function warmUp(entrant: Entrant, options: MeasureOptions): Promise<void> {
  let last = Number.POSITIVE_INFINITY
  for (let second = 1; second <= MOST_WARM_UPS; second++) {
    const { cost } = await runRound(entrant, { ...options, seconds: 1 })
    if (second >= LEAST_WARM_UPS && cost > last * STILL_FALLING) return
    last = cost
  }
}

async function enter(contestant: Contestant, options: MeasureOptions): Promise<Entrant> {
  const { scratch, signal } = options
  const server = await startServer(contestant.command(scratch), signal)
  try {
    const request = await contestant.request(server.url)
    await checkSample(server.url, request, signal)
    const entrant = { name: contestant.name, server, request, rounds: [] }
    await warmUp(entrant, options)
    return entrant
  } catch (cause) {
    await server.stop()
    throw cause
  }
}

async function runRound({ server: { pid, url }, request }: Entrant, options: MeasureOptions): Promise<Round> {
  const before = CAN_READ_COST ? readCpuSeconds(pid) : 0
  const { requests, seconds } = await applyLoad({ url, request, ...options })
  const used = CAN_READ_COST ? readCpuSeconds(pid) - before : seconds
  await checkSample(url, request, options.signal)
  return { requests, requestsPerSecond: requests / seconds, cost: (used * 1e6) / requests }
}

function judge({ text, needs, value, holds }: Target, measured: readonly Measured[], rounds: number): Judged {
  const found = new Map(measured.map(one => [one.name, one]))
  if (!needs.every(name => found.has(name))) return { text, value: undefined, met: false }
  const perRound = Array.from({ length: rounds }, (_, index) =>
    value(name => found.get(name)?.rounds[index]?.cost ?? Number.NaN),
  )
  const middle = median(perRound)
  return { text, value: middle, met: holds(middle) }
}

/** Measures the row's contestants and judges its targets. Whatever it started has ended when it settles. */
export async function measureRow(row: Row, options: MeasureOptions): Promise<RowResult> {
  const entrants: Entrant[] = []
  try {
    for (const contestant of row.contestants)
      entrants.push(await inContext(contestant.name, enter(contestant, options)))
    for (let round = 0; round < options.rounds; round++) {
      for (const entrant of entrants) entrant.rounds.push(await inContext(entrant.name, runRound(entrant, options)))
    }
    const measured = entrants.map(({ name, rounds, server }) => ({
      name,
      rounds,
      peakRss: CAN_READ_COST ? readPeakRss(server.pid) : undefined,
    }))
    const targets = row.targets.map(target => judge(target, measured, options.rounds))
    return { row: row.name, measured, targets }
  } finally {
    await Promise.all(entrants.map(({ server }) => server.stop()))
  }
}
