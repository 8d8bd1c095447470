// The public workload: the TM Dev Lab v2 benchmark of MCP servers. 50 users call three tools that read and write Redis and
// call an HTTP API. Here the server has one core; users, API and Redis share the other one.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inPath } from '../../test/support/needs-program.ts'
import { type RedisServer, startRedis } from '../../test/support/redis-server.ts'
import type { ShopAsked, ShopFound } from '../clients/shop.ts'
import { CONFIG_IMPORTS, startOurs } from '../contestants.ts'
import { judge, judgeClock } from '../judge.ts'
import { type Measure, type MeasureOptions, type MeasureResult, notMeasured } from '../measure.ts'
import { CAN_READ_COST, readCpuSeconds, readPeakRss } from '../process-cost.ts'
import { CAN_PIN, runClient, startServer } from '../processes.ts'

const USERS = 50
const OURS = 'ours'
const SDK = 'SDK server 2.4'
const FLOOR = 'node:http, the same tools'
const PEERS = { [SDK]: 'sdk', 'SDK 1.32, sessions': 'sdk-sessions', 'tmcp 1.20': 'tmcp', 'fastmcp 4.20': 'fastmcp' }
const LIMITS = { ratio: 8, megabytes: 150 }

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const configText = `${CONFIG_IMPORTS}
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

/** Carts and orders of the users, and the ten most popular products. */
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

interface Round extends ShopFound {
  /** CPU microseconds of the server for each counted request. */
  readonly cost: number
  readonly megabytes: number
}

async function measureOne(name: string, redis: RedisServer, options: MeasureOptions): Promise<Round> {
  fillRedis(redis)
  const peer = name === FLOOR ? 'node' : PEERS[name as keyof typeof PEERS]
  const command =
    peer === undefined ? startOurs(options.scratch, 'shop', configText) : [fileAt('../servers/shop.mjs'), peer]
  const server = await startServer(command, options.signal)
  try {
    const asked: ShopAsked = { url: server.url, users: USERS, warmUpSeconds: 3, seconds: options.quick ? 3 : 10 }
    await runClient<ShopFound>('shop.ts', JSON.stringify({ ...asked, seconds: 1 }), options.signal)
    const before = readCpuSeconds(server.pid)
    const found = await runClient<ShopFound>('shop.ts', JSON.stringify({ ...asked, warmUpSeconds: 0 }), options.signal)
    const cost = ((readCpuSeconds(server.pid) - before) * 1e6) / found.requests
    return { ...found, cost, megabytes: readPeakRss(server.pid) / 1e6 }
  } finally {
    await server.stop()
  }
}

async function measureAll(redis: RedisServer, options: MeasureOptions): Promise<MeasureResult> {
  const names = [OURS, FLOOR, ...Object.keys(PEERS)]
  const rounds = new Map(names.map(name => [name, [] as Round[]]))
  for (let round = 0; round < (options.quick ? 1 : 3); round++) {
    for (const name of names) rounds.get(name)?.push(await measureOne(name, redis, options))
  }
  const valuesOf = (name: string, value: (round: Round) => number) => (rounds.get(name) ?? []).map(value)
  const ratios = valuesOf(OURS, round => round.cost).map((cost, index) => {
    return (valuesOf(SDK, round => round.cost)[index] ?? Number.NaN) / cost
  })
  const quickest = Math.min(...Object.keys(PEERS).flatMap(name => valuesOf(name, round => round.p99)))
  return {
    figures: names.flatMap(name => [
      { what: `${name}: requests`, unit: '/s', values: valuesOf(name, round => round.requestsPerSecond) },
      { what: `${name}: CPU for each`, unit: 'µs', values: valuesOf(name, round => round.cost) },
      { what: `${name}: a call, p50`, unit: 'ms', values: valuesOf(name, round => round.p50) },
      { what: `${name}: a call, p99`, unit: 'ms', values: valuesOf(name, round => round.p99) },
      { what: `${name}: most resident`, unit: 'MB', values: valuesOf(name, round => round.megabytes) },
    ]),
    targets: [
      judge(`CPU of ${SDK} / ours >= ${LIMITS.ratio}`, ratios, '>=', LIMITS.ratio),
      judgeClock(
        'p99 <= the lowest of the peers',
        valuesOf(OURS, round => round.p99),
        '<=',
        quickest,
      ),
      judge(
        `resident <= ${LIMITS.megabytes} MB`,
        valuesOf(OURS, round => round.megabytes),
        '<=',
        LIMITS.megabytes,
      ),
    ],
    notes: [`${USERS} users; initialize, tools/call and tools/list count, notifications and DELETE do not`],
  }
}

export const measure: Measure = {
  name: 'shop',
  quick: false,
  async run(options) {
    if (!inPath('redis-server')) return notMeasured('redis-server is not installed')
    if (!CAN_READ_COST || !CAN_PIN)
      return notMeasured('this system does not tell what a process uses, or cannot pin it')
    const redis = await startRedis()
    const api = await startServer([fileAt('../servers/shop-api.mjs')], options.signal, 'load')
    try {
      execFileSync('taskset', [
        '-a',
        '-c',
        '-p',
        '1',
        redis
          .cli('INFO', 'server')
          .find(line => line.startsWith('process_id'))
          ?.split(':')[1]
          ?.trim() ?? '',
      ])
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
