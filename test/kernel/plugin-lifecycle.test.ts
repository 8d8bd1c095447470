// Tests the plugin lifecycle: setup, starting and closing tasks, readiness checks and registration errors.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import Koa from 'koa'
import { createHost } from '../../core/create-host.ts'
import type { InternalHost } from '../../core/internal.ts'
import { type ConfiguredPlugin, StartError } from '../../core/plugin.ts'
import { hello, plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped, startFailure } from '../fixtures/start-failure.ts'
import { createGate } from '../support/gate.ts'
import { createTestLog, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const SERVER = { name: 'test-host', version: '1.2.3' }

describe('Plugin errors at startup', () => {
  it('stop startup with plugin name and reason if setup throws', async () => {
    const breaks = plugin(() => {
      throw new Error('the disk is full')
    })
    await expectStopped(withPlugins({ breaks }), /plugins\.breaks.*the disk is full/, undefined, 1)
    const rejects = plugin(() => Promise.reject(new Error('no answer')))
    await expectStopped(withPlugins({ rejects }), /plugins\.rejects.*no answer/, undefined, 1)
  })

  it('stop startup before listening if a starting task throws', async () => {
    const later: string[] = []
    const breaks = plugin(host => host.onStart(() => Promise.reject(new Error('no database'))))
    const next = plugin(host => host.onStart(() => void later.push('started')))
    await expectStopped(withPlugins({ breaks, next }), /plugins\.breaks.*no database/, undefined, 1)
    expect(later).to.deep.equal([])
  })
})

describe('Starting and closing tasks', () => {
  const order: string[] = []
  const task = (name: string) =>
    plugin(host => {
      order.push(`${name} set up`)
      host.onStart(async () => void order.push(`${name} starts`))
      host.onClose(async () => void order.push(`${name} closes`))
    })

  it('start after all setups in setup order and close in reverse order', async () => {
    order.length = 0
    const { host } = await startHost(withPlugins({ one: task('one'), two: task('two') }))
    expect(order).to.deep.equal(['one set up', 'two set up', 'one starts', 'two starts'])
    order.length = 0
    await host.close()
    expect(order).to.deep.equal(['two closes', 'one closes'])
    await host.close()
    expect(order, 'a second close closes nothing again').to.deep.equal(['two closes', 'one closes'])
  })

  it('run sequentially, and the host listens after the last', async () => {
    const gate = createGate()
    const slow = plugin(host => host.onStart(() => gate.opened))
    const after = plugin(host => host.onStart(() => void order.push('after')))
    order.length = 0
    const config = { server: SERVER, http: { port: 0 }, ...withPlugins({ slow, after }) }
    const host = await createHost(config, { log: createTestLog() })
    const listening = host.listen()
    expect([order, host.url]).to.deep.equal([[], ''])
    gate.open()
    await listening
    expect(order).to.deep.equal(['after'])
    expect(host.url).to.match(/^http:\/\/127\.0\.0\.1:\d+$/)
    await host.close()
  })

  it('close all plugins if one fails, and log the failing plugin', async () => {
    order.length = 0
    const breaks = plugin(host => host.onClose(() => Promise.reject(new Error('stuck'))))
    const { host, log } = await startHost(withPlugins({ one: task('one'), breaks }))
    await host.close()
    expect(order.at(-1)).to.equal('one closes')
    expect(log.filter(({ level }) => level === 'error').map(({ plugin }) => plugin)).to.deep.equal(['breaks'])
  })

  it('close if the host fails to listen', async () => {
    const taken: Server = createServer()
    await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    order.length = 0
    const config = { server: SERVER, ...withPlugins({ one: task('one') }), http: { port } }
    const host = await createHost(config, { log: createTestLog() })
    const [outcome] = await Promise.allSettled([host.listen()])
    expect(outcome.status === 'rejected' && outcome.reason.message).to.contain(`port ${port} of 127.0.0.1 is in use`)
    await host.close()
    expect(order).to.deep.equal(['one set up', 'one starts', 'one closes'])
    await new Promise(resolve => taken.close(resolve))
  })
})

describe('Readiness checks', () => {
  const health = async (url: string) => {
    const response = await fetch(`${url}/health`)
    const { checks } = (await response.json()) as { checks: Record<string, boolean> }
    return { status: response.status, checks }
  }

  it('combine the checks of all plugins by name on the health endpoint', async () => {
    let up = true
    const checks = plugin(host => {
      host.readiness('database', async () => up)
      host.readiness('disk', () => true)
    })
    const { url } = await startHost(withPlugins({ checks, health: {} }))
    const good = await health(url)
    expect([good.status, good.checks]).to.deep.equal([200, { accepting: true, database: true, disk: true }])
    up = false
    const bad = await health(url)
    expect([bad.status, bad.checks]).to.deep.equal([503, { accepting: true, database: false, disk: true }])
  })

  it('report not ready if a check throws, without its message', async () => {
    const checks = plugin(host => host.readiness('broker', () => Promise.reject(new Error('password wrong'))))
    const { url } = await startHost(withPlugins({ checks, health: {} }))
    const response = await fetch(`${url}/health`)
    expect(response.status).to.equal(503)
    expect(await response.text())
      .to.contain('"broker":false')
      .and.not.to.contain('password')
  })
})

describe('Startup fails if no plugin provides a required feature', () => {
  const asks = (route: object, plugins = {}) => ({
    ...withPlugins(plugins),
    routes: { '/': { toolsets: 'all', ...route } },
  })
  const decides = (...provides: string[]) => plugin(() => undefined, { provides })

  it('for `authorize`', async () => {
    await expectStopped(asks({ authorize: true }), /^routes\['\/'\]\.authorize: .*auth-jwt.*auth-introspection$/)
    await startHost(asks({ authorize: true }, { auth: decides('authorize') }))
    const off = { authorize: true, plugins: { auth: false } }
    await expectStopped(asks(off, { auth: decides('authorize') }), "routes['/'].authorize: ")
  })

  it('for `cors`', async () => {
    await expectStopped(asks({ cors: 'browser' }), /^routes\['\/'\]\.cors: .* cors$/)
    const off = { cors: 'browser', plugins: { origins: false } }
    await expectStopped(asks(off, { origins: decides('cors') }), "routes['/'].cors: ")
  })

  it('for `access`', async () => {
    const config = (plugins: Record<string, ConfiguredPlugin>, route = {}) => ({
      ...withPlugins(plugins),
      toolsets: { all: [{ ...hello, access: 'admin' }] },
      routes: { '/': { toolsets: 'all', ...route } },
    })
    await expectStopped(config({}), /^toolset "all": tool "hello".*"admin".*tool-policy$/)
    await startHost(config({ policy: decides('access') }))
    const off = config({ policy: decides('access') }, { plugins: { policy: false } })
    await expectStopped(off, /routes\['\/'\].*"hello".*"admin"/)
  })
})

describe('Late plugin registration', () => {
  const late: Record<string, (host: InternalHost) => unknown> = {
    use: host => host.use((_ctx, next) => next()),
    onRequest: host => host.onRequest((_ctx, next) => next()),
    endpoint: host => host.endpoint('/late', { methods: {} }),
    mount: host => host.mount('/late', (_ctx, next) => next()),
    onCall: host => host.onCall((_call, next) => next()),
    method: host => host.method('acme/late', () => ({})),
    toolset: host => host.toolset([]),
    extension: host => host.extension('com.example/late', {}),
  }
  for (const [name, register] of Object.entries(late)) {
    it(`stops startup if a starting task calls ${name}`, () => {
      const tardy = plugin(host => host.onStart(() => void register(host)))
      return expectStopped(withPlugins({ tardy }), `plugins.tardy: host.${name}()`)
    })
  }

  it('throws while the host serves', async () => {
    let later: InternalHost | undefined
    const served = plugin(host => {
      later = host
    })
    await startHost(withPlugins({ served }))
    expect(() => later?.use((_ctx, next) => next())).to.throw(StartError, 'host.use()')
    expect(() => later?.onStart(() => undefined)).to.throw(StartError, 'host.onStart()')
  })
})

describe('Plugin registration checks', () => {
  const wrong: Record<string, readonly [(host: InternalHost) => unknown, string]> = {
    'no middleware': [host => host.use(undefined as never), 'host.use()'],
    'an app as middleware': [host => host.use(new Koa() as never), 'host.mount(path, app)'],
    'an app at the edge': [host => host.onRequest(new Koa() as never), 'host.mount(path, app)'],
    'no observer': [host => host.onFinish({} as never), 'host.onFinish()'],
    'no app': [host => host.mount('/m', undefined as never), "mount('/m')"],
    'an unknown body': [host => host.endpoint('/e', { body: 'xml' as never, methods: {} }), "endpoint('/e')"],
    'an unknown body on a route': [
      host => host.endpoint('/e', () => ({ body: 'xml' as never, methods: {} })),
      "endpoint('/e')",
    ],
    'no methods': [host => host.endpoint('/e', {} as never), "endpoint('/e')"],
    'no handler': [host => host.endpoint('/e', { methods: { GET: 'page' as never } }), "endpoint('/e')"],
    'half a path': [host => host.endpoint('e', { methods: {} }), "endpoint('e')"],
  }
  for (const [name, [register, words]] of Object.entries(wrong)) {
    it(`stop startup with the plugin name: ${name}`, async () => {
      const error = await startFailure(withPlugins({ wrong: plugin(host => void register(host)) }))
      expect(error).to.be.instanceOf(StartError)
      expect(error.message).to.contain('plugins.wrong').and.to.contain(words)
    })
  }
})
