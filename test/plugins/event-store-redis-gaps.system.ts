// A stream whose store refused a message: who is there gets it, who comes back is told of the gap.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { eventStoreRedis } from '../../plugins/cluster-redis/index.ts'
import { type RedisConnection, redisConnection } from '../../plugins/families/redis/index.ts'
import { eventually } from '../support/eventually.ts'
import { createGate, type Gate } from '../support/gate.ts'
import { stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { type LogLine, startHost } from '../support/start-host.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

/** Milliseconds until a message is given up. */
const PATIENCE = 300

let redis: RedisServer
let url: string
let log: readonly LogLine[]
let connection: RedisConnection
/** Each notification of `talk` waits for one of these; the next is made as it is taken. */
let gates: Gate[] = []

const talk = defineTool({
  name: 'talk',
  async handler(_args, { progress }) {
    for (const [index, gate] of gates.entries()) {
      await gate.opened
      progress(index + 1)
    }
    return 'done'
  },
})

/** The plugin, and the connection that it uses. */
function listening() {
  const { plugin } = eventStoreRedis
  const setup = (...[host, options]: Parameters<typeof plugin.setup>) => {
    connection = redisConnection(host, options)
    return plugin.setup(host, options)
  }
  return definePlugin({ ...plugin, setup })({ commandTimeout: PATIENCE })
}

before(async function () {
  needsRedis(this)
  redis = await startRedis()
  const started = await startHost({
    redis: { url: redis.url },
    toolsets: { talk: [talk] },
    routes: { '/': { toolsets: 'talk' } },
    plugins: { 'transport-streamable': {}, 'event-store-redis': listening() },
  })
  ;({ url, log } = started)
})
beforeEach(() => {
  gates = [createGate(), createGate(), createGate()]
})
after(stopHostsAndRedis)

const progress = (events: ReadonlyArray<{ message: { params?: { progress?: number }; result?: unknown } }>) =>
  events.flatMap(({ message }) => (message === undefined ? [] : (message.params?.progress ?? 'answer')))

/** Redis hangs until the message is given up. */
async function refuse(gate: Gate | undefined) {
  const refusals = () => log.filter(({ code }) => code === 'MH1416').length
  const before = refusals()
  redis.pause()
  gate?.open()
  await eventually('the message is given up', () => refusals() > before)
  redis.resume()
  await whenHealthy(connection)
}

describe('Event store in Redis: refused append', () => {
  it('delivers each message once to a connected reader', async () => {
    const session = await openStreamingSession(url)
    const stream = await session.call('talk')
    gates[0]?.open()
    await refuse(gates[1])
    gates[2]?.open()
    expect(progress(await stream.rest())).to.deep.equal([1, 2, 3, 'answer'])
  })

  it('reports the gap on resumption with Last-Event-ID', async () => {
    const session = await openStreamingSession(url)
    const stream = await session.call('talk')
    gates[0]?.open()
    const [seen] = (await stream.until(({ message }) => message !== undefined)).slice(-1)
    stream.drop()
    await refuse(gates[1])
    gates[2]?.open()
    const again = await session.get(seen?.id)
    expect(again.status).to.equal(404)
    expect(await again.text()).to.match(/Last-Event-ID/)
  })
})
