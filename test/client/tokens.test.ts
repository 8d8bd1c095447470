// Tokens over time: stored before anybody gets them, renewed in time, shared by whoever waits, and never lost to a fault
// that passes.
import { expect } from 'chai'
import type { TokenCache, TokenContainer } from '../../client/index.ts'
import { createMemoryTokenCache } from '../../client/index.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { type FakeServers, startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient, type TestClient } from './support/start-client.ts'

afterEach(stopServers)

/** A cache that shows and changes what it keeps, whatever the key. */
function openCache(): TokenCache & { container: TokenContainer | undefined; reads: number; writes: TokenContainer[] } {
  return {
    container: undefined,
    reads: 0,
    writes: [],
    getTokens() {
      this.reads++
      return this.container
    },
    storeTokens(tokens) {
      this.writes.push(tokens)
      this.container = tokens
    },
  }
}

const SECOND = 1000

/** Makes the stored token look as if it had been obtained `ms` ago. */
function age(cache: { container: TokenContainer | undefined }, ms: number) {
  if (cache.container) cache.container = { ...cache.container, obtainedAt: (cache.container.obtainedAt ?? 0) - ms }
}

const grants = (fake: FakeServers) => fake.as.to('/token').map(({ form }) => form.get('grant_type'))

async function loggedIn(
  options: Parameters<typeof startClient>[1] = {},
  setUp: (fake: FakeServers) => void = () => {},
) {
  const fake = await startFakeServers()
  setUp(fake)
  const cache = openCache()
  const client = startClient(fake, { tokenCache: cache, ...options })
  expect((await client.post()).status).to.equal(200)
  return { fake, cache, ...client }
}

const statuses = async (client: Pick<TestClient, 'post'>, times: number) => {
  const responses = await Promise.all(Array.from({ length: times }, () => client.post()))
  return responses.map(({ status }) => status)
}

it('R-72: whoever waits for a token gets it once it is stored', async () => {
  const fake = await startFakeServers()
  let stored = 0
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const cache = createMemoryTokenCache()
  const slow: TokenCache = {
    ...cache,
    async storeTokens(tokens, context) {
      if (tokens.accessToken) await gate
      await cache.storeTokens(tokens, context)
      if (tokens.accessToken) stored++
    },
  }
  const client = startClient(fake, { tokenCache: slow })
  const storedAt: number[] = []
  const posts = [client.post(), client.post()].map(post => post.then(() => storedAt.push(stored)))
  await fake.as.reached('/token')
  expect(fake.rs.admitted).to.equal(0)
  release()
  await Promise.all(posts)
  expect(storedAt).to.deep.equal([1, 1])
})

it('R-72: a store that fails is told to whoever waits', async () => {
  const fake = await startFakeServers()
  const cause = new Error('disk full')
  const tokenCache: TokenCache = {
    getTokens: () => null,
    storeTokens(tokens) {
      if (tokens.accessToken) throw cause
    },
  }
  const error = await authErrorOf(() => startClient(fake, { tokenCache }).post())
  expect(error.code).to.equal('cache_failed')
  expect(error.cause).to.equal(cause)
  expect(fake.rs.admitted).to.equal(0)
})

it('R-73: a refresh that gives no refresh token keeps the one there is', async () => {
  const { fake, cache, post } = await loggedIn({}, ({ as }) => {
    as.settings.refreshTokens = 'fixed'
  })
  const before = cache.container?.refreshToken
  fake.as.settings.tokenAnswer = { refresh_token: undefined }
  age(cache, 3600 * SECOND)
  expect((await post()).status).to.equal(200)
  expect(cache.container?.refreshToken).to.be.a('string').and.equal(before)
})

it('R-74: an answer without a scope grants what was asked for', async () => {
  const { cache } = await loggedIn({ scopes: ['a', 'b'] }, ({ as }) => {
    as.settings.tokenAnswer = { scope: undefined }
  })
  expect(cache.container?.scope).to.equal('a b')
})

