// Health probe endpoints: paths, HTTP methods, caching, liveness, readiness and shutdown.
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { plugin, withPlugins } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

afterEach(stopHosts)

const PAGES = ['/livez', '/readyz', '/health']

async function read(url: string, init?: RequestInit) {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}

describe('health: endpoints', () => {
  it('answer GET, and HEAD without a body, and are never cached', async () => {
    let isWell = true
    const checks = plugin(host => host.readiness('database', () => isWell || 'it is away'))
    const { url } = await startHost(withPlugins({ checks, health: {} }))
    for (const statuses of [
      [200, 200, 200],
      [200, 503, 503],
    ]) {
      for (const [index, path] of PAGES.entries()) {
        const got = await read(url + path)
        const head = await read(url + path, { method: 'HEAD' })
        expect([got.status, head.status], path).to.deep.equal([statuses[index], statuses[index]])
        expect(head.text).to.equal('')
        for (const name of ['cache-control', 'content-type', 'content-length']) {
          expect(head.headers.get(name), `${name} of ${path}`).to.equal(got.headers.get(name)).and.not.equal(null)
        }
        expect(got.headers.get('cache-control')).to.equal('no-store')
      }
      isWell = false
    }
  })

  it('answer other methods with 405 and Allow', async () => {
    const { url } = await startHost(withPlugins({ health: {} }))
    for (const path of PAGES) {
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const { status, headers } = await read(url + path, { method })
        expect([status, headers.get('allow')], `${method} ${path}`).to.deep.equal([405, 'GET, HEAD'])
      }
    }
  })

  it('use configured paths, and are absent where the path is false', async () => {
    const moved = { path: '/status', live: '/up', ready: '/in' }
    const { url } = await startHost(withPlugins({ health: moved }))
    for (const path of Object.values(moved)) expect((await read(url + path)).status, path).to.equal(200)
    for (const path of PAGES) expect((await read(url + path)).status, path).to.equal(404)
    const off = await startHost(withPlugins({ health: { path: false, live: false } }))
    expect((await read(`${off.url}/readyz`)).status).to.equal(200)
    for (const path of ['/livez', '/health']) expect((await read(off.url + path)).status, path).to.equal(404)
  })

  it('yield default paths to existing endpoints, but not configured paths', async () => {
    const own = plugin(host =>
      host.endpoint('/livez', {
        public: true,
        methods: {
          GET(ctx) {
            ctx.body = '"own"'
          },
        },
      }),
    )
    const { url } = await startHost(withPlugins({ own, health: { path: '/readyz' } }))
    expect((await read(`${url}/livez`)).json).to.equal('own')
    expect((await read(`${url}/readyz`)).json).to.include.keys('server', 'routes')
    const clash = startHost(withPlugins({ own, health: { path: '/livez' } }))
    expect(await clash.then(String, error => error.message)).to.include('/livez')
  })

  it('answer liveness without running readiness conditions', async () => {
    let asked = 0
    const counts = plugin(host => host.readiness('counted', () => ++asked > 0))
    const { url } = await startHost(withPlugins({ counts, health: {} }))
    expect((await read(`${url}/livez`)).json).to.deep.equal({ status: 'live' })
    expect(asked).to.equal(0)
    await read(`${url}/readyz`)
    expect(asked).to.equal(1)
  })
})

