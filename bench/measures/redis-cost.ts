// What sessions, calls and streams cost Redis: commands that it ran, and memory that it keeps. Counted by Redis itself
// (INFO), for a node of ours and one client at a time.
import { inPath } from '../../test/support/needs-program.ts'
import { type RedisServer, startRedis } from '../../test/support/redis-server.ts'
import { startOurs } from '../contestants.ts'
import { type Measure, notMeasured } from '../measure.ts'
import { CAN_READ_COST, readRss } from '../process-cost.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { openSession } from '../sessions.ts'

const SESSIONS = 2_000
const CALLS = 2_000
const STREAMED = 200
const STREAMS = 200
const CHANGES = 50
/** Events of one streamed call, and bytes of the text in each. */
const EVENTS = 10
const EVENT_BYTES = 100

const configText = (url: string) => `
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
  secrets: ['a secret of the benchmark, for nobody else'],
  sessions: { maxPerOwner: 1_000_000, maxIdle: 1_000_000 },
  toolsets: { all: [echo, report, change] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {} },
}
`

/** How often Redis ran each command so far; those of scripts count too. */
function readCommands(redis: RedisServer): Map<string, number> {
  const found = redis.cli('INFO', 'commandstats').map(line => /^cmdstat_([^:]+):calls=(\d+)/.exec(line) ?? [])
  return new Map(found.flatMap(([, name, calls]) => (name === undefined ? [] : [[name, Number(calls)]])))
}

function readMemory(redis: RedisServer): number {
  const line = redis.cli('INFO', 'memory').find(one => one.startsWith('used_memory:'))
  return Number(line?.split(':')[1])
}

function readRedisCpu(redis: RedisServer): number {
  const times = redis.cli('INFO', 'cpu').map(line => /^used_cpu_(?:sys|user):([\d.]+)/.exec(line)?.[1])
  return times.reduce((total, time) => total + Number(time ?? 0), 0)
}

/** The beat of a node, its reading of what comes, and this program's own questions. */
const BACKGROUND = new Set(['info', 'xread', 'set', 'client|setinfo', 'hello', 'command|docs', 'command'])

interface Cost {
  readonly what: string
  readonly commands: string
  readonly bytes: number
  readonly redisMicros: number
}

async function readCost(redis: RedisServer, what: string, times: number, act: () => Promise<unknown>): Promise<Cost> {
  const [commands, memory, cpu] = [readCommands(redis), readMemory(redis), readRedisCpu(redis)]
  for (let time = 0; time < times; time++) await act()
  const counted = [...readCommands(redis)]
    .map(([name, calls]) => [name, (calls - (commands.get(name) ?? 0)) / times] as const)
    .filter(([name, calls]) => calls >= 0.01 && !BACKGROUND.has(name))
    .sort(([, one], [, other]) => other - one)
  return {
    what,
    commands: counted.map(([name, calls]) => `${name} ${calls.toFixed(calls < 10 ? 2 : 0)}`).join(', '),
    bytes: (readMemory(redis) - memory) / times,
    redisMicros: ((readRedisCpu(redis) - cpu) * 1e6) / times,
  }
}

/** Everything that there is to measure, with one node. */
async function measureNode(redis: RedisServer, { url, pid }: RunningServer): Promise<string[]> {
  const headers = await openSession(url)
  let id = 0
  const call = async (name: string, progressToken?: string) => {
    const params = { name, arguments: {}, ...(progressToken !== undefined && { _meta: { progressToken } }) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
    const response = await fetch(url, { method: 'POST', headers, body })
    const text = await response.text()
    if (!response.ok || !text.includes('"result"')) throw new Error(`a call was answered ${response.status}: ${text}`)
  }
  for (let time = 0; time < 200; time++) await call('echo')
  const rss = CAN_READ_COST ? readRss(pid) : 0
  const opened = await readCost(redis, 'a session: initialize and its notification', SESSIONS, () => openSession(url))
  const resident = ((CAN_READ_COST ? readRss(pid) - rss : 0) / SESSIONS / 1024).toFixed(1)
  const costs = [
    opened,
    await readCost(redis, 'a call that is answered at once', CALLS, () => call('echo')),
    await readCost(redis, `a call that streams ${EVENTS} events of ${EVENT_BYTES} bytes`, STREAMED, () =>
      call('report', 'p'),
    ),
  ]
  const ended = new AbortController()
  const sessions = await Promise.all(Array.from({ length: STREAMS }, () => openSession(url)))
  async function openStream() {
    const { 'Content-Type': _, ...headers } = { ...sessions.pop(), Accept: 'text/event-stream' } as Record<
      string,
      string
    >
    const response = await fetch(url, { headers, signal: ended.signal })
    if (!response.ok) throw new Error(`a GET was answered ${response.status}`)
    response.body?.pipeTo(new WritableStream()).catch(() => undefined)
  }
  costs.push(
    await readCost(redis, 'the GET stream of a session', STREAMS, openStream),
    await readCost(redis, `a change that ${STREAMS} GET streams are told of, and the call`, CHANGES, () =>
      call('change'),
    ),
  )
  ended.abort()
  return [
    ...costs.flatMap(({ what, commands, bytes, redisMicros }) => [
      `  ${what}: ${Math.round(bytes)} bytes kept, ${redisMicros.toFixed(0)} µs of Redis's CPU`,
      `    ${commands}`,
    ]),
    `  ${resident} kB more resident in the node for each session`,
  ]
}

export const measure: Measure = {
  name: 'redis commands',
  quick: false,
  async run({ scratch, signal }) {
    if (!inPath('redis-server')) return notMeasured('redis-server is not in PATH: apt-get install redis-server')
    const redis = await startRedis()
    try {
      const server = await startServer(startOurs(scratch, 'redis-cost', configText(redis.url)), signal)
      try {
        return {
          figures: [],
          targets: [],
          notes: ['what Redis does and keeps, for:', ...(await measureNode(redis, server))],
        }
      } finally {
        await server.stop()
      }
    } finally {
      await redis.remove()
    }
  },
}