it('R-74: a refresh without a scope keeps the scope', async () => {
  const { fake, cache, post } = await loggedIn({ scopes: ['a', 'b'] })
  fake.as.settings.tokenAnswer = { scope: undefined }
  age(cache, 3600 * SECOND)
  await post()
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
  expect(cache.container?.scope).to.equal('a b')
})

it('R-75: an expired token is renewed before the request is sent', async () => {
  const { fake, cache, post } = await loggedIn()
  fake.rs.requests.length = 0
  age(cache, 3600 * SECOND)
  expect((await post()).status).to.equal(200)
  expect(fake.rs.to('/mcp').map(({ status }) => status)).to.deep.equal([200])
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
})

for (const [lifetime, spent, renewed] of [
  [3600, 3530, false],
  [3600, 3560, true],
  [100, 85, false],
  [100, 93, true],
] as const) {
  it(`R-76: after ${spent} s of ${lifetime} a token is ${renewed ? '' : 'not '}renewed`, async () => {
    const { fake, cache, post } = await loggedIn({}, ({ as }) => {
      as.settings.tokenLifetime = lifetime
    })
    age(cache, spent * SECOND)
    expect((await post()).status).to.equal(200)
    expect(grants(fake).includes('refresh_token')).to.equal(renewed)
  })
}

it('R-76: refreshLeewaySeconds says how long before', async () => {
  const { fake, cache, post } = await loggedIn({ refreshLeewaySeconds: 600 })
  age(cache, 3300 * SECOND)
  await post()
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
})

it('R-76: a renewal that fails for now leaves the token in use, and is not tried at every request', async () => {
  const { fake, cache, post, events } = await loggedIn()
  age(cache, 3570 * SECOND)
  fake.as.failNext('/token', { status: 503, body: 'busy' }, 10)
  expect((await post()).status).to.equal(200)
  const sent = fake.as.count('/token')
  expect((await post()).status).to.equal(200)
  expect(fake.as.count('/token')).to.equal(sent)
  expect(events.filter(({ type }) => type === 'refresh-failed').length).to.equal(1)
  expect(fake.logins.length).to.equal(1)
})

it('R-77: a start with an expired token discovers and renews first', async () => {
  const { fake, cache } = await loggedIn()
  age(cache, 3600 * SECOND)
  for (const server of [fake.rs, fake.as]) server.requests.length = 0
  expect((await startClient(fake, { tokenCache: cache }).post()).status).to.equal(200)
  expect(fake.rs.requests.map(({ path }) => path)).to.deep.equal(['/.well-known/oauth-protected-resource/mcp', '/mcp'])
  expect(fake.logins.length).to.equal(1)
})

it('R-77: a start knows where the metadata is that only a challenge told', async () => {
  const { fake, cache } = await loggedIn({}, ({ rs }) => {
    rs.settings.wellKnown = []
    rs.settings.metadataPath = '/elsewhere/metadata'
  })
  age(cache, 3600 * SECOND)
  for (const server of [fake.rs, fake.as]) server.requests.length = 0
  expect((await startClient(fake, { tokenCache: cache }).post()).status).to.equal(200)
  expect(fake.rs.requests.map(({ path }) => path)).to.deep.equal(['/elsewhere/metadata', '/mcp'])
})

it('R-78: 50 parallel 401s lead to one registration, one login and one token request', async () => {
  const fake = await startFakeServers()
  const client = startClient(fake)
  expect(await statuses(client, 50)).to.deep.equal(Array(50).fill(200))
  const counts = {
    logins: fake.logins.length,
    tokens: fake.as.count('/token'),
    registrations: fake.as.count('/register'),
  }
  console.log(`      50 parallel 401s: ${JSON.stringify(counts)}`)
  expect(counts).to.deep.equal({ logins: 1, tokens: 1, registrations: 1 })
})

