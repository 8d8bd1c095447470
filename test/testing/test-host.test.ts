// Tests `testHost`: a config on a free port, clients for every protocol version, test tokens and cleanup.
import { expect } from 'chai'
import { type Config, defineConfig, defineResource, defineTool } from 'mcp-host'
import { authJwt, entra, keycloak } from 'mcp-host/auth-jwt'
import { authenticateBearer, authorizeRoute, definePlugin, makeClaims, readUser, StartError } from 'mcp-host/plugin'
import { type TestHost, testHost, testPlugin } from 'mcp-host/testing'
import { REVISIONS } from '../../core/transport.ts'
import { ask } from '../fixtures/line-toolset.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'

const who = defineTool({
  name: 'who',
  handler: (_args, { user, route }) => ({ user: user ?? null, route: route.path }),
})
const purge = defineTool({ name: 'purge', access: 'admin', handler: () => 'purged' })
const grow = defineTool({
  name: 'grow',
  handler(_args, { host }) {
    host.tools.add(defineTool({ name: `extra-${Math.random()}`, handler: () => 'extra' }))
    host.resourceUpdated('test://page')
  },
})
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'a page' })

const open = defineConfig({
  server: { name: 'tested', version: '1.0.0', instructions: 'Be kind.' },
  toolsets: { all: [who, ask, grow, page] },
  routes: { '/mcp': { toolsets: 'all' } },
})

describe('testHost', () => {
  it('serves a config without transport, port and secrets', async () => {
    await using host = await testHost(open)
    await using client = await host.client()
    expect((await client.listTools()).map(({ name }) => name)).to.have.members(['who', 'ask', 'grow'])
    expect(client.server).to.deep.equal({ name: 'tested', version: '1.0.0' })
    expect(client.instructions).to.equal('Be kind.')
    expect((await client.readResource('test://page')).text).to.equal('a page')
    expect(host.logged('warn')).to.deep.equal([])
    expect(host.host.routes.map(({ path }) => path)).to.deep.equal(['/mcp'])
  })

  it('connects clients and issues tokens if http.publicUrl has a path', async () => {
    const http = { publicUrl: 'https://acme.example/base' }
    const plugins = { 'auth-jwt': { authority: 'https://login.example' } }
    await using host = await testHost({ ...open, http, plugins })
    await using client = await host.client({ user: { subject: 'ann' } })
    expect((await client.callTool('who')).text)
      .to.include('"subject":"ann"')
      .and.include('"route":"/mcp"')
  })

  for (const revision of REVISIONS) {
    it(`provides a client for ${revision}: calls, answers and change notifications`, async () => {
      await using host = await testHost(open)
      await using client = await host.client({ revision, answers: [{ action: 'accept', content: { name: 'Ann' } }] })
      expect(client.revision).to.equal(revision)
      expect(await client.callTool('who')).to.deep.include({ text: '{"user":null,"route":"/mcp"}', isError: false })
      expect((await client.callTool('ask')).text).to.equal('Hello, Ann')
      expect(client.asks.map(({ kind }) => kind)).to.deep.equal(['elicit'])
      await client.watch('test://page')
      await client.callTool('grow')
      await client.notified('notifications/tools/list_changed')
      expect((await client.notified('notifications/resources/updated')).params).to.include({ uri: 'test://page' })
      expect(host.changes()).to.deep.equal([{ changed: 'tools' }, { changed: 'resource', uri: 'test://page' }])
      expect(await client.listTools()).to.have.lengthOf(4)
    })
  }
})

const guarded = {
  server: { name: 'guarded', version: '1.0.0' },
  http: { publicUrl: 'https://mcp.acme.example' },
  toolsets: { all: [who, purge] },
  routes: {
    '/mcp': { toolsets: 'all', authorize: true },
    '/admin': { toolsets: 'all', authorize: { role: 'admin' } },
    '/open': { toolsets: 'all', plugins: { 'auth-jwt': false } },
  },
  plugins: {
    'auth-jwt': { authority: 'https://login.acme.example' },
    'resource-metadata': { authorizationServers: ['https://login.acme.example'] },
    'tool-policy': { policies: { admin: { scope: 'mcp.admin' } } },
  },
} satisfies Config

