// Tests the client end to end: protected host, oidc-provider and both generations of the official client.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import {
  type AuthEvent,
  type AuthFetch,
  createAuthFetch,
  createMemoryTokenCache,
  type TokenCache,
  type TokenContainer,
} from '../../../client/index.ts'
import { defineTool } from '../../../core/index.ts'
import { SERVER } from '../../support/authorization-server.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { type LoginServer, startLoginServer, stopLoginServers } from './login-server.ts'

const REDIRECT = 'http://127.0.0.1:9/callback'
const INFO = { name: 'official', version: '1.0.0' }

const tool = (name: string, access?: string) =>
  defineTool({
    name,
    ...(access !== undefined && { access }),
    handler: (_, { user }) => ({ subject: user?.subject ?? null, scopes: [...(user?.scopes ?? [])].sort() }),
  })

/** The protected host: `/mcp` asks for `read`, its tool `write_it` for `write` too. */
function startProtectedHost(authority: LoginServer, port = 0): Promise<StartedHost> {
  const { id, secret } = SERVER
  return startHost({
    http: { port },
    toolsets: { all: [tool('whoami'), tool('write_it', 'writers')] },
    routes: { '/mcp': { toolsets: 'all', authorize: { scope: 'read' } } },
    plugins: {
      'transport-streamable': {},
      'auth-introspection': { endpoint: authority.introspection, clientId: id, clientSecret: secret, cacheFor: '0s' },
      'resource-metadata': { authorizationServers: [authority.url] },
      'tool-policy': { policies: { writers: { scope: 'write' } } },
    },
  })
}

/** A cache whose one container the test can look at and change. */
function createOpenCache(): TokenCache & { container: TokenContainer; change(changes: Partial<TokenContainer>): void } {
  let kept: TokenContainer | undefined
  return {
    ...createMemoryTokenCache(),
    getTokens: () => kept,
    storeTokens: container => {
      kept = container
    },
    deleteTokens: () => {
      kept = undefined
    },
    get container() {
      return kept ?? { v: 1 as const }
    },
    change(changes) {
      kept = { ...(kept ?? { v: 1 }), ...changes }
    },
  }
}

/** What both generations of the official client are used for here. */
interface McpClient {
  call(name: string): Promise<unknown>
  listTools(): Promise<string[]>
  close(): Promise<void>
}

async function connectNew(url: string, authFetch: AuthFetch, mode: 'auto' | 'legacy'): Promise<McpClient> {
  const client = new Client(INFO, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: authFetch })
  await client.connect(transport)
  return {
    call: async name => (await client.callTool({ name })).structuredContent,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    async close() {
      if (transport.sessionId !== undefined) await transport.terminateSession()
      await client.close()
    },
  }
}

async function connectOld(url: string, authFetch: AuthFetch): Promise<McpClient> {
  const client = new OldClient(INFO)
  const transport = new OldTransport(new URL(url), { fetch: authFetch })
  // Its transport's types do not hold under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<OldClient['connect']>[0])
  return {
    call: async name => (await client.callTool({ name })).structuredContent,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    async close() {
      await transport.terminateSession()
      await client.close()
    },
  }
}

const CLIENTS: ReadonlyArray<readonly [string, (url: string, authFetch: AuthFetch) => Promise<McpClient>]> = [
  ['@modelcontextprotocol/client at 2026-07-28', (url, authFetch) => connectNew(url, authFetch, 'auto')],
  ['@modelcontextprotocol/client with sessions', (url, authFetch) => connectNew(url, authFetch, 'legacy')],
  ['@modelcontextprotocol/sdk 1.x', connectOld],
]

/** Kept connections to a server that was replaced end with the first request that is sent on them. */
async function oldConnectionsGone(url: string): Promise<void> {
  const answers = async () => (await fetch(url).then(response => response.text())).length >= 0
  for (let tries = 0; tries < 20; tries++) if (await answers().catch(() => false)) return
  throw new Error(`${url} cannot be reached`)
}

