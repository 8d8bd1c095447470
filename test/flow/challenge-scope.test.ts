// Tests the scope parameter of the 401 challenge: the minimum that a client needs at a URL (basic/authorization, "Scope
// Selection Strategy").
import { expect } from 'chai'
import type { RouteSettings } from '../../core/index.ts'
import { LOGIN } from '../plugins/resource-metadata/documents.ts'
import { tool } from '../plugins/tool-policy/serve-tools.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../support/start-host.ts'
import { makeKey, toJwk } from '../support/test-issuer.ts'

after(stopHosts)

const key = makeKey('a')
const ISSUER = 'https://login.acme.example'
const guarded = { authorize: true as const }

const routes: Record<string, RouteSettings> = {
  '/told': { toolsets: 'mixed', ...guarded, challengeScope: ['mcp.tools', 'offline_access'] },
  '/needed': { toolsets: 'kept', ...guarded },
  '/mixed': { toolsets: 'mixed', ...guarded },
  '/admin': { toolsets: 'mixed', authorize: { scope: 'mcp.admin' }, challengeScope: 'mcp.tools' },
  '/role': { toolsets: 'mixed', authorize: { role: 'admin' }, challengeScope: 'mcp.tools' },
  '/t/:set?': { toolsets: ':set', default: ['kept'], ...guarded },
  '/open': { toolsets: 'mixed', challengeScope: 'mcp.tools' },
}

const config: TestConfig = {
  toolsets: {
    // Each needs mcp.tools, and one of them more.
    kept: [tool('list', 'tools'), tool('purge', 'admin')],
    mixed: [tool('hello'), tool('secret', 'role')],
    admin: [tool('drop', 'admin')],
  },
  routes,
  plugins: {
    'transport-streamable': {},
    'auth-jwt': { issuer: ISSUER, keys: [toJwk(key)], audience: 'https://mcp.acme.example' },
    'resource-metadata': {
      authorizationServers: [LOGIN],
      scopesSupported: ['mcp.tools', 'mcp.admin', 'offline_access'],
    },
    'tool-policy': {
      policies: { tools: { scope: 'mcp.tools' }, admin: { scope: ['mcp.tools', 'mcp.admin'] }, role: { role: 'boss' } },
    },
  },
}

const scopeIn = (challenge: string | null) => / scope="([^"]*)"/.exec(challenge ?? '')?.[1]

describe('WWW-Authenticate scope of a 401 response', () => {
  let url: string
  before(async () => {
    const host = await startHost(config)
    url = host.url
  })

  const cases: ReadonlyArray<readonly [string, string | undefined, string]> = [
    ['/told', 'mcp.tools', 'challengeScope, without offline_access'],
    ['/needed', 'mcp.tools', 'the scope that every item of the URL needs'],
    ['/mixed', undefined, 'absent when no scope suits every item'],
    ['/admin', 'mcp.admin', 'the scope of authorize, despite challengeScope'],
    ['/role', 'mcp.tools', 'challengeScope when authorize requires only a role'],
    ['/t', 'mcp.tools', 'the scope of the default category'],
    ['/t/admin', 'mcp.tools mcp.admin', 'the scope of each category'],
    ['/t/mixed', undefined, 'absent for a category when no scope suits every item'],
  ]
  for (const [path, scope, what] of cases) {
    it(`is ${what} (${path}), without a token and with an invalid one`, async () => {
      for (const headers of [{}, { Authorization: 'Bearer bad' }]) {
        const { status, headers: told } = await modern(url + path, 'tools/list', {}, { headers })
        const challenge = told.get('www-authenticate')
        expect([status, scopeIn(challenge)], JSON.stringify(headers)).to.deep.equal([401, scope])
        expect(challenge?.includes('error=')).to.equal('Authorization' in headers)
        expect(challenge).to.contain('resource_metadata="')
      }
    })
  }

  it('and scopes_supported do not contain offline_access', async () => {
    const answer = await fetch(`${url}/.well-known/oauth-protected-resource/told`)
    const { scopes_supported: scopes } = (await answer.json()) as { scopes_supported: string[] }
    expect(scopes).to.deep.equal(['mcp.tools', 'mcp.admin'])
  })

  it('is present on an open route for an invalid token and for a forbidden item', async () => {
    const bad = await modern(`${url}/open`, 'tools/list', {}, { headers: { Authorization: 'Bearer bad' } })
    expect([bad.status, scopeIn(bad.headers.get('www-authenticate'))]).to.deep.equal([401, 'mcp.tools'])
    const role = await modern(`${url}/open`, 'tools/call', { name: 'secret' })
    expect([role.status, scopeIn(role.headers.get('www-authenticate'))]).to.deep.equal([401, 'mcp.tools'])
    expect((await modern(`${url}/open`, 'tools/list')).status).to.equal(200)
  })

  it('includes items that are added at run time', async () => {
    const host = await startHost(config)
    const ask = async () => scopeIn((await modern(`${host.url}/needed`, 'tools/list')).headers.get('www-authenticate'))
    expect(await ask()).to.equal('mcp.tools')
    host.host.runtime.tools.add(tool('hello'), { toolset: 'kept' })
    expect(await ask()).to.equal(undefined)
    host.host.runtime.tools.remove('hello', { toolset: 'kept' })
    expect(await ask()).to.equal('mcp.tools')
  })
})
