// The shop workload (TM Dev Lab v2 benchmark of MCP servers): 50 users call three tools that use Redis and an HTTP API.
// The server has one CPU. The users, the API and Redis share the other.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inPath } from '../../test/support/needs-program.ts'
import { type RedisServer, startRedis } from '../../test/support/redis-server.ts'
import type { ShopOptions, ShopResult } from '../clients/shop.ts'
import { CONFIG_IMPORTS, hostCommand } from '../contestants.ts'
import { type Measure, type MeasureOptions, type MeasureResult, skipMeasure } from '../measure.ts'
import { HAS_PROC, readCpuSeconds, readPeakRss } from '../process-stats.ts'
import { CAN_PIN_CPUS, runClient, startServer } from '../processes.ts'
import { checkTarget, checkTimeTarget } from '../targets.ts'

const USERS = 50
const OURS = 'ours'
const SDK = 'SDK server 2.4'
const NODE_HTTP = 'node:http, same tools'
const PEERS = { [SDK]: 'sdk', 'SDK 1.32, sessions': 'sdk-sessions', 'tmcp 1.20': 'tmcp', 'fastmcp 4.20': 'fastmcp' }
const LIMITS = { ratio: 8, megabytes: 150 }

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const CONFIG = `${CONFIG_IMPORTS}
import { SHOP_TOOLS } from ${JSON.stringify(new URL('../servers/shop-tools.mjs', import.meta.url).href)}
const shop = SHOP_TOOLS.map(({ name, description, input, run }) => defineTool({ name, description, input, handler: run }))
export default {
  server: SERVER_INFO,
  http: { port: 0 },
  sessions: { maxPerOwner: 10_000 },
  toolsets: { shop },
  routes: { '/mcp': { toolsets: ['shop'] } },
  plugins: { 'transport-streamable': {} },
}
`

/** Adds the carts and orders of the users, and the ten most popular products. */
function fillRedis(redis: RedisServer): void {
  redis.cli('FLUSHALL')
  const items = JSON.stringify([
    { product_id: 42, quantity: 2 },
    { product_id: 1337, quantity: 1 },
  ])
  const orders = Array.from({ length: 5 }, (_, order) => JSON.stringify({ order_id: `ORD-${order}`, items: [] }))
  for (let user = 1; user <= USERS; user++) {
    const name = `user-${String(user).padStart(5, '0')}`
    redis.cli('HSET', `shop:cart:${name}`, 'items', items, 'total', '99.5')
    redis.cli('RPUSH', `shop:history:${name}`, ...orders)
  }
  const ranks = Array.from({ length: 10 }, (_, rank) => [String(100 - rank), `product:${rank + 1}`]).flat()
  redis.cli('ZADD', 'shop:popular', ...ranks)
}

interface Round extends ShopResult {
  /** CPU time of the server per counted request, in microseconds. */
  readonly cost: number
  /** Peak resident memory. */
  readonly megabytes: number
}

async function measureServer(name: string, redis: RedisServer, options: MeasureOptions): Promise<Round> {
  fillRedis(redis)
  const peer = name === NODE_HTTP ? 'node' : PEERS[name as keyof typeof PEERS]
  const command =
    peer === undefined ? hostCommand(options.scratch, 'shop', CONFIG) : [fileAt('../servers/shop.mjs'), peer]
  const server = await startServer(command, options.signal)
  try {
    const load: ShopOptions = { url: server.url, users: USERS, warmUpSeconds: 3, seconds: options.quick ? 3 : 10 }
    await runClient<ShopResult>('shop.ts', JSON.stringify({ ...load, seconds: 1 }), options.signal)
    const before = readCpuSeconds(server.pid)
    const result = await runClient<ShopResult>('shop.ts', JSON.stringify({ ...load, warmUpSeconds: 0 }), options.signal)
    const cost = ((readCpuSeconds(server.pid) - before) * 1e6) / result.requests
    return { ...result, cost, megabytes: readPeakRss(server.pid) / 1e6 }
  } finally {
    await server.stop()
  }
}

async function measureAll(redis: RedisServer, options: MeasureOptions): Promise<MeasureResult> {
  const names = [OURS, NODE_HTTP, ...Object.keys(PEERS)]
  const rounds = new Map(names.map(name => [name, [] as Round[]]))
  for (let round = 0; round < (options.quick ? 1 : 3); round++) {
    for (const name of names) rounds.get(name)?.push(await measureServer(name, redis, options))
  }
  const valuesOf = (name: string, value: (round: Round) => number) => (rounds.get(name) ?? []).map(value)
  const ratios = valuesOf(OURS, round => round.cost).map((cost, index) => {
    return (valuesOf(SDK, round => round.cost)[index] ?? Number.NaN) / cost
  })
  const lowestPeerP99 = Math.min(...Object.keys(PEERS).flatMap(name => valuesOf(name, round => round.p99)))
  return {
    figures: names.flatMap(name => [
      { what: `${name}: requests`, unit: '/s', values: valuesOf(name, round => round.requestsPerSecond) },
      { what: `${name}: CPU for each`, unit: 'µs', values: valuesOf(name, round => round.cost) },
      { what: `${name}: latency, p50`, unit: 'ms', values: valuesOf(name, round => round.p50) },
      { what: `${name}: latency, p99`, unit: 'ms', values: valuesOf(name, round => round.p99) },
      { what: `${name}: peak resident memory`, unit: 'MB', values: valuesOf(name, round => round.megabytes) },
    ]),
    targets: [
      checkTarget(`CPU of ${SDK} / ours >= ${LIMITS.ratio}`, ratios, '>=', LIMITS.ratio),
      checkTimeTarget(
        'p99 <= lowest of the other servers',
        valuesOf(OURS, round => round.p99),
        '<=',
        lowestPeerP99,
      ),
      checkTarget(
        `peak resident memory <= ${LIMITS.megabytes} MB`,
        valuesOf(OURS, round => round.megabytes),
        '<=',
        LIMITS.megabytes,
      ),
    ],
    notes: [`${USERS} users; notifications and DELETE are not counted as requests`],
  }
}

export const measure: Measure = {
  name: 'shop',
  quick: false,
  async run(options) {
    if (!inPath('redis-server')) return skipMeasure('redis-server is not installed')
    if (!HAS_PROC || !CAN_PIN_CPUS) return skipMeasure('requires /proc, taskset and two CPUs')
    const redis = await startRedis()
    const api = await startServer([fileAt('../servers/shop-api.mjs')], options.signal, 'shared')
    try {
      const [, redisPid = ''] = /^process_id:(\d+)/m.exec(redis.cli('INFO', 'server').join('\n')) ?? []
      execFileSync('taskset', ['-a', '-c', '-p', '1', redisPid])
      process.env['REDIS_URL'] = redis.url
      process.env['API_URL'] = new URL(api.url).origin
      return await measureAll(redis, options)
    } finally {
      delete process.env['REDIS_URL']
      delete process.env['API_URL']
      await api.stop()
      await redis.remove()
    }
  },
}
