// Tests a rolling restart of three nodes behind a load balancer under load, without failed requests.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, type RedisServer, startRedis, stopRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'
import { type StartedHost, startHost, stopHosts, type TestConfig } from '../support/start-host.ts'
import { startLoad, stopLoads } from '../support/steady-load.ts'
import { startTcpBalancer, type TcpBalancer } from '../support/tcp-balancer.ts'

const quick = defineTool({ name: 'quick', handler: () => 'quick' })
/** Something runs at every moment. */
const slow = defineTool({
  name: 'slow',
  handler: () => new Promise<string>(resolve => setTimeout(resolve, 120, 'slow')),
})
const toolsets = { all: [quick, slow] }

let nodes: StartedHost[]
let balancer: TcpBalancer

async function startNodes(config: TestConfig) {
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const configs = ports.map(port => ({ ...config, http: { port, keepAliveTimeout: 1_000 } }))
  nodes = await Promise.all(configs.map(each => startHost(each)))
  balancer = await startTcpBalancer(ports)
  return async function restart(place: number) {
    const before = balancer.passedOver
    await nodes[place]?.host.close()
    // The node stays down until a connection met it.
    await eventually('a connection that passes over the node', () => balancer.passedOver > before)
    nodes[place] = await startHost(configs[place] as TestConfig)
  }
}

after(stopLoads)
afterEach(async () => {
  await balancer?.stop()
  await stopHosts()
})

async function roll(restart: (place: number) => Promise<void>, loads: ReadonlyArray<ReturnType<typeof startLoad>>) {
  for (const place of nodes.keys()) {
    await Promise.all(loads.map(load => load.answers(10)))
    await restart(place)
  }
  await Promise.all(loads.map(load => load.answers(10)))
  const reports = await Promise.all(loads.map(load => load.stop()))
  return reports.map(({ failures }) => failures)
}

const NO_FAILURES = [[], []]

describe('Rolling restart under load', () => {
  it('loses no request on stateless routes', async () => {
    const restart = await startNodes({ toolsets, routes: { '/': { toolsets: 'all', stateless: true } } })
    const loads = [startLoad(`${balancer.url}/`, 'quick'), startLoad(`${balancer.url}/`, 'slow')]
    expect(await roll(restart, loads)).to.deep.equal(NO_FAILURES)
  })

  describe('with shared sessions', () => {
    let redis: RedisServer
    before(async function () {
      needsRedis(this)
      redis = await startRedis()
    })
    after(stopRedis)

    it('loses no request and no session', async () => {
      const restart = await startNodes({
        toolsets,
        routes: { '/': { toolsets: 'all' } },
        redis: { url: redis.url },
        plugins: { 'transport-streamable': {}, 'cluster-redis': {} },
      })
      const session = await openSession(`${balancer.url}/`)
      const loads = ['quick', 'slow'].map(tool => startLoad(`${balancer.url}/`, tool, { session: session.id }))
      expect(await roll(restart, loads)).to.deep.equal(NO_FAILURES)
      expect((await session.request('ping')).status).to.equal(200)
    })
  })
})