/** The user that `who` saw. */
async function seen(host: TestHost, settings: Parameters<TestHost['client']>[0]) {
  await using client = await host.client(settings)
  const { structured } = await client.callTool('who')
  return (structured as { user: Record<string, unknown> }).user
}

describe('testHost with HTTP+SSE', () => {
  it('provides a client for HTTP+SSE', async () => {
    await using host = await testHost({ ...open, plugins: { 'transport-sse': {} } })
    await using client = await host.client({ sse: true, revision: '2024-11-05' })
    expect((await client.callTool('who')).isError).to.equal(false)
    await client.callTool('grow')
    await client.notified('notifications/tools/list_changed')
  })
})

describe('testHost with a protected config', () => {
  let host: TestHost
  before(async () => {
    host = await testHost(guarded)
  })
  after(() => host.close())

  it('authenticates a test user with a token of the configured issuer', async () => {
    const user = await seen(host, {
      user: { subject: 'ann', scopes: ['mcp.tools'], roles: ['reader'], claims: { tier: 'gold' } },
    })
    expect(user).to.include({ subject: 'ann', issuer: 'https://login.acme.example', clientId: 'test-client' })
    expect(user).to.deep.include({ scopes: ['mcp.tools'], roles: ['reader'] })
    expect(user['claims']).to.include({ tier: 'gold', aud: 'https://mcp.acme.example/mcp' })
  })

  it('rejects missing and expired tokens and tokens for another route with 401', async () => {
    for (const token of [
      undefined,
      host.token({}, { expiresIn: -3_600 }),
      host.token({ roles: ['admin'] }, { route: '/admin' }),
    ]) {
      const error = await rejectionOf(host.client(token === undefined ? {} : { token }))
      expect(error).to.have.property('status', 401)
    }
  })

  it('enforces the access policies of the config', async () => {
    await using reader = await host.client({ user: {} })
    expect((await reader.listTools()).map(({ name }) => name)).to.deep.equal(['who'])
    expect(await rejectionOf(reader.callTool('purge'))).to.include({ requiredScope: 'mcp.admin', status: 403 })
    await using admin = await host.client({ user: { scopes: ['mcp.admin'] }, revision: '2025-06-18' })
    expect((await admin.callTool('purge')).text).to.equal('purged')
    expect(await rejectionOf(host.client({ route: '/admin', user: {} }))).to.have.property('status', 403)
    expect(await seen(host, { route: '/admin', user: { roles: ['admin'] } })).to.include({ subject: 'tester' })
  })

  it('throws if no token can be issued for a route', () => {
    expect(() => host.token({}, { route: '/nowhere' })).to.throw(/\/nowhere.*\/mcp, \/admin/)
  })

  for (const [provider, options] of Object.entries({
    keycloak: keycloak({ url: 'https://id.acme.example', realm: 'acme', clientId: 'tools', audience: 'tools' }),
    entra: entra({ tenant: '00000000-0000-0000-0000-000000000000', clientId: 'api' }),
    'a secret': { issuer: 'https://login.acme.example', secret: process.env['NOT_THERE'] as string },
  })) {
    it(`writes claims in the format of ${provider}`, async () => {
      const plugins = { ...guarded.plugins, 'auth-jwt': false as const, login: authJwt(options) }
      const { '/mcp': route } = guarded.routes
      await using host = await testHost({ ...guarded, routes: { '/mcp': route }, plugins })
      const user = await seen(host, { user: { subject: 'ann', scopes: ['mcp.admin'], roles: ['admin'] } })
      expect(user).to.deep.include({ subject: 'ann', scopes: ['mcp.admin'], roles: ['admin'] })
    })
  }

  it('supports opaque tokens without secrets in the config', async () => {
    const { '/mcp': route } = guarded.routes
    const plugins = {
      'auth-introspection': {
        endpoint: 'https://login.acme.example/introspect',
        clientId: 'tools',
        clientSecret: process.env['NOT_THERE'] as string,
      },
    }
    await using host = await testHost({ ...guarded, toolsets: { all: [who] }, routes: { '/mcp': route }, plugins })
    expect(await seen(host, { user: { subject: 'ann', scopes: ['a', 'b'] } })).to.deep.include({ scopes: ['a', 'b'] })
    expect(await rejectionOf(host.client({ token: 'unknown' }))).to.have.property('status', 401)
  })

  it('requests tokens from a third-party plugin, also with route options', async () => {
    const keys = definePlugin<{ prefix: string }>({
      options: {
        type: 'object',
        additionalProperties: false,
        properties: { prefix: { type: 'string' } },
        required: ['prefix'],
      },
      provides: ['user', 'authorize'],
      underTest: async options => ({ options, issue: ({ subject = 'tester' }) => `${options.prefix}.${subject}` }),
      setup(host, { prefix }) {
        const verify = (token: string) => {
          const [first, sub] = token.split('.')
          const user = first === prefix ? readUser({ sub }, 'https://keys.example') : undefined
          return user ? { user } : { refused: 'unknown key' }
        }
        host.authenticate(authenticateBearer(host, verify))
        host.authorize(authorizeRoute(host))
      },
    })
    await using host = await testHost({
      ...open,
      routes: {
        '/one': { toolsets: 'all', authorize: true },
        '/two': { toolsets: 'all', authorize: true, plugins: { keys: { prefix: 'other' } } },
      },
      plugins: { keys: keys({ prefix: 'key' }) },
    })
    expect([host.token(), host.token({ subject: 'ann' }, { route: '/two' })]).to.deep.equal(['key.tester', 'other.ann'])
    expect(await seen(host, { route: '/two', user: { subject: 'ann' } })).to.include({ subject: 'ann' })
    expect(await rejectionOf(host.client({ route: '/two', token: host.token() }))).to.have.property('status', 401)
  })

  it('names the plugin whose tokens a test cannot issue', async () => {
    const own = definePlugin<Record<never, never>>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      provides: ['user'],
      setup(host) {
        host.authenticate(async (ctx, next) => {
          if (ctx.get('X-User')) ctx.state.user = { subject: ctx.get('X-User'), scopes: [], roles: [], claims: {} }
          await next()
        })
      },
    })
    await using host = await testHost({ ...open, plugins: { own: own() } })
    expect(() => host.token()).to.throw(/plugins\.own .*`underTest`/)
    expect(await seen(host, { headers: { 'X-User': 'ann' } })).to.include({ subject: 'ann' })
  })
})

