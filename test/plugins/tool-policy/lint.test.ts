// Tests configuration checks of tool-policy: warnings and startup errors.
import { expect } from 'chai'
import { type Config, defineTool } from '../../../core/index.ts'
import type { Policy, ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { bearerJson } from './bearer-json.ts'

afterEach(stopHosts)

const tool = (name: string, more: object = {}) => defineTool({ name, ...more, handler: () => 'done' })
const destructive = { annotations: { destructiveHint: true } }

const configOf = (options: ToolPolicyOptions, more: Partial<Config> = {}) => ({
  toolsets: { all: [tool('purge', destructive), tool('other', { access: 'mcp.other' })] },
  routes: { '/': { toolsets: 'all' } },
  ...more,
  plugins: {
    'transport-streamable': {},
    bearer: bearerJson(),
    'tool-policy': { scopeHierarchy: { 'mcp.all': ['mcp.other', 'mcp.wipe'] }, ...options },
    ...more.plugins,
  },
})

async function warnings(options: ToolPolicyOptions, more?: Partial<Config>) {
  const { log } = await startHost(configOf(options, more))
  const isOurs = ({ plugin, path }: (typeof log)[number]) =>
    plugin === 'tool-policy' || /^plugins\['tool-policy'\]|\.access$/.test(String(path))
  return log.filter(line => line.level === 'warn' && isOurs(line))
}

const metadata = (scopesSupported: string[]) => ({
  'resource-metadata': {
    resource: 'https://mcp.acme.example',
    authorizationServers: ['https://login.acme.example'],
    scopesSupported,
  },
})

describe('tool-policy: startup warnings', () => {
  it('report a rule that matches nothing, and a missing prefix', async () => {
    const rules = { 'purge*': {}, 'prge*': {}, 'prompt:purge': {}, 'notes://*': {} }
    const lines = await warnings({ rules })
    const rule = (key: string) => `plugins['tool-policy'].rules['${key}']`
    expect(lines.map(({ path }) => path)).to.deep.equal(['prge*', 'prompt:purge', 'notes://*'].map(rule))
    expect(lines[2]?.message).to.match(/"resource:"/)
  })

  it('report required scopes missing from scopesSupported, by route', async () => {
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'mcp.route' } } }
    const rules = { purge: { anyOf: [{ claim: { scope: 'mcp.purge' } }, { scope: ['mcp.known'] }] } }
    const lines = await warnings({ rules }, { routes, plugins: metadata(['mcp.known', 'mcp.other']) })
    expect(lines.map(({ route, scope }) => [route, scope])).to.deep.equal([
      ['/', 'mcp.route'],
      ['/', 'mcp.purge'],
    ])
  })

  it('report an access without any policy, by item and route, with a suggestion', async () => {
    const names = ['purger', 'mcp.rule', 'mcp.metadata', 'mcp.route', 'policy-role', 'pruger', 'mcp.nothing']
    const all = names.map(access => tool(access, { access }))
    const lines = await warnings(
      {
        policies: { purger: { anyOf: [{ role: 'policy-role' }] } },
        rules: { 'x*': { policy: { scope: 'mcp.rule' } } },
      },
      {
        toolsets: { all: [...all, tool('x')] },
        routes: {
          '/': { toolsets: 'all', authorize: { scope: 'mcp.route' } },
          '/plain': { toolsets: 'all', plugins: { 'resource-metadata': false } },
        },
        plugins: metadata(['mcp.metadata', 'mcp.route', 'mcp.rule']),
      },
    )
    const told = lines.filter(({ path }) => String(path).endsWith('.access'))
    const itemAndRoute = /^tool "(.+)" requires "\1", .*: on (\S+) /
    expect(told.map(({ message = '' }) => message.replace(itemAndRoute, '$2 $1: ').split(':')[0])).to.deep.equal([
      '/ pruger',
      '/ mcp.nothing',
      '/plain mcp.metadata',
      '/plain mcp.route',
      '/plain pruger',
      '/plain mcp.nothing',
    ])
    expect(told[0]?.path).to.equal('toolsets.all[5].access')
    expect(told[0]?.message).to.match(/"purger"/)
    expect(told[1]?.message).to.match(/; add a scope to plugins\['resource-metadata'\]\.scopesSupported, or name/)
  })

  it('report no scopes without resource metadata', async () => {
    expect(await warnings({ rules: { purge: { scope: 'mcp.purge' } } })).to.deep.equal([])
  })

  it('report a destructive tool without a rule or access, unless its route is restricted', async () => {
    const all = [tool('purge', destructive), tool('wipe', { ...destructive, access: 'mcp.wipe' }), tool('zap')]
    const routes = {
      '/': { toolsets: 'all' },
      '/users': { toolsets: 'all', authorize: true as const },
      '/admin': { toolsets: 'all', authorize: { role: 'admin' } },
    }
    const lines = await warnings({}, { toolsets: { all }, routes })
    expect(lines.map(({ route, tool }) => [route, tool])).to.deep.equal([
      ['/', 'purge'],
      ['/users', 'purge'],
    ])
  })

  it('report a route without access to a server whose tools are not known', async () => {
    const servers = Object.fromEntries(['far', 'near', 'kept'].map(name => [name, { url: 'http://127.0.0.1:1/' }]))
    const routes = {
      '/far': { toolsets: 'far' },
      '/near': { toolsets: 'near' },
      '/kept': { toolsets: 'kept', authorize: true as const },
    }
    const rules = { 'near_*': { role: 'admin' } }
    const lines = await warnings({ rules }, { routes, plugins: { upstream: { servers } } })
    const open = lines.filter(({ code }) => code === 'MH2725')
    expect(open.map(({ route, toolset }) => [route, toolset])).to.deep.equal([['/far', 'far']])
  })
})

