// Tests the `tokenEndpoint` option with oidc-provider: token requests and refresh token isolation.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { type AuthFetch, createAuthFetch, createMemoryTokenCache, type TokenCache } from '../../../client/index.ts'
import type { TokenContainer } from '../../../client/stores.ts'
import { defineTool } from '../../../core/index.ts'
import { SERVER } from '../../support/authorization-server.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { authErrorOf } from '../support/auth-error-of.ts'
import { type LoginServer, startLoginServer, stopLoginServers } from './login-server.ts'

/** Carries token requests to the authorization server, as a gateway of a company does. */
async function startGateway(url: string) {
  const grants: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    grants.push(new URLSearchParams(body).get('grant_type') ?? '')
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const answer = await fetch(`${url}/token`, { method: 'POST', body, headers })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth/token`, grants, server }
}

describe('Option tokenEndpoint with oidc-provider and a protected host', () => {
  let authority: LoginServer
  let host: StartedHost
  let gateway: Awaited<ReturnType<typeof startGateway>>
  let kept: TokenContainer | undefined
  const cache: TokenCache = {
    ...createMemoryTokenCache(),
    getTokens: () => kept,
    storeTokens: container => {
      kept = container
    },
  }

  const fetchWith = (tokenEndpoint: string | undefined, interactive: 'post' | 'never' = 'post'): AuthFetch =>
    createAuthFetch({
      serverUrl: `${host.url}/mcp`,
      redirectUri: 'http://127.0.0.1:9/callback',
      authorizationRedirectDelegate: authority.delegate,
      tokenCache: cache,
      interactive,
      ...(tokenEndpoint !== undefined && { tokenEndpoint }),
    })
  const age = () => {
    kept = { v: 1, ...kept, obtainedAt: (kept?.obtainedAt ?? 0) - 3_700_000 }
  }

  beforeEach(async () => {
    kept = undefined
    authority = await startLoginServer()
    gateway = await startGateway(authority.url)
    host = await startHost({
      toolsets: { all: [defineTool({ name: 'whoami', handler: (_, { user }) => user?.subject ?? 'nobody' })] },
      routes: { '/mcp': { toolsets: 'all', authorize: { scope: 'read' } } },
      plugins: {
        'transport-streamable': {},
        'auth-introspection': {
          ...{ endpoint: authority.introspection, clientId: SERVER.id, clientSecret: SERVER.secret, cacheFor: '0s' },
        },
        'resource-metadata': { authorizationServers: [authority.url] },
      },
    })
  })
  afterEach(async () => {
    gateway.server.closeAllConnections()
    gateway.server.close()
    await stopHosts()
    await stopLoginServers()
  })

  it('is used for code redemption and refresh', async () => {
    await fetchWith(gateway.url).session.login()
    expect(gateway.grants).to.deep.equal(['authorization_code'])
    expect(kept?.tokenEndpoint).to.equal(gateway.url)
    age()
    expect(await fetchWith(gateway.url, 'never').session.token()).to.be.a('string')
    expect(gateway.grants).to.deep.equal(['authorization_code', 'refresh_token'])
    expect(kept?.tokenEndpoint).to.equal(gateway.url)
    expect(authority.logins).to.have.length(1)
  })

  it('isolates refresh tokens from the published endpoint, in both directions', async () => {
    await fetchWith(undefined).session.login()
    age()
    expect(await fetchWith(gateway.url, 'never').session.token()).to.equal(undefined)
    expect(gateway.grants).to.deep.equal([])
    await fetchWith(gateway.url).session.login()
    age()
    const before = authority.requests.length
    expect(await fetchWith(undefined, 'never').session.token()).to.equal(undefined)
    expect(authority.requests.slice(before).filter(({ path }) => path === '/token')).to.deep.equal([])
  })

  it('must be https or loopback, without user and fragment', async () => {
    for (const [given, said] of [
      ['http://as.example/token', 'tokenEndpoint is not https'],
      ['https://a:b@as.example/token', 'carries a user or password'],
      ['https://as.example/token#x', 'has a fragment'],
      ['/token', 'is not a URL'],
    ] as const) {
      const error = await authErrorOf(() => fetchWith(given))
      expect([error.code, error.message.includes(said)], error.message).to.deep.equal(['invalid_options', true])
    }
  })
})