describe('testHost startup and lifecycle', () => {
  it('rejects with the StartError of a failed startup', async () => {
    for (const [config, words] of [
      [{ ...open, routes: { '/': { toolsets: 'none' } } }, 'none'],
      [{ ...open, plugins: { helth: {} } }, '"health"'],
      [{ ...open, http: { prot: 1 } }, '"port"'],
      [{ ...open, routes: [] }, 'routes'],
      [undefined, 'config'],
    ] as unknown as Array<[Config, string]>) {
      const error = await rejectionOf(testHost(config))
      expect(error, words).to.be.instanceOf(StartError)
      expect(String(error)).to.include(words)
    }
  })

  it('serves a config file with a plugin disabled', async () => {
    const file = 'examples/scaling/mcp.config.ts'
    await using host = await testHost(file, { plugins: { 'cluster-redis': false } })
    await using client = await host.client()
    expect(await client.listTools()).to.not.have.lengthOf(0)
  })

  it('closes once together with its clients and running calls', async () => {
    const host = await testHost(open)
    const client = await host.client({ revision: '2025-11-25' })
    expect(client.sessionId).to.be.a('string')
    await Promise.all([host.close(), host.close()])
    expect(await rejectionOf(fetch(host.url))).to.be.instanceOf(TypeError)
    await client.close()
  })

  it('lists received notifications if an expected one is missing', async () => {
    await using host = await testHost(open)
    await using client = await host.client()
    await client.callTool('grow')
    const error = await rejectionOf(client.notified('notifications/prompts/list_changed', 50))
    expect(String(error)).to.match(/notifications\/prompts\/list_changed.*50 ms/)
  })

  it('rejects if a tool sends a request without a prepared answer', async () => {
    await using host = await testHost(open)
    for (const revision of ['2026-07-28', '2025-11-25'] as const) {
      await using client = await host.client({ answers: {}, revision })
      expect(String(await rejectionOf(client.callTool('ask')))).to.include('the test has no response')
    }
  })

  it('provides clients for stateless routes and routes with parameters', async () => {
    const routes = { '/t/:category': { toolsets: ':category', stateless: true } }
    await using host = await testHost({ ...open, routes })
    for (const revision of ['2026-07-28', '2025-11-25'] as const) {
      await using client = await host.client({ route: '/t/all', revision })
      expect(client.sessionId).to.equal(undefined)
      expect((await client.callTool('who')).structured).to.include({ route: '/t/:category' })
    }
  })

  it('sends arbitrary requests and returns the response', async () => {
    await using host = await testHost(open)
    await using client = await host.client()
    expect(await client.request('tools/list')).to.have.property('tools')
    expect(await rejectionOf(client.request('no/such'))).to.have.property('status', 404)
  })
})