describe('tool-policy: startup errors', () => {
  const policies = { admin: { role: 'admin' } }

  it('report a rule with an unknown policy, with a suggestion', async () => {
    const rules = { 'purge*': 'amdin' }
    const text = `plugins['tool-policy'].rules['purge*']: there is no policy "amdin"; did you mean "admin"?`
    await expectStopped(configOf({ policies, rules }), text)
    await expectStopped(configOf({ policies, rules: { purge: { policy: 'xyz' } } }), 'available: admin')
  })

  it('report a route authorize with an unknown policy', async () => {
    const routes = { '/a': { toolsets: 'all', authorize: 'admn' } }
    const text = `routes['/a'].authorize: there is no policy "admn"; did you mean "admin"? (for a scope or a role, write`
    await expectStopped(configOf({ policies }, { routes }), text)
  })

  it('report a policy in a route authorize if tool-policy is off', async () => {
    const routes = { '/a': { toolsets: 'all', authorize: 'admin', plugins: { 'tool-policy': false as const } } }
    await expectStopped(configOf({ policies }, { routes }), /routes\['\/a'\]\.authorize: .*enable tool-policy/)
  })

  const impossible: ReadonlyArray<readonly [string, Policy]> = [
    ['an empty anyOf', { anyOf: [] }],
    ['a nested empty anyOf', { allOf: [{ anyOf: [{ anyOf: [{ anyOf: [] }] }] }] }],
    ['a scope with a space', { scope: 'a b' }],
    ['a claim without values', { claim: { tier: [] } }],
  ]
  for (const [what, policy] of impossible) {
    it(`report a policy that no caller can satisfy: ${what}`, async () => {
      await expectStopped(configOf({ policies: { odd: policy } }), 'policies.odd')
      await expectStopped(configOf({ rules: { purge: policy } }), 'rules.purge')
    })
  }

  it('report an unknown policy key at any depth', async () => {
    const deep = { allOf: [{ allOf: [{ allOf: [{ allOf: [{ scop: 'a' } as Policy] }] }] }] }
    await expectStopped(configOf({ rules: { purge: deep } }), 'scop')
  })

  it('report an item with an access on a route where tool-policy is off', async () => {
    const routes = { '/': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { 'tool-policy': false as const } } }
    await expectStopped(configOf({}, { routes }), `routes['/b'] serves "other"`)
  })
})