it('R-78: 50 parallel 401s with a refresh token lead to one refresh', async () => {
  const { fake, post } = await loggedIn()
  fake.as.tokens.expireAll()
  fake.as.requests.length = 0
  expect(await statuses({ post }, 50)).to.deep.equal(Array(50).fill(200))
  console.log(`      50 parallel 401s: ${fake.as.count('/token')} refresh, ${fake.as.tokens.reuses} reuses`)
  expect([fake.as.count('/token'), fake.as.tokens.reuses, fake.logins.length]).to.deep.equal([1, 0, 1])
})

it('R-78: two clients of one cache share a refresh', async () => {
  const { fake, cache, post } = await loggedIn()
  const other = startClient(fake, { tokenCache: cache })
  fake.as.tokens.expireAll()
  fake.as.requests.length = 0
  await Promise.all([statuses({ post }, 10), statuses(other, 10)])
  expect([fake.as.count('/token'), fake.as.tokens.reuses]).to.deep.equal([1, 0])
})

it('R-79: a token that is newer than the refused one is taken before any other is asked for', async () => {
  const { fake, cache, post } = await loggedIn()
  const old = cache.container
  fake.as.tokens.expireAll()
  await post()
  fake.as.requests.length = 0
  fake.rs.requests.length = 0
  // The first read gives the old one, as to a request that began before the renewal.
  let read = false
  const { getTokens } = cache
  cache.getTokens = context => {
    if (read) return getTokens.call(cache, context)
    read = true
    return old
  }
  expect((await post()).status).to.equal(200)
  expect(fake.rs.to('/mcp').map(({ status }) => status)).to.deep.equal([401, 200])
  expect(fake.as.count('/token')).to.equal(0)
})

it('R-79: for a 403 a newer token is taken only where its scope is enough', async () => {
  const fake = await startFakeServers()
  fake.rs.settings.scopes = { '/mcp': 'read', '/admin': 'admin' }
  const client = startClient(fake, { scopes: ['read'] })
  await client.post()
  const responses = await Promise.all([client.post('/admin'), client.post('/admin'), client.post('/admin')])
  expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 200])
  expect(fake.logins.length).to.equal(2)
})

it('R-81: a refused refresh token is dropped and leads to one login', async () => {
  const { fake, cache, post } = await loggedIn()
  const first = cache.container
  fake.as.tokens.revoke(first?.refreshToken ?? '')
  expect((await post()).status).to.equal(200)
  expect(fake.logins.length).to.equal(2)
  expect(cache.container?.refreshToken).not.to.equal(first?.refreshToken)
})

it('R-81: where somebody else has renewed meanwhile, theirs is taken and nothing is dropped', async () => {
  const { fake, cache, post } = await loggedIn()
  const other = createMemoryTokenCache()
  const stale = cache.container
  fake.as.tokens.expireAll()
  // Another process, without a lock, uses the refresh token while our refresh is on its way.
  let held = () => {}
  const hold = new Promise<void>(resolve => {
    held = resolve
  })
  fake.as.failNext('/token', { hold, status: 400, body: { error: 'invalid_grant' } })
  const ours = post()
  await fake.as.reached('/token', 2)
  await other.storeTokens(stale as TokenContainer, { key: 'x' })
  const theirs = startClient(fake, {
    tokenCache: {
      ...other,
      getTokens: () => other.getTokens({ key: 'x' }),
      storeTokens: tokens => other.storeTokens(tokens, { key: 'x' }),
    },
  })
  expect((await theirs.post()).status).to.equal(200)
  cache.container = (await other.getTokens({ key: 'x' })) as TokenContainer
  held()
  expect((await ours).status).to.equal(200)
  expect(fake.logins.length).to.equal(1)
  expect(cache.container?.refreshToken).to.be.a('string')
})