describe('testPlugin', () => {
  const limit = definePlugin<{ word: string }>({
    options: {
      type: 'object',
      additionalProperties: false,
      properties: { word: { type: 'string' } },
      required: ['word'],
    },
    setup(host, { word }) {
      if (word === 'bad') throw new StartError('ACME1', `plugins.${host.name}: bad word`)
      host.log.info({ word }, 'is there')
      host.onCall(async (call, next) => {
        const result = await next()
        return call.method === 'tools/call' ? { ...result, _meta: { word } } : result
      })
    },
  })

  it('serves the plugin next to a tool that reports its call', async () => {
    await using host = await testPlugin(limit, { word: 'hello' })
    await using client = await host.client()
    const { result, structured } = await client.callTool('echo', { a: 1 })
    expect(result._meta).to.include({ word: 'hello' })
    expect(structured).to.deep.equal({ args: { a: 1 }, user: null, route: '/', session: false })
    expect(host.logged('info').map(({ word }) => word)).to.deep.equal(['hello'])
  })

  it('accepts additional config', async () => {
    const config = { routes: { '/guarded': { toolsets: 'echo', authorize: true as const } } }
    await using host = await testPlugin(authJwt, { authority: 'https://login.example' }, { name: 'login', config })
    await using client = await host.client({ user: { subject: 'ann' } })
    expect((await client.callTool('echo')).structured).to.have.nested.property('user.subject', 'ann')
  })

  it('rejects with the error of a failed startup', async () => {
    expect(String(await rejectionOf(testPlugin(limit, { word: 'bad' }, { name: 'limit' })))).to.include(
      'plugins.limit: bad',
    )
    expect(String(await rejectionOf(testPlugin(limit, { werd: 'a' } as never)))).to.include('did you mean "word"')
  })
})

describe('makeClaims', () => {
  const user = { subject: 'ann', clientId: 'app', scopes: ['a', 'b'], roles: ['admin'], claims: { tier: 'gold' } }
  for (const paths of [
    {},
    { scopes: 'scp', roles: ['realm_access.roles', 'roles'], subject: ['oid', 'sub'], clientId: 'azp' },
    { roles: 'https://acme.example/roles' },
    { scopes: 'access.scopes', roles: 'access.roles' },
  ]) {
    it(`writes claims where readUser reads them: ${JSON.stringify(paths)}`, () => {
      const found = readUser(makeClaims(user, paths), 'https://issuer.example', paths)
      expect(found).to.deep.include({ subject: 'ann', clientId: 'app', scopes: ['a', 'b'], roles: ['admin'] })
      expect(found?.claims).to.include({ tier: 'gold' })
    })
  }

  it('lets claims of the test override all others', () => {
    expect(makeClaims({ claims: { sub: 'bob' } })).to.deep.equal({ client_id: 'test-client', sub: 'bob' })
  })
})
