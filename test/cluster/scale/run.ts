// `npm run scale`: measures the cost of sessions, calls and changes for nodes and a Redis Cluster, and prints the model of a
// deployment. Options: --nodes 4, --sessions 4000, --calls 5 (of each session), --streams 400, --changes 50.
// docs/scaling.md derives a deployment of 1,000,000 sessions from the output.
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readCpuSeconds, readRss } from '../../../bench/process-stats.ts'
import { mochaGlobalSetup } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { startRedisCluster } from '../../support/redis-cluster.ts'
import { type RedisServer, stopRedis } from '../../support/redis-server.ts'
import { type NodeProcess, startNode } from '../support/node-process.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '4' },
    sessions: { type: 'string', default: '4000' },
    calls: { type: 'string', default: '5' },
    streams: { type: 'string', default: '400' },
    changes: { type: 'string', default: '50' },
  },
})
const COUNT = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, Number(text)])) as Record<
  keyof typeof values,
  number
>
/** Requests that are open at the same time. */
const AT_ONCE = 16
/** Milliseconds until nodes have reported the use of sessions. */
const SETTLE = 1_500

/** The commands that nodes send for sessions, streams and changes. Commands inside scripts are not counted. */
const SENT = /^cmdstat_(evalsha|eval|xread)$/

interface Figures {
  /** CPU seconds of all nodes, of each master, and of this process, which is not counted. */
  readonly nodes: number
  readonly masters: readonly number[]
  readonly requests: readonly number[]
  readonly bytes: readonly number[]
  readonly rss: number
}

const infoOf = (redis: RedisServer, section: string) =>
  new Map(redis.cli('INFO', section).map(line => line.trim().split(':') as [string, string]))

function read(nodes: readonly NodeProcess[], masters: readonly RedisServer[]): Figures {
  const requestsOf = (redis: RedisServer) => {
    let calls = 0
    for (const [name, stats = ''] of infoOf(redis, 'commandstats'))
      if (SENT.test(name)) calls += Number(/calls=(\d+)/.exec(stats)?.[1])
    return calls
  }
  const cpuOf = (redis: RedisServer) => {
    const info = infoOf(redis, 'cpu')
    return Number(info.get('used_cpu_user')) + Number(info.get('used_cpu_sys'))
  }
  return {
    nodes: nodes.reduce((sum, { pid }) => sum + readCpuSeconds(pid), 0),
    masters: masters.map(cpuOf),
    requests: masters.map(requestsOf),
    bytes: masters.map(redis => Number(infoOf(redis, 'memory').get('used_memory'))),
    rss: nodes.reduce((sum, { pid }) => sum + readRss(pid), 0),
  }
}

const add = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0)

/** The difference of two readings, for one of `count`. CPU in microseconds; the last master has the index of sessions. */
function costOf(before: Figures, after: Figures, count: number) {
  const each = (from: readonly number[], to: readonly number[]) => to.map((one, at) => (one - (from[at] ?? 0)) / count)
  return {
    nodeCpu: ((after.nodes - before.nodes) / count) * 1e6,
    redisCpu: each(before.masters, after.masters).map(seconds => seconds * 1e6),
    roundTrips: each(before.requests, after.requests),
    redisBytes: add(each(before.bytes, after.bytes)),
    nodeBytes: (after.rss - before.rss) / count,
  }
}