for (const [name, fault] of [
  ['503', { status: 503, body: 'busy' }],
  ['429', { status: 429, body: { message: 'slow down' } }],
  ['a 403 of a firewall, without an OAuth code', { status: 403, body: '<html>blocked</html>' }],
  ['a connection that breaks', { reset: 'before-body' }],
] as const) {
  it(`R-82: ${name} on refresh keeps the tokens and opens no browser`, async () => {
    const { fake, cache, post } = await loggedIn()
    const kept = cache.container
    fake.as.tokens.expireAll()
    fake.as.failNext('/token', fault, 10)
    const error = await authErrorOf(() => post())
    expect([error.code, error.retryable]).to.deep.equal(['temporarily_unavailable', true])
    expect(cache.container).to.deep.equal(kept)
    expect(fake.logins.length).to.equal(1)
  })
}

it('R-70: a refresh token whose answer was lost is kept, and not shown again by the calls that follow at once', async () => {
  const shown: string[] = []
  for (const fault of [{ status: 204 }, { status: 200, body: '{"access_token":"half' }, { status: 200, body: {} }]) {
    const { fake, cache, post } = await loggedIn({}, ({ as }) => {
      as.settings.refreshTokens = 'rotating'
    })
    const { refreshToken } = cache.container ?? {}
    const [logins, before] = [fake.logins.length, fake.as.count('/token')]
    fake.as.failNext('/token', fault, 50)
    // Still valid, but soon over: the refresh fails, the token serves.
    age(cache, 3_590 * SECOND)
    expect((await post()).status).to.equal(200)
    // Now it is over, and refused: each call would like another refresh.
    age(cache, 20 * SECOND)
    const codes = []
    for (let call = 0; call < 5; call++) codes.push((await authErrorOf(() => post())).code)
    expect(new Set(codes).size).to.equal(1)
    expect(fake.as.count('/token') - before).to.equal(1)
    expect([cache.container?.refreshToken, fake.logins.length]).to.deep.equal([refreshToken, logins])
    shown.push(`${fault.status}: 1 in 6 calls`)
    await stopServers()
  }
  console.log(`      the refresh token was shown: ${shown.join(', ')}`)
})

it('R-82: an authorization server that cannot be reached keeps the tokens', async () => {
  const { fake, cache, post } = await loggedIn()
  const kept = cache.container
  fake.as.tokens.expireAll()
  await fake.as.close()
  const error = await authErrorOf(() => post())
  expect([error.code, error.retryable]).to.deep.equal(['temporarily_unavailable', true])
  expect(cache.container).to.deep.equal(kept)
})

for (const [stamp, other] of [
  ['authorizationServer', 'https://other.example'],
  ['clientId', 'somebody-else'],
  ['tokenEndpointAuthMethod', 'client_secret_post'],
  ['resource', 'https://other.example/mcp'],
] as const) {
  it(`R-83: tokens with another ${stamp} are not refreshed`, async () => {
    const { fake, cache, post } = await loggedIn()
    cache.container = { ...(cache.container as TokenContainer), [stamp]: other }
    fake.as.tokens.expireAll()
    expect((await post()).status).to.equal(200)
    expect(grants(fake)).to.deep.equal(['authorization_code', 'authorization_code'])
  })
}

it('R-84: logout revokes both tokens and forgets them; the registration stays', async () => {
  const { fake, cache, authFetch } = await loggedIn()
  const { accessToken, refreshToken, registration } = cache.container ?? {}
  expect(await authFetch.session.logout()).to.deep.equal({ revoked: true })
  const revoked = fake.as.to('/revoke').map(({ form }) => [form.get('token'), form.get('token_type_hint')])
  expect(revoked).to.deep.equal([
    [refreshToken, 'refresh_token'],
    [accessToken, 'access_token'],
  ])
  expect(cache.container).to.deep.equal({ v: 1, registration })
  expect((await authFetch.session.status()).loggedIn).to.equal(false)
})

it('R-84: logout without a revocation endpoint, or with a broken server, forgets all the same', async () => {
  const { fake, cache, authFetch } = await loggedIn({}, ({ as }) => {
    as.settings.revocation = false
  })
  expect(await authFetch.session.logout()).to.deep.equal({ revoked: false })
  expect(cache.container?.accessToken).to.equal(undefined)
  await startClient(fake, { tokenCache: cache }).post()
  await fake.as.close()
  expect(await startClient(fake, { tokenCache: cache }).authFetch.session.logout()).to.deep.equal({ revoked: false })
  expect(cache.container?.accessToken).to.equal(undefined)
})

