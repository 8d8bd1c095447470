// Measures one row: starts its servers and checks each, then warms and loads them in turn, A B A B.
import { existsSync } from 'node:fs'
import type { LoadFound } from './clients/load.ts'
import { type Judged, judge } from './judge.ts'
import { applyLoad, CONNECTIONS } from './load.ts'
import type { WarmUps } from './options.ts'
import { CAN_READ_COST, processTree, readCommandLine, readCpuSeconds, readPeakRss } from './process-cost.ts'
import { type RunningServer, startServer } from './processes.ts'
import { type BenchRequest, checkSample } from './requests.ts'
import type { Contestant, Row, Target } from './row.ts'

/** A server is warm when so many seconds of load in a row made its answers no cheaper. */
const PATIENCE = 2
const STILL_FALLING = 0.95
/** Seconds. */
const LONGEST_LOAD = 8

export interface MeasureOptions {
  /** Of one contestant in one round. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUps: WarmUps
  readonly scratch: string
  readonly signal: AbortSignal
}

export interface Round {
  readonly requests: number
  readonly requestsPerSecond: number
  /** CPU time of the server and of what it started for one request, microseconds; wall-clock time where the system does not tell. */
  readonly cost: number
  /** The same for each load of the warm-up before it: the first tells what a server costs after it was idle. */
  readonly warmUpCosts: readonly number[]
}

export interface Measured {
  readonly name: string
  readonly rounds: readonly Round[]
  /** Bytes; undefined where the system does not tell. */
  readonly peakRss: number | undefined
}

export interface RowResult {
  readonly row: string
  readonly measured: readonly Measured[]
  readonly targets: readonly Judged[]
  /** Whether the others are shown as multiples of the first. */
  readonly yardstick: boolean
  /** Contestants that are not installed. */
  readonly absent: readonly string[]
  /** The part of the machine that others used meanwhile, 0 to 1; undefined where nobody told. */
  readonly others?: number | undefined
}

interface RowOptions extends MeasureOptions {
  readonly connections: number
  readonly leastSeconds: number
}

interface Entrant {
  readonly name: string
  readonly contestant: Contestant
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

async function enter(contestant: Contestant, options: MeasureOptions): Promise<Entrant> {
  const { scratch, signal } = options
  const server = await startServer(contestant.command(scratch), signal, undefined, contestant.node?.())
  try {
    const request = await contestant.request(server.url)
    await checkSample(server.url, request, signal)
    return { name: contestant.name, contestant, server, request, rounds: [] }
  } catch (cause) {
    await server.stop()
    throw cause
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

async function loadFor(seconds: number, entrant: Entrant, options: RowOptions): Promise<LoadFound & { cost: number }> {
  const { contestant, server, request } = entrant
  const { pid, url } = server
  const counts = (one: number) => contestant.counts?.(readCommandLine(one)) ?? true
  const readAll = () => (CAN_READ_COST ? sum(processTree(pid).filter(counts).map(readCpuSeconds)) : 0)
  const before = readAll()
  const result = await applyLoad({ ...options, url, request, seconds })
  // On a machine that others fill, a second may pass without an answer.
  if (result.requests === 0 && seconds < LONGEST_LOAD) return loadFor(seconds * 2, entrant, options)
  if (result.requests === 0) throw new Error(`nothing was answered in ${seconds} s`)
  const used = CAN_READ_COST ? readAll() - before : result.seconds
  return { ...result, cost: (used * 1e6) / result.requests }
}

/**
 * Warms a server and returns what each of its loads cost. Slow peers need more seconds than fast ones until their code is
 * compiled; and while the others have their turn V8 collects an idle server's garbage (its memory reducer), after which
 * some are as slow as at their start. On a busy machine one slow second says little, hence the patience.
 */
async function warmUp(entrant: Entrant, options: RowOptions): Promise<number[]> {
  const { first, later, requests: enough } = options.warmUps
  const most = entrant.rounds.length === 0 ? first : later
  const costs: number[] = []
  let least = Number.POSITIVE_INFINITY
  let [idle, answered] = [0, 0]
  while (costs.length < most && idle < PATIENCE && answered < enough) {
    const { cost, requests } = await loadFor(Math.max(1, options.leastSeconds), entrant, options)
    idle = cost > least * STILL_FALLING ? idle + 1 : 0
    least = Math.min(least, cost)
    answered += requests
    costs.push(cost)
  }
  return costs
}

async function runRound(entrant: Entrant, options: RowOptions): Promise<Round> {
  const warmUpCosts = await warmUp(entrant, options)
  const { requests, seconds, cost } = await loadFor(Math.max(options.seconds, options.leastSeconds), entrant, options)
  await checkSample(entrant.server.url, entrant.request, options.signal)
  return { requests, requestsPerSecond: requests / seconds, cost, warmUpCosts }
}

function judgeTarget(target: Target, measured: readonly Measured[], rounds: number): Judged {
  const found = new Map(measured.map(one => [one.name, one]))
  const perRound = Array.from({ length: rounds }, (_, index) =>
    target.value(name => found.get(name)?.rounds[index]?.cost ?? Number.NaN),
  )
  return judge(target.text, perRound, target.relation, target.limit)
}

/** Whether bench/node_modules has it. */
function isInstalled(name: string): boolean {
  return existsSync(new URL(`node_modules/${name}/package.json`, import.meta.url))
}

/** Measures the row's contestants and judges its targets. Whatever it started has ended when it settles. */
export async function measureRow(row: Row, options: MeasureOptions): Promise<RowResult> {
  const entrants: Entrant[] = []
  const rowOptions = { ...options, connections: row.connections ?? CONNECTIONS, leastSeconds: row.leastSeconds ?? 1 }
  const [present, absent] = [true, false].map(wanted =>
    row.contestants.filter(({ needs }) => (needs === undefined || isInstalled(needs)) === wanted),
  )
  try {
    for (const contestant of present ?? []) entrants.push(await inContext(contestant.name, enter(contestant, options)))
    for (let round = 0; round < options.rounds; round++) {
      for (const entrant of entrants) entrant.rounds.push(await inContext(entrant.name, runRound(entrant, rowOptions)))
    }
    const measured = entrants.map(({ name, rounds, server }) => ({
      name,
      rounds,
      peakRss: CAN_READ_COST ? sum(processTree(server.pid).map(readPeakRss)) : undefined,
    }))
    const targets = row.targets.map(target => judgeTarget(target, measured, options.rounds))
    return {
      row: row.name,
      measured,
      targets,
      yardstick: row.yardstick ?? true,
      absent: absent?.map(({ name }) => name) ?? [],
    }
  } finally {
    await Promise.all(entrants.map(({ server }) => server.stop()))
  }
}
