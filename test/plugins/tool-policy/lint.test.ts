// What a config gets wrong: told in the log, or the end of the start where it could not be served as it was meant.
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

describe('at the start tool-policy warns of', () => {
  it('a rule that matches nothing, and of a prefix that it lacks', async () => {
    const rules = { 'purge*': {}, 'prge*': {}, 'prompt:purge': {}, 'notes://*': {} }
    const lines = await warnings({ rules })
    const rule = (key: string) => `plugins['tool-policy'].rules['${key}']`
    expect(lines.map(({ path }) => path)).to.deep.equal(['prge*', 'prompt:purge', 'notes://*'].map(rule))
    expect(lines[2]?.message).to.contain('begins with "resource:"')
  })

  it('scopes that are needed and missing from scopesSupported, by route', async () => {
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'mcp.route' } } }
    const rules = { purge: { anyOf: [{ scope: 'mcp.purge' }, { scope: ['mcp.known'] }] } }
    const lines = await warnings({ rules }, { routes, plugins: metadata(['mcp.known', 'mcp.other']) })
    expect(lines.map(({ route, scope }) => [route, scope])).to.deep.equal([
      ['/', 'mcp.route'],
      ['/', 'mcp.purge'],
    ])
  })

  it('an access that nothing in the config has, by item and route, with what was probably meant', async () => {
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
    const itemAndRoute = /^tool "(.+)" asks for "\1", .*: on (\S+) /
    expect(told.map(({ message = '' }) => message.replace(itemAndRoute, '$2 $1: ').split(':')[0])).to.deep.equal([
      '/ pruger',
      '/ mcp.nothing',
      '/plain mcp.metadata',
      '/plain mcp.route',
      '/plain pruger',
      '/plain mcp.nothing',
    ])
    expect(told[0]?.path).to.equal('toolsets.all[5].access')
    expect(told[0]?.message).to.contain('did you mean "purger"?')
    expect(told[1]?.message).to.match(/; add a scope to plugins\['resource-metadata'\]\.scopesSupported, or name/)
  })

  it('no scope where no metadata says which there are', async () => {
    expect(await warnings({ rules: { purge: { scope: 'mcp.purge' } } })).to.deep.equal([])
  })

  it('a destructive tool without a rule or an access, unless its whole route is for some', async () => {
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
})

describe('the start is stopped by', () => {
  const policies = { admin: { role: 'admin' } }

  it('a rule whose policy does not exist, with the one that was probably meant', async () => {
    const rules = { 'purge*': 'amdin' }
    const text = `plugins['tool-policy'].rules['purge*']: there is no policy "amdin"; did you mean "admin"?`
    await expectStopped(configOf({ policies, rules }), text)
    await expectStopped(configOf({ policies, rules: { purge: { policy: 'xyz' } } }), 'there are: admin')
  })

  it("a route's authorize whose policy does not exist", async () => {
    const routes = { '/a': { toolsets: 'all', authorize: 'admn' } }
    const text = `routes['/a'].authorize: there is no policy "admn"; did you mean "admin"? (a scope or a role is`
    await expectStopped(configOf({ policies }, { routes }), text)
  })

  it("a policy in a route's authorize where tool-policy is off", async () => {
    const routes = { '/a': { toolsets: 'all', authorize: 'admin', plugins: { 'tool-policy': false as const } } }
    await expectStopped(configOf({ policies }, { routes }), /routes\['\/a'\]\.authorize: .*switch on tool-policy/)
  })

  const impossible: ReadonlyArray<readonly [string, Policy, string]> = [
    ['an empty anyOf', { anyOf: [] }, 'anyOf is empty'],
    ['an empty anyOf further in', { allOf: [{ anyOf: [{ anyOf: [{ anyOf: [] }] }] }] }, 'anyOf is empty'],
    ['a scope with a space', { scope: 'a b' }, 'scope "a b" holds a space; write a list of scopes'],
    ['a claim without values', { claim: { tier: [] } }, 'claim "tier" has no value that fits'],
  ]
  for (const [what, policy, words] of impossible) {
    it(`a policy that nobody can meet: ${what}`, async () => {
      await expectStopped(configOf({ policies: { odd: policy } }), `policies.odd`)
      await expectStopped(configOf({ rules: { purge: policy } }), words)
    })
  }

  it('a key that no policy has, however deep', async () => {
    const deep = { allOf: [{ allOf: [{ allOf: [{ allOf: [{ scop: 'a' } as Policy] }] }] }] }
    await expectStopped(configOf({ rules: { purge: deep } }), 'scop')
  })

  it('an item that asks for access on a route where tool-policy is off', async () => {
    const routes = { '/': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { 'tool-policy': false as const } } }
    await expectStopped(configOf({}, { routes }), `routes['/b'] serves "other"`)
  })
})