it('R-84: logout forgets what cannot be read, too', async () => {
  const fake = await startFakeServers()
  let deleted = 0
  const tokenCache: TokenCache = {
    getTokens() {
      throw new Error('damaged')
    },
    storeTokens: () => undefined,
    deleteTokens: () => void deleted++,
  }
  const { authFetch } = startClient(fake, { tokenCache })
  expect(await authFetch.session.logout()).to.deep.equal({ revoked: false })
  expect(deleted).to.equal(1)
})

for (const [name, options] of [
  ['clientId', { clientId: 'somebody-else' }],
  ['clientIssuer', { clientId: 'me', clientIssuer: 'https://other.example' }],
  ['resource', { resourceIndicator: 'https://other.example/mcp' }],
  ['resource, which is left out', { resourceIndicator: 'omit' }],
] as const) {
  it(`a stored token of another ${name} is not sent`, async () => {
    const { fake, cache } = await loggedIn()
    if (name === 'clientIssuer') cache.container = { ...cache.container, v: 1, clientId: 'me' }
    fake.rs.requests.length = 0
    await startClient(fake, { tokenCache: cache, interactive: 'never', ...options })
      .post()
      .catch(() => undefined)
    expect(fake.rs.to('/mcp').map(({ headers }) => headers.authorization)).to.deep.equal([undefined])
  })
}

it('R-84: forgetClient drops the registration: the next login registers anew', async () => {
  const { fake, cache, authFetch, post } = await loggedIn()
  await authFetch.session.logout({ forgetClient: true })
  expect(cache.container).to.deep.equal({ v: 1 })
  await post()
  expect(fake.as.count('/register')).to.equal(2)
})

it('R-85: two profiles of one server have keys, and tokens, of their own', async () => {
  const fake = await startFakeServers()
  const keys = new Set<string>()
  const cache = createMemoryTokenCache()
  const tokenCache: TokenCache = {
    getTokens: context => cache.getTokens(context),
    storeTokens(tokens, context) {
      keys.add(context.key)
      return cache.storeTokens(tokens, context)
    },
  }
  for (const profile of ['work', 'home', 'work']) await startClient(fake, { tokenCache, profile }).post()
  expect([keys.size, fake.logins.length]).to.deep.equal([2, 2])
  for (const key of keys) expect(key).to.match(/^[\w-]{43}$/)
})

it('R-41: a registration is used again after the tokens are gone', async () => {
  const { fake, post, authFetch } = await loggedIn()
  await authFetch.session.logout()
  await post()
  expect([fake.as.count('/register'), fake.logins.length]).to.deep.equal([1, 2])
})

it('R-48: a registration that its server forgot is made anew, once', async () => {
  const { fake, cache, post, events } = await loggedIn()
  const { registration } = cache.container ?? {}
  fake.as.forgetClients()
  fake.as.tokens.revoke(cache.container?.refreshToken ?? '')
  expect((await post()).status).to.equal(200)
  expect(fake.as.count('/register')).to.equal(2)
  expect(cache.container?.registration?.clientId).not.to.equal(registration?.clientId)
  expect(events.map(({ type }) => type)).to.include('registration-dropped')
})

it('R-28: the metadata is asked for again at every challenge, so that a server may move', async () => {
  const fake = await startFakeServers({ authorizationServers: 2 })
  const cache = openCache()
  const { post } = startClient(fake, { tokenCache: cache })
  await post()
  const [, next] = fake.servers
  const { clientId, refreshToken } = cache.container ?? {}
  fake.rs.settings.authorizationServers = next ? [next] : []
  expect((await post()).status).to.equal(200)
  expect(cache.container?.authorizationServer).to.equal(next?.issuer)
  const told = JSON.stringify(next?.requests)
  expect([told.includes(clientId ?? '-'), told.includes(refreshToken ?? '-')]).to.deep.equal([false, false])
})

