// Tests token storage, refresh, expiry, revocation and concurrent requests.
import { inspect } from 'node:util'
import { expect } from 'chai'
import type { TokenCache, TokenContainer } from '../../client/index.ts'
import { createMemoryTokenCache } from '../../client/index.ts'
import type { LoginLease } from '../../client/stores.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { type FakeServers, type Fault, startFakeServers, stopServers } from './support/fake-servers.ts'
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
const CALLERS = caseCount(50, 12)

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

it('R-72: stores a token before callers receive it', async () => {
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

it('R-72: reports a failed store to waiting callers', async () => {
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

it('redacts tokens in the cause of a failed store', async () => {
  const fake = await startFakeServers()
  const failWith = async (fail: (text: string) => unknown) => {
    let secret = ''
    const tokenCache: TokenCache = {
      getTokens: () => null,
      storeTokens({ accessToken }) {
        if (!accessToken) return
        secret = accessToken
        throw fail(`cannot write ${accessToken}`)
      },
    }
    const { cause } = await authErrorOf(() => startClient(fake, { tokenCache }).post())
    expect(secret).to.have.length.greaterThan(8)
    expect(inspect(cause)).to.not.include(secret)
    return cause
  }
  const failed = await failWith(text => Object.assign(new TypeError(text), { code: 'ENOSPC' }))
  expect(failed)
    .to.be.an('error')
    .and.include({ name: 'TypeError', code: 'ENOSPC', message: 'cannot write [redacted]' })
  expect(await failWith(text => text)).to.equal('[redacted]')
})

it('R-73: keeps the refresh token if a refresh returns none', async () => {
  const { fake, cache, post } = await loggedIn({}, ({ as }) => {
    as.settings.refreshTokens = 'fixed'
  })
  const before = cache.container?.refreshToken
  fake.as.settings.tokenAnswer = { refresh_token: undefined }
  age(cache, 3600 * SECOND)
  expect((await post()).status).to.equal(200)
  expect(cache.container?.refreshToken).to.be.a('string').and.equal(before)
})

it('R-74: assumes the requested scope if the response has none', async () => {
  const { cache } = await loggedIn({ scopes: ['a', 'b'] }, ({ as }) => {
    as.settings.tokenAnswer = { scope: undefined }
  })
  expect(cache.container?.scope).to.equal('a b')
})

it('R-74: keeps the scope after a refresh without a scope', async () => {
  const { fake, cache, post } = await loggedIn({ scopes: ['a', 'b'] })
  fake.as.settings.tokenAnswer = { scope: undefined }
  age(cache, 3600 * SECOND)
  await post()
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
  expect(cache.container?.scope).to.equal('a b')
})

it('R-75: refreshes an expired token before the request', async () => {
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
  it(`R-76: does ${renewed ? '' : 'not '}refresh a token after ${spent} s of ${lifetime} s`, async () => {
    const { fake, cache, post } = await loggedIn({}, ({ as }) => {
      as.settings.tokenLifetime = lifetime
    })
    age(cache, spent * SECOND)
    expect((await post()).status).to.equal(200)
    expect(grants(fake).includes('refresh_token')).to.equal(renewed)
  })
}

it('R-76: refreshLeewaySeconds sets the time before expiry', async () => {
  const { fake, cache, post } = await loggedIn({ refreshLeewaySeconds: 600 })
  age(cache, 3300 * SECOND)
  await post()
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
})

it('R-76: keeps a token after a failed early refresh, and does not retry with every request', async () => {
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

it('R-77: discovers and refreshes first if started with an expired token', async () => {
  const { fake, cache } = await loggedIn()
  age(cache, 3600 * SECOND)
  for (const server of [fake.rs, fake.as]) server.requests.length = 0
  expect((await startClient(fake, { tokenCache: cache }).post()).status).to.equal(200)
  expect(fake.rs.requests.map(({ path }) => path)).to.deep.equal(['/.well-known/oauth-protected-resource/mcp', '/mcp'])
  expect(fake.logins.length).to.equal(1)
})

it('R-77: remembers a metadata URL that only a challenge provided', async () => {
  const { fake, cache } = await loggedIn({}, ({ rs }) => {
    rs.settings.wellKnown = []
    rs.settings.metadataPath = '/elsewhere/metadata'
  })
  age(cache, 3600 * SECOND)
  for (const server of [fake.rs, fake.as]) server.requests.length = 0
  expect((await startClient(fake, { tokenCache: cache }).post()).status).to.equal(200)
  expect(fake.rs.requests.map(({ path }) => path)).to.deep.equal(['/elsewhere/metadata', '/mcp'])
})

it(`R-78: ${CALLERS} concurrent 401s lead to one registration, one login and one token request`, async () => {
  const fake = await startFakeServers()
  const client = startClient(fake)
  expect(await statuses(client, CALLERS)).to.deep.equal(Array(CALLERS).fill(200))
  const counts = {
    logins: fake.logins.length,
    tokens: fake.as.count('/token'),
    registrations: fake.as.count('/register'),
  }
  expect(counts).to.deep.equal({ logins: 1, tokens: 1, registrations: 1 })
})

it(`R-78: ${CALLERS} concurrent 401s with a refresh token lead to one refresh`, async () => {
  const { fake, post } = await loggedIn()
  fake.as.tokens.expireAll()
  fake.as.requests.length = 0
  expect(await statuses({ post }, CALLERS)).to.deep.equal(Array(CALLERS).fill(200))
  expect([fake.as.count('/token'), fake.as.tokens.reuses, fake.logins.length]).to.deep.equal([1, 0, 1])
})

it('R-78: two clients with one cache share a refresh', async () => {
  const { fake, cache, post } = await loggedIn()
  const other = startClient(fake, { tokenCache: cache })
  fake.as.tokens.expireAll()
  fake.as.requests.length = 0
  await Promise.all([statuses({ post }, 10), statuses(other, 10)])
  expect([fake.as.count('/token'), fake.as.tokens.reuses]).to.deep.equal([1, 0])
})

it('R-79: uses a newer stored token before requesting another', async () => {
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

it('R-79: after a 403 uses a newer stored token only with sufficient scope', async () => {
  const fake = await startFakeServers()
  fake.rs.settings.scopes = { '/mcp': 'read', '/admin': 'admin' }
  const client = startClient(fake, { scopes: ['read'] })
  await client.post()
  const responses = await Promise.all([client.post('/admin'), client.post('/admin'), client.post('/admin')])
  expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 200])
  expect(fake.logins.length).to.equal(2)
})

it('R-81: deletes a rejected refresh token and logs in once', async () => {
  const { fake, cache, post } = await loggedIn()
  const first = cache.container
  fake.as.tokens.revoke(first?.refreshToken ?? '')
  expect((await post()).status).to.equal(200)
  expect(fake.logins.length).to.equal(2)
  expect(cache.container?.refreshToken).not.to.equal(first?.refreshToken)
})

it('R-81: uses tokens refreshed by another process and deletes nothing', async () => {
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

for (const isCompleted of [true, false]) {
  it(`R-80: waits for the login of another process, which is ${isCompleted ? '' : 'not '}completed`, async () => {
    const { fake, cache } = await loggedIn()
    const theirs = cache.container
    cache.container = undefined
    const second = startClient(fake, {
      tokenCache: {
        getTokens: () => cache.container,
        storeTokens: () => undefined,
        leaseLogin: async () => ({
          held: false,
          pid: 4711,
          wait: async () => {
            if (isCompleted) cache.container = theirs
            return false
          },
        }),
      },
    })
    const outcome = isCompleted ? (await second.post()).status : (await authErrorOf(() => second.post())).code
    expect(outcome).to.equal(isCompleted ? 200 : 'interaction_in_progress')
    expect(second.events.find(({ type }) => type === 'login-waiting')).to.include({ pid: 4711 })
    expect(fake.logins.length).to.equal(1)
  })
}

it('R-80: stops waiting for the login of another process when its caller aborts; other callers wait again', async () => {
  const { fake, cache } = await loggedIn()
  const theirs = cache.container
  cache.container = undefined
  const waiting = createGate()
  const aborted = createGate<boolean>()
  const waits = [
    (signal: AbortSignal) => {
      signal.addEventListener('abort', () => aborted.open(true))
      waiting.open()
      return aborted.opened
    },
    async () => {
      cache.container = theirs
      return false
    },
  ]
  const second = startClient(fake, {
    tokenCache: {
      getTokens: () => cache.container,
      storeTokens: () => undefined,
      leaseLogin: async () => ({ held: false, wait: waits.shift() ?? (() => Promise.resolve(false)) }),
    },
  })
  const caller = new AbortController()
  const first = second.post(undefined, { signal: caller.signal }).catch(error => error)
  await waiting.opened
  const other = second.post()
  caller.abort('gone')
  expect(await first).to.equal('gone')
  expect((await other).status).to.equal(200)
  expect([waits.length, fake.logins.length]).to.deep.equal([0, 1])
})

it('R-80: waits for the login of another process only for the rest of its own time after another caller aborted', async () => {
  const { fake, cache } = await loggedIn()
  cache.container = undefined
  const waiting = createGate()
  const signals: AbortSignal[] = []
  const wait = (signal: AbortSignal) => {
    signals.push(signal)
    waiting.open()
    return new Promise<boolean>((_, reject) => signal.addEventListener('abort', reject))
  }
  const { now } = Date
  let late = 0
  Date.now = () => now() + late
  const second = startClient(fake, {
    loginTimeoutMs: 60_000,
    tokenCache: {
      getTokens: () => cache.container,
      storeTokens: () => undefined,
      leaseLogin: async () => ({ held: false, wait }),
    },
  })
  const caller = new AbortController()
  const first = second.post(undefined, { signal: caller.signal }).catch(error => error)
  await waiting.opened
  const other = authErrorOf(() => second.post())
  await eventually(
    'the other caller has joined',
    () => second.events.filter(one => one.type === 'challenge').length > 1,
  )
  try {
    late = 60_000
    caller.abort('gone')
    expect(await first).to.equal('gone')
    expect((await other).code).to.equal('interaction_in_progress')
  } finally {
    Date.now = now
  }
  expect(signals).to.have.length(2)
})

it('R-80: takes over the login of a process that ended without releasing its lease', async () => {
  const { fake, cache } = await loggedIn()
  cache.container = undefined
  const leases = [{ held: false, wait: async () => true } as const, { held: true, release: async () => {} } as const]
  const second = startClient(fake, {
    tokenCache: {
      getTokens: () => cache.container,
      storeTokens: () => undefined,
      leaseLogin: async () => leases.shift() as LoginLease,
    },
  })
  expect((await second.post()).status).to.equal(200)
  expect([leases.length, fake.logins.length]).to.deep.equal([0, 2])
})

it('R-82: temporary errors on refresh keep the tokens and open no browser', async () => {
  const faults: [string, Fault][] = [
    ['503', { status: 503, body: 'busy' }],
    ['429', { status: 429, body: { message: 'slow down' } }],
    ['a 403 of a firewall, without an OAuth code', { status: 403, body: '<html>blocked</html>' }],
    ['a connection that breaks', { reset: 'before-body' }],
  ]
  // At the same time: the client waits before it retries.
  await Promise.all(
    faults.map(async ([name, fault]) => {
      const { fake, cache, post } = await loggedIn()
      const kept = cache.container
      fake.as.tokens.expireAll()
      fake.as.failNext('/token', fault, 10)
      const error = await authErrorOf(() => post())
      expect([error.code, error.retryable], name).to.deep.equal(['temporarily_unavailable', true])
      expect(cache.container, name).to.deep.equal(kept)
      expect(fake.logins.length, name).to.equal(1)
    }),
  )
})

it('R-70: keeps a refresh token after a lost response, and delays its next use', async () => {
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
    await stopServers()
  }
})

it('R-82: keeps the tokens if the authorization server is unreachable', async () => {
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
  it(`R-83: does not refresh tokens with another ${stamp}`, async () => {
    const { fake, cache, post } = await loggedIn()
    cache.container = { ...(cache.container as TokenContainer), [stamp]: other }
    fake.as.tokens.expireAll()
    expect((await post()).status).to.equal(200)
    expect(grants(fake)).to.deep.equal(['authorization_code', 'authorization_code'])
  })
}

it('R-84: logout revokes and deletes both tokens, and keeps the registration', async () => {
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

it('R-84: logout deletes tokens without a revocation endpoint or with a broken server', async () => {
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

it('R-84: logout deletes unreadable tokens', async () => {
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
  it(`does not send a stored token with another ${name}`, async () => {
    const { fake, cache } = await loggedIn()
    if (name === 'clientIssuer') cache.container = { ...cache.container, v: 1, clientId: 'me' }
    fake.rs.requests.length = 0
    await startClient(fake, { tokenCache: cache, interactive: 'never', ...options })
      .post()
      .catch(() => undefined)
    expect(fake.rs.to('/mcp').map(({ headers }) => headers.authorization)).to.deep.equal([undefined])
  })
}

it('R-84: forgetClient deletes the registration, and the next login registers again', async () => {
  const { fake, cache, authFetch, post } = await loggedIn()
  await authFetch.session.logout({ forgetClient: true })
  expect(cache.container).to.deep.equal({ v: 1 })
  await post()
  expect(fake.as.count('/register')).to.equal(2)
})

it('R-85: separates the tokens of two profiles of one server', async () => {
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

it('R-41: reuses a registration after the tokens are deleted', async () => {
  const { fake, post, authFetch } = await loggedIn()
  await authFetch.session.logout()
  await post()
  expect([fake.as.count('/register'), fake.logins.length]).to.deep.equal([1, 2])
})

it('R-48: registers again once if the server forgot the client', async () => {
  const { fake, cache, post, events } = await loggedIn()
  const { registration } = cache.container ?? {}
  fake.as.forgetClients()
  fake.as.tokens.revoke(cache.container?.refreshToken ?? '')
  expect((await post()).status).to.equal(200)
  expect(fake.as.count('/register')).to.equal(2)
  expect(cache.container?.registration?.clientId).not.to.equal(registration?.clientId)
  expect(events.map(({ type }) => type)).to.include('registration-dropped')
})

it('R-28: requests metadata again at every challenge and follows a new authorization server', async () => {
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

it('status reports the session without tokens', async () => {
  const { fake, cache, authFetch } = await loggedIn({ scopes: ['a'] })
  const status = await authFetch.session.status()
  expect(status).to.include({ loggedIn: true, expired: false, refreshable: true, scope: 'a', issuer: fake.as.issuer })
  expect(status.expiresAt).to.equal((cache.container?.obtainedAt ?? 0) + 3600 * SECOND)
  for (const secret of fake.secrets()) expect(JSON.stringify(status)).not.to.include(secret)
})

it('token() returns a valid token, refreshed if required', async () => {
  const { fake, cache, authFetch } = await loggedIn()
  age(cache, 3600 * SECOND)
  const before = cache.container?.accessToken
  const token = await authFetch.session.token()
  expect(token).to.equal(cache.container?.accessToken).and.not.equal(before)
  expect(fake.logins.length).to.equal(1)
})

it('R-48: fails without login if the server does not know a configured client', async () => {
  const fake = await startFakeServers()
  fake.as.addClient({ client_id: 'me', redirect_uris: ['http://localhost:3000/callback'] })
  const { post } = startClient(fake, { clientId: 'me' })
  await post()
  fake.as.tokens.expireAll()
  fake.as.forgetClients()
  const error = await authErrorOf(() => post())
  expect([error.code, fake.logins.length]).to.deep.equal(['invalid_client', 1])
})

it('R-40: does not send a configured client id to another authorization server after its tokens were rejected', async () => {
  const fake = await startFakeServers({ authorizationServers: 2 })
  const [, next] = fake.servers
  for (const as of fake.servers) as.addClient({ client_id: 'me', redirect_uris: ['http://localhost:3000/callback'] })
  const tokenCache = openCache()
  await startClient(fake, { tokenCache, clientId: 'me' }).post()
  fake.as.tokens.revoke(tokenCache.container?.refreshToken ?? '')
  fake.as.tokens.expireAll()
  const options = { tokenCache, clientId: 'me', interactive: 'never' } as const
  await authErrorOf(() => startClient(fake, options).post())
  expect(tokenCache.container?.refreshToken).to.equal(undefined)
  fake.rs.settings.authorizationServers = next ? [next] : []
  const error = await authErrorOf(() => startClient(fake, { tokenCache, clientId: 'me' }).post())
  expect([error.code, fake.logins.length]).to.deep.equal(['issuer_changed', 1])
})

for (const code of ['invalid_scope', 'interaction_required']) {
  it(`logs in if a refresh is rejected with ${code}`, async () => {
    const { fake, post } = await loggedIn()
    fake.as.tokens.expireAll()
    fake.as.failNext('/token', { status: 400, body: { error: code } })
    expect((await post()).status).to.equal(200)
    expect(fake.logins.length).to.equal(2)
  })
}

it('R-105: stores the DPoP key with its tokens, and uses it after a restart', async () => {
  const { fake, cache } = await loggedIn({ dpop: true }, ({ as, rs }) => {
    as.settings.dpop = 'required'
    rs.settings.dpop = true
  })
  expect(cache.container?.tokenType).to.equal('DPoP')
  fake.as.tokens.expireAll()
  expect((await startClient(fake, { tokenCache: cache, interactive: 'never' }).post()).status).to.equal(200)
  expect(grants(fake)).to.deep.equal(['authorization_code', 'refresh_token'])
})

it('R-104: learns nonces of both servers, and a change costs one retry', async () => {
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

it('R-106: repeats a grant without a refresh token before token expiry', async () => {
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
