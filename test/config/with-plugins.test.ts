// Tests plugins that add tool keys, members of `ctx` and route keys, with their types.
import { expect } from 'chai'
import { type Config, withPlugins } from '../../core/index.ts'
import { definePlugin, type PluginHost } from '../../core/plugin.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

interface Account {
  readonly cents: number
}

const NO_OPTIONS = { type: 'object', additionalProperties: false, properties: {} } as const

const billing = definePlugin({
  options: {
    type: 'object',
    additionalProperties: false,
    properties: { free: { type: 'integer', default: 10 } },
  },
  toolKeys: { price: { type: 'integer', minimum: 1 } },
  context: { account: undefined as Account | undefined },
  routeKey: 'billing',
  setup(host, { free }) {
    let used = 0
    host.toolKey<number>('price', {
      onCall(_call, price, run) {
        used += price
        return run()
      },
    })
    host.context('account', () => ({ cents: free - used }))
  },
})

const tenants = definePlugin({
  options: NO_OPTIONS,
  context: { tenant: (): string => 'none' },
  setup: host => host.context('tenant', call => () => call.offer.params['tenant'] ?? 'unnamed'),
})

const { defineTool, defineConfig } = withPlugins(billing, tenants)

const render = defineTool({
  name: 'render',
  price: 4,
  input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  handler: ({ n }, { account, tenant }) => `${n.toFixed(1)} ${tenant()} ${account?.cents}`,
})

const textOf = async (url: string) =>
  (await modern(url, 'tools/call', { name: 'render', arguments: { n: 1 } })).message.result.content[0].text

describe('Keys and context members of a plugin', () => {
  after(stopHosts)

  const config = (routes: Config['routes'], plugins: Config['plugins'] = {}) => ({
    toolsets: { all: [render] },
    routes,
    plugins: { 'transport-streamable': {}, billing: billing(), tenants: tenants(), ...plugins },
  })

  it('are typed by withPlugins', async () => {
    const { routes } = defineConfig({
      server: { name: 'a', version: '1' },
      toolsets: { all: [render] },
      routes: { '/': { toolsets: 'all' }, '/paid': { toolsets: 'all', billing: { free: 0 } } },
    })
    // @ts-expect-error the value of a tool key has the type of its schema
    defineTool({ name: 'wrong', price: 'much', handler: () => '' })
    const base = { server: { name: 'a', version: '1' }, toolsets: {} }
    // @ts-expect-error a route key has the type of the plugin's options
    defineConfig({ ...base, routes: { '/': { toolsets: 'all', billing: 1 } } })
    const { url } = await startHost(config(routes))
    expect([await textOf(url), await textOf(`${url}/paid`)]).to.deep.equal(['1.0 unnamed 6', '1.0 unnamed -4'])
  })

  it('have separate values per route, and the declared value without the plugin', async () => {
    const off = { toolsets: 'all', plugins: { tenants: false as const } }
    const { url } = await startHost(config({ '/t/:tenant': { toolsets: 'all' }, '/off': off }))
    expect([await textOf(`${url}/t/acme`), await textOf(`${url}/off`)]).to.deep.equal(['1.0 acme 6', '1.0 none 2'])
  })

  it('stop startup if invalid, with a suggestion', async () => {
    const keyed = (more: object) => ({ '/': { toolsets: 'all', ...more } })
    await expectStopped(config(keyed({ biling: {} })), /routes\['\/'\]\.biling[\s\S]*did you mean "billing"/)
    await expectStopped(
      config(keyed({ billing: { fre: 1 } })),
      /routes\['\/'\]\.billing\.fre[\s\S]*did you mean "free"/,
    )
    const both = { billing: {}, plugins: { billing: { free: 1 } } }
    await expectStopped(config(keyed(both)), "`billing` and plugins['billing'] of the route set the same options")
    const costly = defineTool({ name: 'costly', price: 0, handler: () => '' })
    await expectStopped({ ...config(keyed({})), toolsets: { all: [costly] } }, /costly[\s\S]*price|price[\s\S]*costly/)
  })

  it('can have an options schema with an $id in every host of a process', async () => {
    const limits = (maximum: number) =>
      definePlugin({
        options: {
          $id: 'https://example.com/limits',
          ...{ type: 'object', additionalProperties: false, properties: { size: { type: 'integer', maximum } } },
        } as const,
        setup: () => undefined,
      })
    for (const maximum of [10, 10, 20]) {
      const configOf = (size: number) => ({
        toolsets: { all: [] },
        routes: { '/': { toolsets: 'all' } },
        plugins: { limits: limits(maximum)({ size }) },
      })
      await startHost(configOf(maximum))
      await expectStopped(configOf(maximum + 1), 'size')
    }
  })

  it('stop startup if two plugins or the host use their name', async () => {
    const adding = (context: object, setup: (host: PluginHost) => void) =>
      definePlugin<Record<never, never>>({ options: NO_OPTIONS, context, setup })()
    const taken = adding({ user: 1 }, () => undefined)
    await expectStopped(
      config({ '/': { toolsets: 'all' } }, { taken }),
      'member of `ctx` "user", which is a key of mcp-host',
    )
    const undeclared = adding({}, host => host.context('tenant', () => 1))
    await expectStopped(
      config({ '/': { toolsets: 'all' } }, { undeclared }),
      'plugins.undeclared: `ctx.tenant` is not in its `context`',
    )
    const twice = adding(tenants.plugin.context ?? {}, host => host.context('tenant', () => 1))
    await expectStopped(
      config({ '/': { toolsets: 'all' } }, { twice }),
      '`ctx.tenant` is already added by plugins.tenants',
    )
    const route = definePlugin<Record<never, never>>({
      options: NO_OPTIONS,
      routeKey: 'toolsets',
      setup: () => undefined,
    })()
    await expectStopped(
      config({ '/': { toolsets: 'all' } }, { route }),
      'the route key "toolsets", which is a key of mcp-host',
    )
  })
})
