// Tests additions by plugins: endpoints, methods, slots and definitions.
import { expect } from 'chai'
import type { InternalHost } from '../../core/internal.ts'
import type { ServedToolset } from '../../core/plugin.ts'
import type { ChangeBus } from '../../core/transport.ts'
import { hello, plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

describe('Plugin additions', () => {
  const answer = (text: string) => ({
    public: true,
    methods: {
      GET(ctx: { body: unknown }) {
        ctx.body = text
      },
    },
  })

  it('read protocol versions of a transport at startup only', async () => {
    let asked = 0
    const transport = plugin(host =>
      host.revisions(() => {
        asked++
        return ['2025-11-25']
      }),
    )
    const { url } = await startHost(withPlugins({ transport }))
    await modern(url, 'tools/list')
    const before = asked
    for (let index = 0; index < 10; index++) await modern(url, 'tools/list')
    expect(asked - before).to.equal(0)
  })

  it('serve endpoints at fixed and route paths, behind route middleware unless public', async () => {
    const pages = plugin(host => {
      host.onRequest((ctx, next) => {
        ctx.set('X-Edge', 'passed')
        return next()
      })
      host.endpoint('/fixed', answer('fixed'))
      host.endpoint('/public', route => answer(`public of ${route.path}`))
      host.endpoint('/private', route => ({ ...answer(`private of ${route.path}`), public: false }))
      host.endpoint('/some', route => (route.path === '/a' ? answer('only a') : undefined))
    })
    const routes = { '/': { toolsets: 'all' }, '/a': { toolsets: 'all' } }
    const { url } = await startHost(withPlugins({ pages }, { routes }))
    const get = async (path: string) => {
      const response = await fetch(url + path)
      return [response.status, response.status === 200 ? await response.text() : '', response.headers.get('x-edge')]
    }
    expect(await get('/fixed')).to.deep.equal([200, 'fixed', null])
    expect(await get('/public')).to.deep.equal([200, 'public of /', null])
    expect(await get('/a/public')).to.deep.equal([200, 'public of /a', null])
    expect(await get('/a/private')).to.deep.equal([200, 'private of /a', 'passed'])
    expect([await get('/some'), await get('/a/some')]).to.deep.equal([
      [404, '', 'passed'],
      [200, 'only a', null],
    ])
    const posted = await fetch(`${url}/fixed`, { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET'])
  })

  it('stop startup if two endpoints share a path', async () => {
    const page = () => plugin(host => host.endpoint('/page', answer('page')))
    await expectStopped(withPlugins({ one: page(), other: page() }), 'plugins.one and plugins.other both serve /page; ')
    const onRoute = plugin(host => host.endpoint('/', answer('home')))
    await expectStopped(
      withPlugins({ onRoute }),
      "plugins.onRoute and plugins.transport-streamable both serve routes['/']; ",
    )
  })

  it('add a method but cannot replace an existing one', async () => {
    const greets = plugin(host => host.method('acme/greet', ({ params }) => ({ greeting: `Hi ${params['name']}` })))
    const { url } = await startHost(withPlugins({ greets }))
    const { result } = (await modern(url, 'acme/greet', { name: 'Ann' })).message
    expect(result).to.include({ greeting: 'Hi Ann', resultType: 'complete' })
    const takes = (method: string) => plugin(host => host.method(method, () => ({})))
    await expectStopped(withPlugins({ takes: takes('tools/call') }), /plugins\.takes.*"tools\/call"/, undefined, 1)
    await expectStopped(
      withPlugins({ one: takes('a/b'), two: takes('a/b') }),
      /plugins\.two.*"a\/b" is handled/,
      undefined,
      2,
    )
  })

  it('fill a slot once; a second provider stops startup with both names', async () => {
    const bus: ChangeBus = { publish: () => undefined, subscribe: () => () => undefined }
    const filled: boolean[] = []
    const fills = () => plugin(host => host.provide('changeBus', bus))
    const asks = plugin(host =>
      host.onReady(() => void filled.push(...host.routes.map(route => host.services.slot('changeBus', route) === bus))),
    )
    await startHost(withPlugins({ asks, fills: fills() }))
    expect(filled).to.deep.equal([true])
    await expectStopped(
      withPlugins({ one: fills(), two: fills() }),
      'plugins.two: one already provides the changeBus of routes',
    )
  })

  it('fill a slot per route and keep the default elsewhere', async () => {
    const bus = (): ChangeBus => ({ publish: () => undefined, subscribe: () => () => undefined })
    const [left, right] = [bus(), bus()]
    const found: Record<string, unknown> = {}
    const sees = plugin(host => {
      host.onReady(() => {
        const { slot } = host.services
        for (const route of host.routes) found[route.path] = slot('changeBus', route)
      })
    })
    const off = false as const
    await startHost(
      withPlugins(
        {
          left: plugin(host => host.provide('changeBus', left)),
          right: plugin(host => host.provide('changeBus', right)),
          sees,
        },
        {
          routes: {
            '/left': { toolsets: 'all', plugins: { right: off } },
            '/right': { toolsets: 'all', plugins: { left: off } },
            '/neither': { toolsets: 'all', plugins: { left: off, right: off } },
          },
        },
      ),
    )
    expect([found['/left'] === left, found['/right'] === right]).to.deep.equal([true, true])
    expect([left, right]).to.not.include(found['/neither'] as ChangeBus)
    expect(found['/neither']).to.be.an('object')
  })

  it('cannot fill a slot after the services are built', async () => {
    const late = plugin(host => {
      host.onReady(() => {
        const { slot } = host.services
        for (const route of host.routes) host.provide('changeBus', slot('changeBus', route))
      })
    })
    await expectStopped(
      withPlugins({ late }),
      /plugins\.late.*host\.provide\('changeBus'\) must be called in setup/,
      undefined,
      1,
    )
  })

  it('list contributed definitions, except on routes where the plugin is off', async () => {
    const contributes = plugin(host => host.toolset([{ ...hello, name: 'contributed' }]))
    const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'all', plugins: { contributes: false as const } } }
    const { url } = await startHost(withPlugins({ contributes }, { routes }))
    const names = async (at: string) =>
      (await modern(at, 'tools/list')).message.result.tools.map(({ name }: { name: string }) => name)
    expect(await names(url)).to.deep.equal(['contributed', 'hello'])
    expect(await names(`${url}/off`)).to.deep.equal(['hello'])
    const { error } = (await modern(`${url}/off`, 'tools/call', { name: 'contributed' })).message
    expect(error.code).to.equal(-32602)
  })

  it('are replaced atomically at run time', async () => {
    const named = (...names: string[]) => names.map(name => ({ ...hello, name }))
    let exchange: ServedToolset['replace'] = () => undefined
    const exchanges = plugin(host => {
      const served = host.toolset(named('one', 'two'))
      expect(() => served.replace([]), 'before the host is built').to.throw('replace()')
      host.toolset(named('lasting'))
      exchange = served.replace
    })
    const { url, host } = await startHost(withPlugins({ exchanges }))
    const names = async () =>
      (await modern(url, 'tools/list')).message.result.tools.map(({ name }: { name: string }) => name)
    expect(await names()).to.deep.equal(['hello', 'lasting', 'one', 'two'])
    exchange(named('two', 'three'))
    expect(await names()).to.deep.equal(['hello', 'lasting', 'three', 'two'])
    host.runtime.tools.add({ ...hello, name: 'added' })
    for (const twin of ['hello', 'lasting', 'four', 'added']) {
      exchange(named('four', twin))
      expect(await names()).to.deep.equal(['added', 'four', 'hello', 'lasting'])
    }
    exchange([...named('three'), { ...hello, name: 'four', timeout: 'long' }])
    expect(await names()).to.deep.equal(['added', 'hello', 'lasting', 'three'])
    exchange([])
    expect(await names()).to.deep.equal(['added', 'hello', 'lasting'])
    exchange(named('one'))
    expect(await names()).to.deep.equal(['added', 'hello', 'lasting', 'one'])
  })

  it('cannot contribute a name that a route already has', async () => {
    const contributes = plugin(host => host.toolset([{ ...hello }]))
    await expectStopped(withPlugins({ contributes }), /two tools are called "hello".*"all".*contributes/)
  })

  it('make all lists private with variesByCaller', async () => {
    const scopeOf = async (url: string) => (await modern(url, 'tools/list')).message.result.cacheScope
    const varies = plugin((host: InternalHost) => host.variesByCaller())
    const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'all', plugins: { varies: false as const } } }
    const { url } = await startHost(withPlugins({ varies }, { routes }))
    expect([await scopeOf(url), await scopeOf(`${url}/off`)]).to.deep.equal(['private', 'public'])
    expect((await modern(url, 'server/discover')).message.result.cacheScope).to.equal('private')
  })
})