for (const [title, connectWith] of CLIENTS)
  describe(`${title} with authFetch, oidc-provider and a protected host`, () => {
    let authority: LoginServer
    let host: StartedHost
    let cache: ReturnType<typeof createOpenCache>
    let events: AuthEvent[]
    let authFetch: AuthFetch
    let client: McpClient
    const clients: McpClient[] = []

    const fetchFor = (delegate = authority.delegate, redirectUri = REDIRECT) =>
      createAuthFetch({
        serverUrl: `${host.url}/mcp`,
        redirectUri,
        authorizationRedirectDelegate: delegate,
        strictResponse: true,
        tokenCache: cache,
        onEvent: event => events.push(event),
      })
    const connect = async () => {
      const connected = await connectWith(`${host.url}/mcp`, authFetch)
      clients.push(connected)
      return connected
    }
    /** Requests to register, to log in and for tokens. */
    const traffic = (server = authority) => [server.count('/reg'), server.logins.length, server.count('/token')]
    const eventsOf = (type: AuthEvent['type']) => events.filter(event => event.type === type).length

    beforeEach(async () => {
      authority = await startLoginServer()
      host = await startProtectedHost(authority)
      cache = createOpenCache()
      events = []
      authFetch = fetchFor()
      client = await connect()
    })
    afterEach(async () => {
      await Promise.allSettled(clients.splice(0).map(one => one.close()))
      await stopHosts()
      await stopLoginServers()
    })

    it('first login: registers, logs in once and calls a tool', async () => {
      expect(await client.listTools()).to.include('whoami')
      expect(await client.call('whoami')).to.deep.equal({ subject: 'ann', scopes: ['read'] })
      expect(traffic()).to.deep.equal([1, 1, 1])
      const [authorization] = authority.requests.filter(({ path }) => path === '/auth')
      const [token] = authority.requests.filter(({ path }) => path === '/token')
      for (const request of [authorization, token]) {
        expect(request?.parameters.get('resource')).to.equal(`${host.url}/mcp`)
      }
    })

    it('second connection: uses the stored token without requests to the authorization server', async () => {
      const before = authority.requests.filter(({ path }) => path !== '/token/introspection').length
      authFetch = fetchFor()
      expect(await (await connect()).call('whoami')).to.deep.include({ subject: 'ann' })
      const after = authority.requests.filter(({ path }) => path !== '/token/introspection').length
      expect(after).to.equal(before)
    })

    it('refresh: before expiry, without user interaction, and with refresh token rotation', async () => {
      const { accessToken, refreshToken, obtainedAt = 0 } = cache.container
      cache.change({ obtainedAt: obtainedAt - 3_595_000 })
      await client.call('whoami')
      expect(traffic()).to.deep.equal([1, 1, 2])
      expect(cache.container.refreshToken).to.be.a('string').and.not.equal(refreshToken)
      expect(cache.container.accessToken).not.to.equal(accessToken)
    })

    it('refresh and logout in a later run: the same client, with another redirect URI port', async () => {
      const { obtainedAt = 0 } = cache.container
      cache.change({ obtainedAt: obtainedAt - 3_595_000 })
      authFetch = fetchFor(authority.delegate, 'http://127.0.0.1:10/callback')
      expect(await (await connect()).call('whoami')).to.deep.include({ subject: 'ann' })
      expect(traffic()).to.deep.equal([1, 1, 2])
      expect(await authFetch.session.logout()).to.deep.equal({ revoked: true })
    })

    it('revoked access token: a 401 leads to a refresh without user interaction', async () => {
      await authority.withdraw(cache.container.accessToken ?? '')
      expect(await client.call('whoami')).to.deep.include({ subject: 'ann' })
      expect(traffic()).to.deep.equal([1, 1, 2])
      expect(authority.count('/token/introspection')).to.be.above(0)
    })

    it('revoked grant: the refresh is refused, and one login recovers', async () => {
      const { accessToken = '', clientId = '' } = cache.container
      const form = { token: accessToken, client_id: clientId }
      expect((await authority.post('/token/revocation', form)).status).to.equal(200)
      expect(await client.call('whoami')).to.deep.include({ subject: 'ann' })
      expect(traffic()).to.deep.equal([1, 2, 3])
      expect(eventsOf('token-dropped')).to.equal(1)
    })

    it('refresh token reuse: a stolen token revokes the family, and one login recovers', async () => {
      const { refreshToken: stolen = '', clientId = '', obtainedAt = 0 } = cache.container
      cache.change({ obtainedAt: obtainedAt - 3_595_000 })
      await client.call('whoami')
      const theft = await authority.post('/token', {
        ...{ grant_type: 'refresh_token', refresh_token: stolen, client_id: clientId },
      })
      expect(theft.body).to.include({ error: 'invalid_grant' })
      expect(await client.call('whoami')).to.deep.include({ subject: 'ann' })
      // The first login, the refresh, the thief, the refresh that failed, and the code of the second login.
      expect(traffic()).to.deep.equal([1, 2, 5])
      expect(eventsOf('token-dropped')).to.equal(1)
    })

    it('step-up: calls a tool after user consent, and keeps the earlier scopes', async () => {
      expect(await client.call('write_it')).to.deep.equal({ subject: 'ann', scopes: ['read', 'write'] })
      expect(eventsOf('step-up')).to.equal(1)
      // oidc-provider binds a registered client to the scopes of its registration, so the wider ones need another.
      expect(authority.logins).to.deep.equal([
        ['offline_access', 'read'],
        ['offline_access', 'read', 'write'],
        ['offline_access', 'read', 'write'],
      ])
      expect(traffic()).to.deep.equal([2, 3, 2])
      await client.call('write_it')
      expect(traffic()).to.deep.equal([2, 3, 2])
    })

    it('migration: registers and logs in at the new authorization server without leaking old credentials', async () => {
      const { accessToken = '', refreshToken = '', clientId = '' } = cache.container
      const next = await startLoginServer()
      await host.host.close({ grace: 0 })
      host = await startProtectedHost(next, Number(new URL(host.url).port))
      await oldConnectionsGone(host.url)
      authFetch = fetchFor(next.delegate)
      expect(await (await connect()).call('whoami')).to.deep.include({ subject: 'ann' })
      expect(traffic(next)).to.deep.equal([1, 1, 1])
      const seen = next.requests
        .filter(({ path }) => path !== '/token/introspection')
        .flatMap(({ parameters }) => [...parameters.values()])
      for (const old of [accessToken, refreshToken, clientId]) expect(seen).to.not.include(old)
      expect(cache.container.authorizationServer).to.equal(next.url)
    })

    it('logout: revokes and deletes tokens; the next login uses the same client', async () => {
      const { refreshToken = '', accessToken = '', clientId = '' } = cache.container
      expect(await authFetch.session.logout()).to.deep.equal({ revoked: true })
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId }
      expect((await authority.post('/token', form)).body).to.include({ error: 'invalid_grant' })
      const headers = { Authorization: `Bearer ${accessToken}` }
      expect((await fetch(`${host.url}/mcp`, { method: 'POST', headers, body: '{}' })).status).to.equal(401)
      expect(await authFetch.session.status()).to.include({ loggedIn: false })
      expect(await client.call('whoami')).to.deep.include({ subject: 'ann' })
      expect(authority.count('/reg')).to.equal(1)
      expect(authority.logins).to.have.length(2)
    })
  })
