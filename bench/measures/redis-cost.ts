// Measures the Redis commands, memory and CPU time of sessions, calls and streams, as reported by Redis (INFO).
// Uses one mcp-host node and one client.
import { inPath } from '../../test/support/needs-program.ts'
import { type RedisServer, startRedis } from '../../test/support/redis-server.ts'
import { hostCommand } from '../contestants.ts'
import { type Measure, skipMeasure } from '../measure.ts'
import { HAS_PROC, readRss } from '../process-stats.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { openSession } from '../sessions.ts'

const SESSIONS = 2_000
const CALLS = 2_000
const STREAMED_CALLS = 200
const STREAMS = 200
const CHANGES = 50
/** Events per streamed call, and size of the message in each. */
const EVENTS = 10
const EVENT_BYTES = 100

const createConfig = (url: string) => `
import { defineTool } from ${JSON.stringify(new URL('../../dist/core/index.js', import.meta.url).href)}

const echo = defineTool({ name: 'echo', handler: () => 'The quick brown fox jumps over the lazy dog.' })
const report = defineTool({
  name: 'report',
  async handler(_, { progress }) {
    for (let event = 1; event <= ${EVENTS}; event++) {
      progress(event, ${EVENTS}, 'x'.repeat(${EVENT_BYTES}))
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    return 'done'
  },
})

const extra = defineTool({ name: 'extra', handler: () => '' })
const change = defineTool({
  name: 'change',
  handler(_, { host }) {
    if (!host.tools.remove('extra')) host.tools.add(extra)
    return 'changed'
  },
})

export default {
  server: { name: 'redis-cost', version: '1.0.0' },
  http: { port: 0 },
  redis: { url: ${JSON.stringify(url)} },
  secrets: ['a secret that only the benchmark uses'],
  sessions: { maxPerOwner: 1_000_000, maxIdle: 1_000_000 },
  toolsets: { all: [echo, report, change] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {} },
}
`

/** Number of calls per Redis command so far, including commands in scripts. */
function readCommands(redis: RedisServer): Map<string, number> {
  const stats = redis.cli('INFO', 'commandstats').map(line => /^cmdstat_([^:]+):calls=(\d+)/.exec(line) ?? [])
  return new Map(stats.flatMap(([, name, calls]) => (name === undefined ? [] : [[name, Number(calls)]])))
}

function readMemory(redis: RedisServer): number {
  const line = redis.cli('INFO', 'memory').find(one => one.startsWith('used_memory:'))
  return Number(line?.split(':')[1])
}

function readRedisCpu(redis: RedisServer): number {
  const times = redis.cli('INFO', 'cpu').map(line => /^used_cpu_(?:sys|user):([\d.]+)/.exec(line)?.[1])
  return times.reduce((total, time) => total + Number(time ?? 0), 0)
}

/** Commands of the node's heartbeat and event reader, and of this program. */
const BACKGROUND_COMMANDS = new Set(['info', 'xread', 'set', 'client|setinfo', 'hello', 'command|docs', 'command'])

interface Cost {
  readonly what: string
  readonly commands: string
  readonly bytes: number
  readonly redisMicros: number
}

async function measureCost(
  redis: RedisServer,
  what: string,
  times: number,
  run: () => Promise<unknown>,
): Promise<Cost> {
  const [commands, memory, cpu] = [readCommands(redis), readMemory(redis), readRedisCpu(redis)]
  for (let time = 0; time < times; time++) await run()
  const perRun = [...readCommands(redis)]
    .map(([name, calls]) => [name, (calls - (commands.get(name) ?? 0)) / times] as const)
    .filter(([name, calls]) => calls >= 0.01 && !BACKGROUND_COMMANDS.has(name))
    .sort(([, one], [, other]) => other - one)
  return {
    what,
    commands: perRun.map(([name, calls]) => `${name} ${calls.toFixed(calls < 10 ? 2 : 0)}`).join(', '),
    bytes: (readMemory(redis) - memory) / times,
    redisMicros: ((readRedisCpu(redis) - cpu) * 1e6) / times,
  }
}

async function measureNode(redis: RedisServer, { url, pid }: RunningServer): Promise<string[]> {
  const headers = await openSession(url)
  let id = 0
  const call = async (name: string, progressToken?: string) => {
    const params = { name, arguments: {}, ...(progressToken !== undefined && { _meta: { progressToken } }) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
    const response = await fetch(url, { method: 'POST', headers, body })
    const text = await response.text()
    if (!response.ok || !text.includes('"result"'))
      throw new Error(`call failed with status ${response.status}: ${text}`)
  }
  for (let time = 0; time < 200; time++) await call('echo')
  const rss = HAS_PROC ? readRss(pid) : 0
  const opened = await measureCost(redis, 'open a session', SESSIONS, () => openSession(url))
  const resident = ((HAS_PROC ? readRss(pid) - rss : 0) / SESSIONS / 1024).toFixed(1)
  const costs = [
    opened,
    await measureCost(redis, 'call', CALLS, () => call('echo')),
    await measureCost(redis, `streamed call with ${EVENTS} events of ${EVENT_BYTES} bytes`, STREAMED_CALLS, () =>
      call('report', 'p'),
    ),
  ]
  const streamsController = new AbortController()
  const sessions = await Promise.all(Array.from({ length: STREAMS }, () => openSession(url)))
  async function openStream() {
    const { 'Content-Type': _, ...headers } = { ...sessions.pop(), Accept: 'text/event-stream' } as Record<
      string,
      string
    >
    const response = await fetch(url, { headers, signal: streamsController.signal })
    if (!response.ok) throw new Error(`GET failed with status ${response.status}`)
    response.body?.pipeTo(new WritableStream()).catch(() => undefined)
  }
  costs.push(
    await measureCost(redis, 'open a GET stream', STREAMS, openStream),
    await measureCost(redis, `call with a change notification to ${STREAMS} GET streams`, CHANGES, () =>
      call('change'),
    ),
  )
  streamsController.abort()
  return [
    ...costs.flatMap(({ what, commands, bytes, redisMicros }) => [
      `  ${what}: ${Math.round(bytes)} bytes stored, ${redisMicros.toFixed(0)} µs of Redis CPU time`,
      `    ${commands}`,
    ]),
    `  resident memory of the node per session: ${resident} kB`,
  ]
}

export const measure: Measure = {
  name: 'redis commands',
  quick: false,
  async run({ scratch, signal }) {
    if (!inPath('redis-server')) return skipMeasure('redis-server is not in PATH: apt-get install redis-server')
    const redis = await startRedis()
    try {
      const server = await startServer(hostCommand(scratch, 'redis-cost', createConfig(redis.url)), signal)
      try {
        return {
          figures: [],
          targets: [],
          notes: ['Redis cost per operation:', ...(await measureNode(redis, server))],
        }
      } finally {
        await server.stop()
      }
    } finally {
      await redis.remove()
    }
  },
}
