// What a second worker gains on a stateless route. Nothing is pinned: workers and load share the cores, so the tool computes
// for about half a millisecond and the load takes almost nothing of them. The plain `echo` stands beside it, with what the
// load itself took: on two cores the generator needs a part of the second one, and the ratio cannot show more.
import { availableParallelism } from 'node:os'
import { CONFIG_IMPORTS, startOurs } from '../contestants.ts'
import { judgeClock } from '../judge.ts'
import { applyLoad } from '../load.ts'
import { type Measure, type MeasureOptions, notMeasured } from '../measure.ts'
import { CAN_READ_COST, processTree, readCpuSeconds } from '../process-cost.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { type BenchRequest, callTool, checkSample } from '../requests.ts'

const CONNECTIONS = 16
const LEAST_GAIN = 1.8

const CONFIG = `${CONFIG_IMPORTS}
import { createHash } from 'node:crypto'
const echo = defineTool({ ...toolTexts(1)[0], input: INPUT_SCHEMA, handler: ({ message }) => message })
const bytes = Buffer.alloc(500_000)
const compute = defineTool({
  name: 'compute',
  description: 'Returns its message after some work.',
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
  secrets: ['a secret of the benchmark, for nobody else'],
  toolsets: { all: [echo, compute] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {} },
}
`

interface Pace {
  readonly perSecond: number
  /** CPU time of all processes of the server for one request, microseconds. */
  readonly cost: number
}

async function readPace(server: RunningServer, request: BenchRequest, options: MeasureOptions): Promise<Pace> {
  const { scratch, signal, quick } = options
  const readCpu = () => processTree(server.pid).reduce((sum, pid) => sum + readCpuSeconds(pid), 0)
  const load = { url: server.url, request, connections: CONNECTIONS, cores: 'all', scratch, signal } as const
  const before = readCpu()
  const { requests, seconds } = await applyLoad({ ...load, seconds: quick ? 1 : 3 })
  return { perSecond: requests / seconds, cost: ((readCpu() - before) * 1e6) / requests }
}

async function compare(servers: readonly RunningServer[], request: BenchRequest, options: MeasureOptions) {
  for (const server of servers) await checkSample(server.url, request, options.signal)
  const rounds: Pace[][] = []
  // The first one warms them.
  for (let round = 0; round <= (options.quick ? 2 : 5); round++) {
    const paces: Pace[] = []
    for (const server of servers) paces.push(await readPace(server, request, options))
    rounds.push(paces)
  }
  const each = (index: number, key: keyof Pace) => rounds.slice(1).map(paces => paces[index]?.[key] ?? Number.NaN)
  const [one, two] = [each(0, 'perSecond'), each(1, 'perSecond')]
  return {
    one,
    two,
    gain: two.map((pace, round) => pace / (one[round] ?? Number.NaN)),
    costs: each(1, 'cost').map((cost, round) => cost / (each(0, 'cost')[round] ?? Number.NaN)),
  }
}

async function measureGain(servers: readonly RunningServer[], options: MeasureOptions) {
  const work = await compare(servers, callTool('compute'), options)
  const echo = await compare(servers, callTool('echo'), options)
  const figures = [
    { what: 'a tool that computes, 1 worker', unit: '/s', values: work.one },
    { what: 'a tool that computes, 2 workers', unit: '/s', values: work.two },
    { what: 'CPU time of such a call, 2 workers / 1', unit: '', values: work.costs },
    { what: 'echo, 1 worker', unit: '/s', values: echo.one },
    { what: 'echo, 2 workers, which the load leaves less than two cores', unit: '/s', values: echo.two },
    { what: 'echo, 2 workers / 1', unit: '', values: echo.gain },
    { what: 'CPU time of echo, 2 workers / 1', unit: '', values: echo.costs },
  ]
  return {
    figures,
    targets: [judgeClock(`2 workers / 1, a tool that computes >= ${LEAST_GAIN}`, work.gain, '>=', LEAST_GAIN)],
    notes: [
      `${availableParallelism()} cores, of which the load takes its part; it and other processes lessen the gain`,
    ],
  }
}

export const measure: Measure = {
  name: 'workers',
  quick: false,
  async run(options) {
    if (!CAN_READ_COST) return notMeasured('this system does not tell what processes use')
    if (availableParallelism() < 2) return notMeasured('one core')
    const servers: RunningServer[] = []
    try {
      for (const workers of ['1', '2']) {
        const command = startOurs(options.scratch, 'workers', CONFIG, ['--workers', workers])
        servers.push(await startServer(command, options.signal, 'all'))
      }
      return await measureGain(servers, options)
    } finally {
      await Promise.all(servers.map(server => server.stop()))
    }
  },
}
