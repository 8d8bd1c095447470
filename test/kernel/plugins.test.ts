// Tests plugin hooks, setup order and plugins enabled per route.
import { expect } from 'chai'
import { definePlugin } from '../../core/internal.ts'
import { hello, plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const call = (url: string) => modern(url, 'tools/call', { name: 'hello' })

describe('Plugin hooks', () => {
  const trace: string[] = []
  const at = (point: 'onRequest' | 'authenticate' | 'authorize') =>
    plugin(host => {
      host[point](async (_ctx, next) => {
        trace.push(point)
        await next()
        trace.push(`${point} done`)
      })
    })
  const around = plugin(host =>
    host.onCall(async (_call, next) => {
      trace.push('onCall')
      return next()
    }),
  )
  const points = [
    ['authorize', at('authorize')],
    ['onCall', around],
    ['authenticate', at('authenticate')],
    ['onRequest', at('onRequest')],
  ] as const

  it('run in the order onRequest, authenticate, authorize, onCall, regardless of config order', async () => {
    for (const order of [points, points.toReversed()]) {
      trace.length = 0
      const { url } = await startHost(withPlugins(Object.fromEntries(order)))
      expect((await call(url)).status).to.equal(200)
      const inward = ['onRequest', 'authenticate', 'authorize']
      const outward = inward.toReversed().map(point => `${point} done`)
      expect(trace.filter(step => step !== 'onCall')).to.deep.equal([...inward, ...outward])
      expect(trace.indexOf('onCall')).to.be.greaterThan(trace.indexOf('authorize'))
    }
  })

  it('wrap a call in setup order, with the first plugin outermost', async () => {
    const wrap = (name: string) =>
      plugin(host =>
        host.onCall(async (_call, next) => {
          trace.push(name)
          const result = await next()
          trace.push(`${name} saw ${JSON.stringify(result)}`)
          return result
        }),
      )
    trace.length = 0
    const { url } = await startHost(withPlugins({ outer: wrap('outer'), inner: wrap('inner') }))
    await call(url)
    const result = '{"content":[{"type":"text","text":"hello"}]}'
    expect(trace).to.deep.equal(['outer', 'inner', `inner saw ${result}`, `outer saw ${result}`])
  })

  it('provide user, route and method of the call to `onCall`', async () => {
    const seen: unknown[] = []
    const look = plugin(host =>
      host.onCall((call, next) => {
        seen.push([call.method, call.params['name'], call.user?.subject, call.offer.route.path])
        return next()
      }),
    )
    const who = plugin(host =>
      host.authenticate((ctx, next) => {
        ctx.state.user = { subject: 'ann', scopes: [], roles: [], claims: {} }
        return next()
      }),
    )
    const { url } = await startHost(withPlugins({ look, who }))
    await call(url)
    expect(seen).to.deep.equal([['tools/call', 'hello', 'ann', '/']])
  })
})

describe('Plugin setup order', () => {
  const order: string[] = []
  const named = (name: string, contract: { needs?: string[]; provides?: string[] }) =>
    plugin(() => void order.push(name), contract)
  beforeEach(() => {
    order.length = 0
  })

  it('places providers before dependents and otherwise keeps config order', async () => {
    await startHost(
      withPlugins({
        first: named('first', {}),
        limits: named('limits', { needs: ['user', 'address'] }),
        auth: named('auth', { provides: ['user'], needs: ['keys'] }),
        proxy: named('proxy', { provides: ['address'] }),
        keys: named('keys', { provides: ['keys'] }),
      }),
    )
    expect(order).to.deep.equal(['first', 'keys', 'auth', 'proxy', 'limits'])
  })

  it('stops startup for an unmet dependency and names the plugin', async () => {
    await expectStopped(withPlugins({ limits: named('limits', { needs: ['user'] }) }), /plugins\.limits.*"user"/)
  })

  it('stops startup for circular dependencies', async () => {
    const one = named('one', { needs: ['b'], provides: ['a'] })
    const other = named('other', { needs: ['a'], provides: ['b'] })
    await expectStopped(withPlugins({ one, other }), /circular.*one.*other/)
  })
})

describe('Plugins per route', () => {
  interface Options {
    size?: number
    color?: string
    shape?: string
  }
  const setUps: Array<[readonly string[], Options]> = []
  const tinted = definePlugin<Options>({
    options: {
      type: 'object',
      additionalProperties: false,
      properties: {
        size: { type: 'integer', default: 1 },
        color: { type: 'string', default: 'red' },
        shape: { type: 'string' },
      },
    },
    setup(host, options) {
      setUps.push([host.routes.map(({ path }) => path), options])
      host.onRequest((ctx, next) => {
        ctx.set('X-Tint', `${options.size} ${options.color} ${options.shape}`)
        return next()
      })
    },
  })
  const tintOf = async (url: string) => (await call(url)).headers.get('x-tint')

  it('can be disabled by a route, with route options over plugin options over defaults', async () => {
    setUps.length = 0
    const { url } = await startHost({
      toolsets: { all: [hello] },
      routes: {
        '/': { toolsets: 'all' },
        '/same': { toolsets: 'all' },
        '/off': { toolsets: 'all', plugins: { tint: false } },
        '/own': { toolsets: 'all', plugins: { tint: { color: 'blue' } } },
      },
      plugins: { 'transport-streamable': {}, tint: tinted({ size: 5, shape: 'round' }) },
    })
    expect(setUps).to.deep.equal([
      [['/', '/same'], { size: 5, color: 'red', shape: 'round' }],
      [['/own'], { size: 5, color: 'blue', shape: 'round' }],
    ])
    expect(await tintOf(url)).to.equal('5 red round')
    expect(await tintOf(`${url}/off`)).to.equal(null)
    expect(await tintOf(`${url}/own`)).to.equal('5 blue round')
  })

  it('can be enabled for one route only', async () => {
    const { url } = await startHost({
      toolsets: { all: [hello] },
      routes: { '/': { toolsets: 'all' }, '/own': { toolsets: 'all', plugins: { tint: tinted({ size: 2 }) } } },
    })
    expect([await tintOf(url), await tintOf(`${url}/own`)]).to.deep.equal([null, '2 red undefined'])
  })

  it('can be disabled everywhere in the config', async () => {
    const { url } = await startHost(withPlugins({ health: false }))
    expect((await fetch(`${url}/health`)).status).to.equal(404)
  })
})