/** Runs `act` for each index, so many at once. */
async function forEach(count: number, act: (index: number) => Promise<unknown>) {
  let next = 0
  const work = async () => {
    for (let index = next++; index < count; index = next++) await act(index)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

const print = (what: string, cost: ReturnType<typeof costOf>) =>
  console.log(
    `${what.padEnd(34)} node ${cost.nodeCpu.toFixed(0).padStart(6)} us   Redis ${cost.redisCpu
      .map(cpu => cpu.toFixed(0).padStart(5))
      .join(
        ' +',
      )} us   round trips ${cost.roundTrips.map(trips => trips.toFixed(2)).join(' + ')}   kept: Redis ${cost.redisBytes.toFixed(0)} B, nodes ${cost.nodeBytes.toFixed(0)} B`,
  )

interface ScaleSession {
  readonly id: string
  /** The index of the node that opened it. */
  readonly place: number
}

const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const REVISION = '2025-11-25'
let lastId = 0

/** Sends a message and reads the whole response; connections are kept. */
async function send(node: NodeProcess, message: object, session?: string) {
  const headers = session ? { ...HEADERS, 'Mcp-Session-Id': session, 'MCP-Protocol-Version': REVISION } : HEADERS
  const body = JSON.stringify({ jsonrpc: '2.0', ...message })
  const response = await fetch(`${node.url}/mcp`, { method: 'POST', headers, body })
  const text = await response.text()
  if (!response.ok) throw new Error(`${JSON.stringify(message)} was answered ${response.status}: ${text}`)
  return response
}

async function openSession(node: NodeProcess, place: number): Promise<ScaleSession> {
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'scale', version: '1.0.0' } }
  const { headers } = await send(node, { id: 0, method: 'initialize', params })
  const id = String(headers.get('mcp-session-id'))
  await send(node, { method: 'notifications/initialized' }, id)
  return { id, place }
}

const request = (node: NodeProcess, session: ScaleSession, method: string, params: object) =>
  send(node, { id: ++lastId, method, params }, session.id)

/** A GET stream whose notifications are counted in `heard`. */
async function listen(node: NodeProcess, session: ScaleSession, heard: { count: number }) {
  const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': REVISION }
  const { body } = await fetch(`${node.url}/mcp`, { headers })
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  void (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      heard.count += decoder.decode(part.value).split('resources/updated').length - 1
  })().catch(() => undefined)
}

async function run() {
  const started = await startRedisCluster()
  const slot = Number(started[0].cli('CLUSTER', 'KEYSLOT', '{sessions}')[0])
  // The master of the partition `sessions` comes last.
  const masters = slot < 8_192 ? [started[1], started[0]] : [...started]
  const env = {
    REDIS_URL: started.map(({ url }) => url).join(','),
    MCP_HOST_SECRETS: 'a secret of the simulation alone',
  }
  const nodes: NodeProcess[] = []
  for (let place = 0; place < COUNT.nodes; place++)
    nodes.push(await startNode({ config: 'test/cluster/scale/scale.config.ts', port: await freePort(), env }))
  const at = (index: number) => nodes[index % nodes.length] as NodeProcess

  async function measure(what: string, count: number, act: () => Promise<unknown>) {
    const before = read(nodes, masters)
    await act()
    await wait(SETTLE)
    const cost = costOf(before, read(nodes, masters), count)
    print(what, cost)
    return cost
  }
  const open = async (count: number) => {
    const opened: ScaleSession[] = []
    await forEach(count, async index => {
      opened[index] = await openSession(at(index), index)
    })
    return opened
  }
  const call = (session: ScaleSession, place: number) =>
    request(at(place), session, 'tools/call', { name: 'echo', arguments: { text: 'text' } })

  try {
    for (const [index, session] of (await open(400)).entries()) await call(session, index)
    await measure('second without clients', 10, () => wait(10_000 - SETTLE))
    let sessions: ScaleSession[] = []
    await measure('session', COUNT.sessions, async () => {
      sessions = await open(COUNT.sessions)
    })
    const calls = COUNT.sessions * COUNT.calls
    const of = (index: number) => sessions[index % COUNT.sessions] as ScaleSession
    await measure('call, same node', calls, () => forEach(calls, index => call(of(index), of(index).place)))
    await measure('first call at another node', COUNT.sessions, () =>
      forEach(COUNT.sessions, index => call(of(index), of(index).place + 1)),
    )
    const heard = { count: 0 }
    await measure('GET stream with a subscription', COUNT.streams, () =>
      forEach(COUNT.streams, async index => {
        await request(at(index), of(index), 'resources/subscribe', { uri: 'page://one' })
        await listen(at(index), of(index), heard)
      }),
    )
    const told = COUNT.changes * COUNT.streams
    await measure('change, for each stream', told, async () => {
      for (let change = 0; change < COUNT.changes; change++) {
        at(change).tell({})
        await eventually('the change on every stream', () => heard.count >= (change + 1) * COUNT.streams)
      }
    })
  } finally {
    await Promise.all(nodes.map(node => node.kill()))
  }
}

mochaGlobalSetup()
try {
  await run()
} finally {
  await stopRedis()
}
process.exit()
