// Tests the decisions of policies, rules and scope hierarchies.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool, type User } from '../../../core/index.ts'
import type { Policy, ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { purge, serve, tool } from './serve-tools.ts'

afterEach(stopHosts)

/** The status of a call of the one tool under a rule with this policy, for each of these users. */
async function statuses(policy: Policy, users: ReadonlyArray<Partial<User> | undefined>, more: ToolPolicyOptions = {}) {
  const { call } = await serve({ rules: { purge: policy }, ...more })
  const answers = []
  for (const user of users) answers.push((await call(user)).status)
  return answers
}

describe('tool-policy: policies', () => {
  it('require all of their scopes, roles and claims', async () => {
    const policy = { scope: ['a', 'b'], role: ['r', 's'], claim: { tier: ['gold', 'silver'], beta: true } }
    const full = { scopes: ['a', 'b'], roles: ['r', 's'], claims: { tier: 'silver', beta: true } }
    const lacking = [
      { ...full, scopes: ['a'] },
      { ...full, roles: ['s'] },
      { ...full, claims: { tier: 'bronze', beta: true } },
      { ...full, claims: { tier: 'gold', beta: 'true' } },
      { ...full, claims: { tier: 'gold' } },
    ]
    expect(await statuses(policy, [full, ...lacking])).to.deep.equal([200, 403, 403, 403, 403, 403])
  })

  it('match values in list claims, nested claim paths and scope strings', async () => {
    const policy = { claim: { groups: 'admins', 'org.tier': 1, 'https://a.example/x': 'y', scope: 'mcp.tools' } }
    const claims = {
      groups: ['users', 'admins'],
      org: { tier: 1 },
      'https://a.example/x': 'y',
      scope: 'openid mcp.tools',
    }
    const other = { ...claims, scope: 'mcp.toolsmith' }
    expect(await statuses(policy, [{ claims }, { claims: other }])).to.deep.equal([200, 403])
  })

  it('treat the claims scope and scp as scopes: with a challenge and the scope hierarchy', async () => {
    for (const name of ['scope', 'scp']) {
      const policy = { claim: { [name]: ['mcp.tools', 'mcp.other'] }, role: 'r' }
      const options = { rules: { purge: policy }, scopeHierarchy: { 'mcp.admin': ['mcp.tools'] } }
      const { call } = await serve(options)
      const lacking = await call({ roles: ['r'], claims: { [name]: 'mcp.toolsmith' } })
      expect(lacking.status).to.equal(403)
      expect(lacking.challenge).to.contain('error="insufficient_scope"').and.contain('scope="mcp.tools"')
      expect((await call(undefined)).challenge).to.equal('Bearer scope="mcp.tools"')
      for (const user of [{ scopes: ['mcp.admin'] }, { claims: { [name]: ['mcp.other'] } }]) {
        expect((await call({ roles: ['r'], ...user })).status).to.equal(200)
      }
      const both = { claim: { [name]: 'a b' } }
      const users = [{ claims: { [name]: 'b a' } }, { claims: { [name]: 'a' } }]
      expect(await statuses(both, users)).to.deep.equal([200, 403])
    }
  })

  it('ignore inherited object properties as claims', async () => {
    expect(await statuses({ claim: { 'constructor.name': 'Object' } }, [{ claims: {} }])).to.deep.equal([403])
  })

  it('combine with nested anyOf and allOf', async () => {
    const policy = { anyOf: [{ role: 'root' }, { allOf: [{ scope: 'a' }, { anyOf: [{ role: 'r' }, { role: 's' }] }] }] }
    const users = [{ roles: ['root'] }, { scopes: ['a'], roles: ['s'] }, { scopes: ['a'] }, { roles: ['r'] }]
    expect(await statuses(policy, users)).to.deep.equal([200, 200, 403, 403])
  })

  it('that are empty require a token, and every caller with one satisfies them', async () => {
    expect(await statuses({}, [undefined, {}])).to.deep.equal([401, 200])
  })

  it('are satisfied by scopes that include the required one, transitively and with cycles', async () => {
    const scopeHierarchy = { root: ['admin'], admin: ['write'], write: ['read', 'root'], other: ['x'] }
    const users = ['read', 'write', 'admin', 'root', 'other'].map(scope => ({ scopes: [scope] }))
    expect(await statuses({ scope: 'write' }, users, { scopeHierarchy })).to.deep.equal([403, 200, 200, 200, 403])
  })

  it('with anyOf request the scopes of the alternative closest to the caller', async () => {
    const { call } = await serve({
      rules: { purge: { anyOf: [{ scope: ['a', 'b', 'c'] }, { scope: ['d', 'e'] }, { role: 'r' }] } },
    })
    expect((await call({ scopes: ['a', 'b'] })).challenge).to.contain('scope="a b c"')
    expect((await call({})).challenge).to.contain('scope="d e"')
    expect((await call(undefined)).challenge).to.equal('Bearer scope="d e"')
  })
})

describe('tool-policy: access of a definition', () => {
  it('names a policy, or a scope or role if no such policy exists', async () => {
    const named = { toolsets: { all: [tool('one', 'admin'), tool('two', 'mcp.two')] } }
    const { namesFor } = await serve({ policies: { admin: { role: 'root' } } }, named)
    expect(await namesFor({ roles: ['root'] })).to.deep.equal(['one'])
    expect(await namesFor({ scopes: ['admin'], roles: ['admin'] })).to.deep.equal([])
    expect(await namesFor({ scopes: ['mcp.two'] })).to.deep.equal(['two'])
    expect(await namesFor({ roles: ['mcp.two'] })).to.deep.equal(['two'])
  })

  it('is requested as a scope if scopesSupported lists it', async () => {
    const toolsets = { all: [tool('one', 'mcp.one'), tool('two', 'keepers')] }
    const metadata = {
      resource: 'https://mcp.acme.example',
      authorizationServers: ['https://login.acme.example'],
      scopesSupported: ['mcp.one'],
    }
    const { call } = await serve({}, { toolsets, plugins: { 'resource-metadata': metadata } })
    expect((await call({}, 'one')).challenge).to.contain('scope="mcp.one"')
    expect(await call({}, 'two')).to.include({ status: 403, challenge: null })
  })

  it('and every matching rule must be satisfied together', async () => {
    const toolsets = { all: [tool('purge', 'own')] }
    const { call } = await serve({ rules: { 'p*': { scope: 'one' }, '*e': { scope: 'two' } } }, { toolsets })
    const { status, challenge } = await call({ scopes: ['own', 'one'] })
    expect([status, challenge]).to.deep.equal([
      403,
      'Bearer error="insufficient_scope", error_description="needs own one two", scope="own one two"',
    ])
    expect((await call({ scopes: ['own', 'one', 'two'] })).status).to.equal(200)
  })
})

describe('tool-policy: challenge on a route with its own `authorize`', () => {
  const either = { anyOf: [{ scope: 'mcp.tools' }, { scope: 'mcp.other' }] }
  for (const [authorize, options, held, scopes] of [
    [{ scope: 'mcp.tools' }, { rules: { purge: { scope: 'mcp.admin' } } }, 'mcp.tools', 'mcp.tools mcp.admin'],
    ['tools', { rules: { purge: { scope: ['mcp.admin', 'mcp.tools'] } } }, 'mcp.tools', 'mcp.tools mcp.admin'],
    ['either', { rules: { purge: { scope: 'mcp.admin' } } }, 'mcp.other', 'mcp.other mcp.admin'],
    [true, { rules: { purge: { scope: 'mcp.admin' } } }, 'mcp.tools', 'mcp.admin'],
    [{ scope: 'mcp.tools' }, { rules: { purge: { role: 'admin' } } }, 'mcp.tools', undefined],
  ] as const) {
    it(`authorize ${JSON.stringify(authorize)}, held ${held}: ${scopes ?? 'none'}`, async () => {
      const policies = { tools: { scope: 'mcp.tools' }, either: { ...either, anyOf: [...either.anyOf] } }
      const rules = JSON.parse(JSON.stringify(options.rules))
      const routes = { '/admin': { toolsets: 'all', authorize } }
      const { call, log } = await serve({ policies, rules }, { routes })
      const { status, challenge } = await call({ scopes: [held] }, 'purge', '/admin')
      const expected =
        scopes && `Bearer error="insufficient_scope", error_description="needs ${scopes}", scope="${scopes}"`
      expect([status, challenge]).to.deep.equal([403, expected ?? null])
      expect(log.find(({ denied }) => denied === 'call')?.['scopes']).to.deep.equal(scopes?.split(' ') ?? [])
      expect((await call({ scopes: [held, ...(scopes?.split(' ') ?? [])] }, 'other', '/admin')).status).to.equal(200)
    })
  }
})

describe('tool-policy: rules', () => {
  const everything = {
    all: [
      tool('page'),
      definePrompt({ name: 'page', handler: () => 'done' }),
      defineResource({ name: 'page', uri: 'notes://a/page', handler: () => 'done' }),
      defineResource({ name: 'notes', uriTemplate: 'notes://{owner}/{id}', handler: () => 'done' }),
      defineResource({ name: 'pictures', uriTemplate: 'pictures://{id}', handler: () => 'done' }),
    ],
  }
  const reads = [
    ['tools/call', { name: 'page' }],
    ['prompts/get', { name: 'page' }],
    ['resources/read', { uri: 'notes://a/page' }],
    ['resources/read', { uri: 'notes://b/page' }],
    ['resources/read', { uri: 'pictures://page' }],
  ] as const
  const statusesUnder = async (rules: NonNullable<ToolPolicyOptions['rules']>) => {
    const { url } = await serve({ rules }, { toolsets: everything })
    const answers = []
    for (const [method, params] of reads) answers.push((await modern(url, method, params)).status)
    return answers
  }

  it('match tools, or prompts and resource URIs with a prefix', async () => {
    expect(await statusesUnder({ 'pa*': {} })).to.deep.equal([401, 200, 200, 200, 200])
    expect(await statusesUnder({ 'prompt:pa*': {} })).to.deep.equal([200, 401, 200, 200, 200])
    expect(await statusesUnder({ 'resource:pictures://*': {} })).to.deep.equal([200, 200, 200, 200, 401])
  })

  it('for some URIs of a resource template apply to the whole template', async () => {
    expect(await statusesUnder({ 'resource:notes://b/*': {} })).to.deep.equal([200, 200, 200, 401, 200])
    expect(await statusesUnder({ 'resource:notes://a/page': {} })).to.deep.equal([200, 200, 401, 401, 200])
  })

  it('can list denied items or hide listed ones; with several matching rules, hidden wins', async () => {
    const shown = defineTool({ name: 'shown', visibility: 'listed', access: 'a', handler: () => 'done' })
    const toolsets = { all: [purge, shown, tool('other')] }
    const listed = { policy: { scope: 'a' }, visibility: 'listed' } as const
    const hidden = { policy: { scope: 'a' }, visibility: 'hidden' } as const
    const { namesFor } = await serve({ rules: { purge: listed } }, { toolsets })
    expect(await namesFor(undefined)).to.deep.equal(['other', 'purge', 'shown'])
    const second = await serve({ rules: { 's*': hidden, 'sh*': listed } }, { toolsets })
    expect(await second.namesFor(undefined)).to.deep.equal(['other', 'purge'])
  })

  it('do not make an item public that its own access restricts', async () => {
    const { call } = await serve({ rules: { purge: {} } }, { toolsets: { all: [tool('purge', 'a')] } })
    expect((await call({})).status).to.equal(403)
  })
})
