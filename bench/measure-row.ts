// Measures one row: starts and verifies its servers, then warms up and loads each in turn, A B A B.
import { existsSync } from 'node:fs'
import type { LoadResult } from './clients/load.ts'
import { applyLoad, CONNECTIONS } from './load.ts'
import type { WarmUpLimits } from './options.ts'
import { HAS_PROC, listProcessTree, readCommandLine, readCpuSeconds, readPeakRss } from './process-stats.ts'
import { type RunningServer, startServer } from './processes.ts'
import { type BenchRequest, verifyResponse } from './requests.ts'
import type { Contestant, Row, Target } from './row.ts'
import { checkTarget, type TargetResult } from './targets.ts'

/** The warm-up ends after this number of successive loads that do not reduce the cost to less than MIN_IMPROVEMENT. */
const STABLE_LOADS = 2
const MIN_IMPROVEMENT = 0.95
const MAX_LOAD_SECONDS = 8

export interface MeasureOptions {
  /** Duration of the load on one contestant in one round. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUps: WarmUpLimits
  readonly scratch: string
  readonly signal: AbortSignal
}

export interface Round {
  readonly requests: number
  readonly requestsPerSecond: number
  /** CPU time per request of all processes of the server, in microseconds. Wall-clock time without /proc. */
  readonly cost: number
  /** The cost in each warm-up load before the round. The first one shows the cost after idle time. */
  readonly warmUpCosts: readonly number[]
}

export interface ContestantResult {
  readonly name: string
  readonly rounds: readonly Round[]
  /** Bytes. Undefined without /proc. */
  readonly peakRss: number | undefined
}

/** Field names are part of the results file. */
export interface RowResult {
  readonly row: string
  readonly measured: readonly ContestantResult[]
  readonly targets: readonly TargetResult[]
  /** Whether the first contestant is the baseline. */
  readonly yardstick: boolean
  /** Contestants that are not installed. */
  readonly absent: readonly string[]
  /** Share of the machine's CPU time used by other processes, 0 to 1. */
  readonly others?: number | undefined
}

interface RowOptions extends MeasureOptions {
  readonly connections: number
  readonly minSeconds: number
}

interface StartedContestant {
  readonly name: string
  readonly contestant: Contestant
  readonly server: RunningServer
  readonly request: BenchRequest
  readonly rounds: Round[]
}

const addContext = async <T>(name: string, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

async function startContestant(contestant: Contestant, options: MeasureOptions): Promise<StartedContestant> {
  const { scratch, signal } = options
  const server = await startServer(contestant.command(scratch), signal, undefined, contestant.nodePath?.())
  try {
    const request = await contestant.request(server.url)
    await verifyResponse(server.url, request, signal)
    return { name: contestant.name, contestant, server, request, rounds: [] }
  } catch (cause) {
    await server.stop()
    throw cause
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

async function measureLoad(
  seconds: number,
  started: StartedContestant,
  options: RowOptions,
): Promise<LoadResult & { cost: number }> {
  const { contestant, server, request } = started
  const { pid, url } = server
  const isCounted = (id: number) => contestant.isCounted?.(readCommandLine(id)) ?? true
  const readCpu = () => (HAS_PROC ? sum(listProcessTree(pid).filter(isCounted).map(readCpuSeconds)) : 0)
  const before = readCpu()
  const result = await applyLoad({ ...options, url, request, seconds })
  // On a busy machine, a second can pass without a response.
  if (result.requests === 0 && seconds < MAX_LOAD_SECONDS) return measureLoad(seconds * 2, started, options)
  if (result.requests === 0) throw new Error(`no response within ${seconds} s`)
  const used = HAS_PROC ? readCpu() - before : result.seconds
  return { ...result, cost: (used * 1e6) / result.requests }
}

/**
 * Warms up a server and returns the cost of each load. Slow servers take longer until their code is compiled. While other
 * servers are measured, V8's memory reducer collects garbage in idle servers, and some are then as slow as after startup.
 */
async function warmUp(started: StartedContestant, options: RowOptions): Promise<number[]> {
  const { firstRoundLoads, laterRoundLoads, requests: maxRequests } = options.warmUps
  const maxLoads = started.rounds.length === 0 ? firstRoundLoads : laterRoundLoads
  const costs: number[] = []
  let lowest = Number.POSITIVE_INFINITY
  let [stable, completed] = [0, 0]
  while (costs.length < maxLoads && stable < STABLE_LOADS && completed < maxRequests) {
    const { cost, requests } = await measureLoad(Math.max(1, options.minSeconds), started, options)
    stable = cost > lowest * MIN_IMPROVEMENT ? stable + 1 : 0
    lowest = Math.min(lowest, cost)
    completed += requests
    costs.push(cost)
  }
  return costs
}

async function runRound(started: StartedContestant, options: RowOptions): Promise<Round> {
  const warmUpCosts = await warmUp(started, options)
  const { requests, seconds, cost } = await measureLoad(Math.max(options.seconds, options.minSeconds), started, options)
  await verifyResponse(started.server.url, started.request, options.signal)
  return { requests, requestsPerSecond: requests / seconds, cost, warmUpCosts }
}

function checkRowTarget(target: Target, measured: readonly ContestantResult[], rounds: number): TargetResult {
  const results = new Map(measured.map(result => [result.name, result]))
  const values = Array.from({ length: rounds }, (_, index) =>
    target.value(name => results.get(name)?.rounds[index]?.cost ?? Number.NaN),
  )
  return checkTarget(target.text, values, target.relation, target.limit)
}

function isInstalled(name: string): boolean {
  return existsSync(new URL(`node_modules/${name}/package.json`, import.meta.url))
}

export async function measureRow(row: Row, options: MeasureOptions): Promise<RowResult> {
  const started: StartedContestant[] = []
  const rowOptions = { ...options, connections: row.connections ?? CONNECTIONS, minSeconds: row.minSeconds ?? 1 }
  const canRun = ({ requiredPackage }: Contestant) => requiredPackage === undefined || isInstalled(requiredPackage)
  try {
    for (const contestant of row.contestants.filter(canRun))
      started.push(await addContext(contestant.name, startContestant(contestant, options)))
    for (let round = 0; round < options.rounds; round++) {
      for (const one of started) one.rounds.push(await addContext(one.name, runRound(one, rowOptions)))
    }
    const measured = started.map(({ name, rounds, server }) => ({
      name,
      rounds,
      peakRss: HAS_PROC ? sum(listProcessTree(server.pid).map(readPeakRss)) : undefined,
    }))
    const targets = row.targets.map(target => checkRowTarget(target, measured, options.rounds))
    return {
      row: row.name,
      measured,
      targets,
      yardstick: row.baseline ?? true,
      absent: row.contestants.filter(one => !canRun(one)).map(({ name }) => name),
    }
  } finally {
    await Promise.all(started.map(({ server }) => server.stop()))
  }
}
