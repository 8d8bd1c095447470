// Measures the throughput gain of a second worker on a stateless route. Workers and load generator share the CPUs:
// the tool computes for about half a millisecond, so that the load generator needs only a small share. `echo` is measured
// for comparison. Its gain on two CPUs is limited, because the load generator uses a part of the second CPU.
import { availableParallelism } from 'node:os'
import { CONFIG_IMPORTS, hostCommand } from '../contestants.ts'
import { applyLoad } from '../load.ts'
import { type Measure, type MeasureOptions, NO_PROC, skipMeasure } from '../measure.ts'
import { HAS_PROC, listProcessTree, readCpuSeconds } from '../process-stats.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { type BenchRequest, callTool, verifyResponse } from '../requests.ts'
import { checkTimeTarget } from '../targets.ts'

const CONNECTIONS = 16
const MIN_GAIN = 1.8

const CONFIG = `${CONFIG_IMPORTS}
import { createHash } from 'node:crypto'
const echo = defineTool({ ...makeTools(1)[0], input: INPUT_SCHEMA, handler: ({ message }) => message })
const bytes = Buffer.alloc(500_000)
const compute = defineTool({
  name: 'compute',
  description: 'Returns its message after a computation.',
  input: INPUT_SCHEMA,
  handler({ message }) {
    createHash('sha256').update(bytes).digest()
    return message
  },
})
export default {
  server: SERVER_INFO,
  http: { port: 0 },
  stateless: true,
  secrets: ['a secret that only the benchmark uses'],
  toolsets: { all: [echo, compute] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {} },
}
`

interface Throughput {
  readonly perSecond: number
  /** CPU time of all server processes per request, in microseconds. */
  readonly cost: number
}

async function measureThroughput(
  server: RunningServer,
  request: BenchRequest,
  options: MeasureOptions,
): Promise<Throughput> {
  const { scratch, signal, quick } = options
  const readCpu = () => listProcessTree(server.pid).reduce((sum, pid) => sum + readCpuSeconds(pid), 0)
  const load = { url: server.url, request, connections: CONNECTIONS, placement: 'unpinned', scratch, signal } as const
  const before = readCpu()
  const { requests, seconds } = await applyLoad({ ...load, seconds: quick ? 1 : 3 })
  return { perSecond: requests / seconds, cost: ((readCpu() - before) * 1e6) / requests }
}

async function compareWorkers(servers: readonly RunningServer[], request: BenchRequest, options: MeasureOptions) {
  for (const server of servers) await verifyResponse(server.url, request, options.signal)
  const rounds: Throughput[][] = []
  // The first round is a warm-up.
  for (let round = 0; round <= (options.quick ? 2 : 5); round++) {
    const results: Throughput[] = []
    for (const server of servers) results.push(await measureThroughput(server, request, options))
    rounds.push(results)
  }
  const valuesOf = (index: number, key: keyof Throughput) =>
    rounds.slice(1).map(results => results[index]?.[key] ?? Number.NaN)
  const [one, two] = [valuesOf(0, 'perSecond'), valuesOf(1, 'perSecond')]
  return {
    one,
    two,
    gain: two.map((perSecond, round) => perSecond / (one[round] ?? Number.NaN)),
    costs: valuesOf(1, 'cost').map((cost, round) => cost / (valuesOf(0, 'cost')[round] ?? Number.NaN)),
  }
}

async function measureGain(servers: readonly RunningServer[], options: MeasureOptions) {
  const compute = await compareWorkers(servers, callTool('compute'), options)
  const echo = await compareWorkers(servers, callTool('echo'), options)
  const figures = [
    { what: 'compute, 1 worker', unit: '/s', values: compute.one },
    { what: 'compute, 2 workers', unit: '/s', values: compute.two },
    { what: 'CPU time of compute, 2 workers / 1', unit: '', values: compute.costs },
    { what: 'echo, 1 worker', unit: '/s', values: echo.one },
    { what: 'echo, 2 workers', unit: '/s', values: echo.two },
    { what: 'echo, 2 workers / 1', unit: '', values: echo.gain },
    { what: 'CPU time of echo, 2 workers / 1', unit: '', values: echo.costs },
  ]
  return {
    figures,
    targets: [checkTimeTarget(`2 workers / 1, compute >= ${MIN_GAIN}`, compute.gain, '>=', MIN_GAIN)],
    notes: [
      `${availableParallelism()} CPUs, shared with the load generator; the load generator and other processes reduce the gain`,
    ],
  }
}

export const measure: Measure = {
  name: 'workers',
  quick: false,
  async run(options) {
    if (!HAS_PROC) return skipMeasure(NO_PROC)
    if (availableParallelism() < 2) return skipMeasure('requires two CPUs')
    const servers: RunningServer[] = []
    try {
      for (const workers of ['1', '2']) {
        const command = hostCommand(options.scratch, 'workers', CONFIG, ['--workers', workers])
        servers.push(await startServer(command, options.signal, 'unpinned'))
      }
      return await measureGain(servers, options)
    } finally {
      await Promise.all(servers.map(server => server.stop()))
    }
  },
}
