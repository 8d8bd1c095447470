// What holds for whole routes, and how a denial is answered and logged.
import { expect } from 'chai'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { as } from './bearer-json.ts'
import { serve } from './serve-tools.ts'

afterEach(stopHosts)

describe('onDenied: error', () => {
  it('answers a denied call as a JSON-RPC error with HTTP 200 and no challenge', async () => {
    const { call } = await serve({ rules: { purge: { scope: 'a' } }, onDenied: 'error' })
    for (const [user, code] of [
      [undefined, -32600],
      [{}, -32000],
    ] as const) {
      const { status, message } = await call(user)
      expect([status, message.error.code]).to.deep.equal([200, code])
    }
  })

  it("leaves the route's own authorize, and a token that is refused, to HTTP", async () => {
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'a' } } }
    const { call, url } = await serve({ onDenied: 'error' }, { routes })
    expect([(await call(undefined)).status, (await call({})).status]).to.deep.equal([401, 403])
    const bad = await modern(url, 'tools/list', {}, { headers: { Authorization: 'Bearer bad' } })
    expect(bad.status).to.equal(401)
  })
})

describe("a route's authorize", () => {
  it('may be a policy: 401 with its scopes without a token, 403 with them where they lack', async () => {
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

  it('true asks for a user, and a scope may come by the hierarchy', async () => {
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

describe('a route', () => {
  it('may have other policies than the rest, or none', async () => {
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

describe('a denied call', () => {
  it('is one line of the log: who, what, where and why, and nothing of the token', async () => {
    const { call, log } = await serve({ rules: { purge: { scope: 'a', role: 'r' } } })
    await call({ subject: 'bob', issuer: 'https://i.example' })
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
      reason: 'lacks scope "a", role "r"',
    })
    expect(JSON.stringify(log)).not.to.contain(as({ subject: 'bob', issuer: 'https://i.example' })['Authorization'])
  })
})