it('status tells what is known, without tokens', async () => {
  const { fake, cache, authFetch } = await loggedIn({ scopes: ['a'] })
  const status = await authFetch.session.status()
  expect(status).to.include({ loggedIn: true, expired: false, refreshable: true, scope: 'a', issuer: fake.as.issuer })
  expect(status.expiresAt).to.equal((cache.container?.obtainedAt ?? 0) + 3600 * SECOND)
  for (const secret of fake.secrets()) expect(JSON.stringify(status)).not.to.include(secret)
})

it('token() gives a token that serves, renewed where it has to be', async () => {
  const { fake, cache, authFetch } = await loggedIn()
  age(cache, 3600 * SECOND)
  const before = cache.container?.accessToken
  const token = await authFetch.session.token()
  expect(token).to.equal(cache.container?.accessToken).and.not.equal(before)
  expect(fake.logins.length).to.equal(1)
})

it('R-48: a configured client that its server does not know is an error, and nobody is asked', async () => {
  const fake = await startFakeServers()
  fake.as.addClient({ client_id: 'me', redirect_uris: ['http://localhost:3000/callback'] })
  const { post } = startClient(fake, { clientId: 'me' })
  await post()
  fake.as.tokens.expireAll()
  fake.as.forgetClients()
  const error = await authErrorOf(() => post())
  expect([error.code, fake.logins.length]).to.deep.equal(['invalid_client', 1])
})

for (const code of ['invalid_scope', 'interaction_required']) {
  it(`a refresh that is refused with ${code} leads to a login`, async () => {
    const { fake, post } = await loggedIn()
    fake.as.tokens.expireAll()
    fake.as.failNext('/token', { status: 400, body: { error: code } })
    expect((await post()).status).to.equal(200)
    expect(fake.logins.length).to.equal(2)
  })
}

it('R-105: the key that tokens are bound to is kept with them, and used after a restart', async () => {
  const { fake, cache } = await loggedIn({ dpop: true }, ({ as, rs }) => {
    as.settings.dpop = 'required'
    rs.settings.dpop = true
  })
  expect(cache.container?.tokenType).to.equal('DPoP')
  fake.as.tokens.expireAll()
  expect((await startClient(fake, { tokenCache: cache, interactive: 'never' }).post()).status).to.equal(200)
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
})

it('R-104: nonces of both servers are learned, and one change costs one retry', async () => {
  const fake = await startFakeServers()
  for (const settings of [fake.as.settings, fake.rs.settings]) settings.dpopNonce = true
  fake.as.settings.dpop = 'required'
  fake.rs.settings.dpop = true
  const { post } = startClient(fake)
  expect((await post()).status).to.equal(200)
  const sent = fake.rs.count('/mcp')
  expect((await post()).status).to.equal(200)
  expect(fake.rs.count('/mcp') - sent).to.equal(1)
  fake.rs.newNonce()
  expect((await post()).status).to.equal(200)
  expect(fake.rs.count('/mcp') - sent).to.equal(3)
  expect(fake.logins.length).to.equal(1)
})

it('R-106: a grant without refresh token is asked for again before its token ends', async () => {
  const fake = await startFakeServers()
  fake.as.addClient({ client_id: 'machine', client_secret: 's3cret-of-machine', redirect_uris: [] })
  const tokenCache = openCache()
  const grant = { type: 'client_credentials' } as const
  const { post } = startClient(fake, { tokenCache, clientId: 'machine', clientSecret: 's3cret-of-machine', grant })
  await post()
  expect(tokenCache.container?.refreshToken).to.equal(undefined)
  age(tokenCache, 3570 * SECOND)
  expect((await post()).status).to.equal(200)
  expect(grants(fake)).to.deep.equal(['client_credentials', 'client_credentials'])
  expect(fake.rs.to('/mcp').map(({ status }) => status)).to.deep.equal([401, 200, 200])
})