describe('health: shutdown', () => {
  it('stays alive but not ready, with the cause, on a kept-alive connection', async () => {
    const { tool, call } = createPuppet()
    const config = { toolsets: { all: [tool] }, routes: { '/': { toolsets: 'all' } } }
    const { url, host } = await startHost({ ...config, plugins: { 'transport-streamable': {}, health: {} } })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    async function probe(path: string) {
      const [answer] = (await once(get(url + path, { agent }), 'response')) as [IncomingMessage]
      const { localPort: port } = answer.socket
      const chunks = await answer.toArray()
      return { status: answer.statusCode, port, json: JSON.parse(Buffer.concat(chunks).toString()) }
    }
    const before = await probe('/readyz')
    expect([before.status, before.json.checks]).to.deep.equal([200, { accepting: true }])
    const running = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'kept' } })
    const { finish } = await call('kept')
    const closing = host.close({ grace: 5_000 })
    const after = await probe('/readyz')
    expect(after.port).to.equal(before.port)
    expect(after.status).to.equal(503)
    expect(after.json).to.deep.equal({
      status: 'not ready',
      checks: { accepting: false },
      reasons: { accepting: 'the host is closing' },
    })
    expect(await probe('/livez')).to.deep.include({ status: 200, json: { status: 'live' } })
    finish('')
    await running
    await closing
    agent.destroy()
  })
})

describe('health: readiness condition', () => {
  it('times out within seconds if it never answers, and others are still reported', async () => {
    let asked = 0
    const checks = plugin(host => {
      host.readiness('hangs', () => {
        asked++
        return new Promise(() => undefined)
      })
      host.readiness('well', () => true)
    })
    const clock = createManualClock()
    const { url } = await startHost(withPlugins({ checks, health: {} }), undefined, { clock })
    const reading = read(`${url}/readyz`)
    await eventually('the check runs', () => asked === 1)
    await clock.advance(2_000)
    const { status, json } = await reading
    expect(status).to.equal(503)
    expect(json.checks).to.deep.equal({ accepting: true, hangs: false, well: true })
    expect(json.reasons).to.deep.equal({ hangs: 'no response within 2 s' })
    // What the first one began may still run: no probe begins another.
    const again = await Promise.all([read(`${url}/readyz`), read(`${url}/readyz`)])
    expect(again.map(answer => answer.json.reasons)).to.deep.equal([json.reasons, json.reasons])
    expect(asked).to.equal(1)
  })

  it('runs once for concurrent requests and again for later ones', async () => {
    const gates: Array<ReturnType<typeof createGate>> = []
    let asked = 0
    const checks = plugin(host =>
      host.readiness('slow', async () => {
        asked++
        const gate = createGate()
        gates.push(gate)
        await gate.opened
        return asked === 1
      }),
    )
    let begun = 0
    const counts = plugin(host =>
      host.use((_, next) => {
        begun++
        return next()
      }),
    )
    const { url } = await startHost(withPlugins({ checks, counts, health: {} }))
    const probes = Array.from({ length: 200 }, () => read(`${url}/readyz`))
    await eventually(
      '200 probes',
      () => begun,
      count => count === 200,
    )
    gates[0]?.open(undefined)
    const statuses = (await Promise.all(probes)).map(({ status }) => status)
    expect([new Set(statuses), asked]).to.deep.equal([new Set([200]), 1])
    const later = read(`${url}/readyz`)
    await eventually(
      'another asking',
      () => gates.length,
      count => count === 2,
    )
    gates[1]?.open(undefined)
    expect((await later).status).to.equal(503)
  })

  it('that throws is logged once until it recovers, without the thrown error', async () => {
    let fault: Error | undefined = new Error('password=hunter2')
    const checks = plugin(host =>
      host.readiness('broken', () => {
        if (fault) throw fault
        return true
      }),
    )
    const { url, log } = await startHost(withPlugins({ checks, health: {} }))
    const errors = () => log.filter(({ level }) => level === 'error').map(({ message }) => message)
    for (let times = 0; times < 3; times++) {
      const { status, json, text } = await read(`${url}/readyz`)
      expect([status, json.reasons]).to.deep.equal([503, { broken: 'the check failed; see the log' }])
      expect(text).to.not.include('hunter2')
    }
    expect(errors()).to.deep.equal(['cannot check a readiness condition'])
    fault = undefined
    expect((await read(`${url}/readyz`)).status).to.equal(200)
    fault = new Error('again')
    await read(`${url}/readyz`)
    expect(errors()).to.have.length(2)
  })
})
