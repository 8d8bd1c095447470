// Tests route-level policies, and how denied calls are answered and logged.
import { expect } from 'chai'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { as } from './bearer-json.ts'
import { serve } from './serve-tools.ts'

afterEach(stopHosts)

describe('tool-policy: onDenied error', () => {
  it('answers a denied call with a JSON-RPC error, HTTP 200 and no challenge', async () => {
    const { call } = await serve({ rules: { purge: { scope: 'a' } }, onDenied: 'error' })
    for (const [user, code] of [
      [undefined, -32600],
      [{}, -32000],
    ] as const) {
      const { status, message } = await call(user)
      expect([status, message.error.code]).to.deep.equal([200, code])
    }
  })

  it('keeps HTTP errors for a route authorize and for an invalid token', async () => {
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'a' } } }
    const { call, url } = await serve({ onDenied: 'error' }, { routes })
    expect([(await call(undefined)).status, (await call({})).status]).to.deep.equal([401, 403])
    const bad = await modern(url, 'tools/list', {}, { headers: { Authorization: 'Bearer bad' } })
    expect(bad.status).to.equal(401)
  })
})

describe('tool-policy: authorize of a route', () => {
  it('can be a policy: 401 with its scopes without a token, 403 if scopes are missing', async () => {
    const routes = { '/': { toolsets: 'all', authorize: 'admin' } }
    const policies = { admin: { scope: ['mcp.tools', 'mcp.admin'], role: 'admin' } }
    const { call, log } = await serve({ policies, scopeHierarchy: { root: ['mcp.tools', 'mcp.admin'] } }, { routes })
    expect(await call(undefined)).to.include({ status: 401, challenge: 'Bearer scope="mcp.tools mcp.admin"' })
    const lacking = await call({ scopes: ['mcp.tools'], roles: ['admin'] })
    expect(lacking.status).to.equal(403)
    expect(lacking.challenge).to.contain('scope="mcp.tools mcp.admin"')
    expect(await call({ scopes: ['root'] })).to.include({ status: 403, challenge: null })
    expect((await call({ scopes: ['root'], roles: ['admin'] })).status).to.equal(200)
    const lines = log.filter(({ denied }) => denied === 'route').map(({ subject, reason }) => [subject, reason])
    expect(lines).to.deep.equal([
      [undefined, 'no token'],
      ['ann', 'lacks scope "mcp.admin"'],
      ['ann', 'lacks role "admin"'],
    ])
  })

  it('true requires a user, and the hierarchy can provide a scope', async () => {
    const routes = {
      '/': { toolsets: 'all', authorize: true as const },
      '/b': { toolsets: 'all', authorize: { scope: 'b' } },
    }
    const { call } = await serve({ scopeHierarchy: { a: ['b'] } }, { routes })
    expect([(await call(undefined)).status, (await call({})).status]).to.deep.equal([401, 200])
    const scoped = [(await call({}, 'purge', '/b')).status, (await call({ scopes: ['a'] }, 'purge', '/b')).status]
    expect(scoped).to.deep.equal([403, 200])
  })
})

describe('tool-policy: routes', () => {
  it('can have their own policies, or none', async () => {
    const routes = {
      '/': { toolsets: 'all' },
      '/b': {
        toolsets: 'all',
        plugins: { 'tool-policy': { rules: { purge: { scope: 'b' } }, onDenied: 'error' as const } },
      },
      '/open': { toolsets: 'all', plugins: { 'tool-policy': false as const } },
    }
    const { call } = await serve({ rules: { purge: { scope: 'a' } } }, { routes })
    const answers = []
    for (const path of ['', '/b', '/open']) {
      for (const scopes of [['a'], ['b']]) {
        const { status, message } = await call({ scopes }, 'purge', path)
        answers.push([status, message.error === undefined])
      }
    }
    expect(answers).to.deep.equal([
      [200, true],
      [403, false],
      [200, false],
      [200, true],
      [200, true],
      [200, true],
    ])
  })
})

describe('tool-policy: log of denied calls', () => {
  it('is one line with caller, item, route and reason, without the token', async () => {
    const { call, log } = await serve({ rules: { purge: { scope: 'a', role: 'r' } } })
    await call({ subject: 'bob', issuer: 'https://i.example' }, 'purge', '', { 'x-request-id': 'r-1' })
    const lines = log.filter(({ denied }) => denied !== undefined)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({
      denied: 'call',
      method: 'tools/call',
      kind: 'tools',
      item: 'purge',
      route: '/',
      issuer: 'https://i.example',
      subject: 'bob',
      requestId: 'r-1',
      reason: 'lacks scope "a", role "r"',
    })
    expect(JSON.stringify(log)).not.to.contain(as({ subject: 'bob', issuer: 'https://i.example' })['Authorization'])
  })
})
