// Tests requested scopes, step-up and its limits.
import { expect } from 'chai'
import { createMemoryFlowStore, createMemoryTokenCache } from '../../client/index.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { type FakeServers, startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

const asked = (fake: FakeServers) => fake.logins.map(({ searchParams }) => searchParams.get('scope'))

async function start(setUp: (fake: FakeServers) => void, options: Parameters<typeof startClient>[1] = {}) {
  const fake = await startFakeServers()
  setUp(fake)
  return { fake, ...startClient(fake, options) }
}

const twoLevels = ({ rs }: FakeServers) => {
  rs.settings.challengeScope = 'read'
  rs.settings.scopes = { '/mcp': 'read', '/write': 'write', '/admin': 'admin' }
}

for (const [name, options, expected] of [
  ['the challenge says, before the metadata', {}, 'read'],
  ['the caller says', { scopes: ['mine'] }, 'mine'],
  ['the challenge says, before a fallback', { scopes: ['mine'], scopeMode: 'fallback' }, 'read'],
  ['the selector says', { scopeSelector: () => ['chosen'] }, 'chosen'],
  ['nobody says: a selector that gives null', { scopeSelector: () => null }, null],
  ['nobody says: a selector that gives nothing', { scopeSelector: async () => [] }, null],
] as const) {
  it(`R-53: requests the initial scope (${name})`, async () => {
    const { fake, post } = await start(({ rs }) => {
      rs.settings.challengeScope = 'read'
      rs.settings.scopesSupported = ['decoy']
    }, options)
    await post()
    expect(asked(fake)).to.deep.equal([expected])
  })
}

it('R-53: requests the scopes of the metadata if the challenge has none', async () => {
  const { fake, post } = await start(({ rs }) => {
    rs.settings.scopesSupported = ['a', 'b']
  })
  await post()
  expect(asked(fake)).to.deep.equal(['a b'])
})

it('R-53: requests no scope if none is known', async () => {
  const { fake, post } = await start(() => undefined)
  await post()
  expect(asked(fake)).to.deep.equal([null])
})

it('R-53: passes the proposed scopes to the selector, also at registration', async () => {
  const seen: unknown[] = []
  const { fake, post } = await start(twoLevels, {
    scopeSelector: scopes => {
      seen.push(scopes)
      return ['chosen']
    },
  })
  await post()
  expect(seen[0]).to.deep.equal(['read'])
  expect(JSON.parse(fake.as.to('/register')[0]?.body ?? '{}').scope).to.equal('chosen')
})

for (const [name, listed, options, expected] of [
  ['where the server lists it', true, {}, 'read offline_access'],
  ['not where the server does not list it', false, {}, 'read'],
  ['not with scopes of the caller', true, { scopes: ['mine'] }, 'mine'],
  ['not where the caller says so', true, { offlineAccess: false }, 'read'],
  ['where the caller says so', false, { offlineAccess: true }, 'read offline_access'],
  [
    'not where the client is registered without refresh',
    true,
    { dynamicClientRegistration: { metadata: { grant_types: ['authorization_code'] } } },
    'read',
  ],
] as const) {
  it(`R-54: offline_access is requested ${name}`, async () => {
    const { fake, post } = await start(({ as, rs }) => {
      rs.settings.challengeScope = 'read'
      if (listed) as.settings.scopesSupported = ['offline_access']
    }, options)
    await post()
    expect(asked(fake)).to.deep.equal([expected])
  })
}

it('R-54: does not request offline_access alone, or because the resource lists it', async () => {
  const alone = await start(({ as }) => {
    as.settings.scopesSupported = ['offline_access']
  })
  await alone.post()
  expect(asked(alone.fake)).to.deep.equal([null])
  const listed = await start(({ rs }) => {
    rs.settings.scopesSupported = ['read', 'offline_access']
  })
  await listed.post()
  expect(asked(listed.fake)).to.deep.equal(['read'])
})

it('R-86: a step-up requests earlier requested, granted and required scopes together', async () => {
  const { fake, post } = await start(fake => {
    twoLevels(fake)
    fake.as.settings.grantScope = scope => `${scope} bonus`
  })
  await post()
  expect((await post('/write')).status).to.equal(200)
  expect(asked(fake)[1]?.split(' ').sort()).to.deep.equal(['bonus', 'read', 'write'])
})

it('R-86: requests configured scopes together with required ones', async () => {
  const { fake, post } = await start(twoLevels, { scopes: ['read'] })
  await post()
  await post('/write')
  expect(asked(fake)).to.deep.equal(['read', 'read write'])
})

it('R-83, R-87: a step-up is a new authorization, never a refresh', async () => {
  const { fake, post } = await start(twoLevels)
  await post()
  await post('/write')
  expect(fake.as.to('/token').map(({ form }) => form.get('grant_type'))).to.deep.equal([
    'authorization_code',
    'authorization_code',
  ])
})

it('R-88: does not request a refused scope again until the operation succeeds', async () => {
  let generous = false
  const { fake, post } = await start(fake => {
    twoLevels(fake)
    fake.as.settings.grantScope = scope => (generous ? scope : 'read')
  })
  await post()
  const responses = [await post('/write'), await post('/write')]
  expect(responses.map(({ status }) => status)).to.deep.equal([403, 403])
  expect(fake.logins.length).to.equal(2)
  // Another operation has a try of its own.
  generous = true
  expect((await post('/admin')).status).to.equal(200)
  expect(fake.logins.length).to.equal(3)
  expect((await post('/write')).status).to.equal(200)
})

it('R-88: distinguishes operations by Mcp-Method and Mcp-Name', async () => {
  const { fake, post } = await start(fake => {
    fake.rs.settings.challengeScope = 'read'
    fake.rs.settings.scopes = { '/mcp': 'read', one: 'x', two: 'x' }
    fake.as.settings.grantScope = () => 'read'
  })
  await post()
  const call = (name: string) => post(undefined, { headers: { 'mcp-method': 'tools/call', 'mcp-name': name } })
  await call('one')
  await call('one')
  expect(fake.logins.length).to.equal(2)
  await call('two')
  expect(fake.logins.length).to.equal(3)
})

it('R-88: requests a scope once, even if the token already has it', async () => {
  const { fake, post } = await start(fake => {
    twoLevels(fake)
    fake.rs.settings.challengeScope = 'read write'
  })
  await post()
  fake.rs.failNext('/write', {
    status: 403,
    headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="write"' },
  })
  expect((await post('/write')).status).to.equal(200)
  expect(fake.logins.length).to.equal(2)
})

it('R-89: client_credentials requests more scopes once, then returns the 403', async () => {
  const fake = await startFakeServers()
  twoLevels(fake)
  fake.as.addClient({ client_id: 'machine', client_secret: 's3cret-of-machine', redirect_uris: [] })
  const credentials = {
    clientId: 'machine',
    clientSecret: 's3cret-of-machine',
    grant: { type: 'client_credentials' },
  } as const
  const { post } = startClient(fake, credentials)
  expect((await post()).status).to.equal(200)
  expect((await post('/write')).status).to.equal(200)
  fake.as.settings.grantScope = () => 'read'
  const sent = fake.as.count('/token')
  expect((await post('/admin')).status).to.equal(403)
  expect(fake.as.count('/token') - sent).to.equal(1)
  expect(fake.as.to('/token').map(({ form }) => form.get('scope'))).to.deep.equal([
    'read',
    'read write',
    'read write admin',
  ])
})

it('R-90: keeps the scopes after an intermediate 401', async () => {
  const fake = await startFakeServers()
  twoLevels(fake)
  const tokenCache = createMemoryTokenCache()
  const { post } = startClient(fake, { tokenCache })
  await post()
  await post('/write')
  for (const { family } of fake.as.tokens.issued) fake.as.tokens.end(family)
  expect((await post()).status).to.equal(200)
  expect(asked(fake).at(-1)).to.equal('read write')
})

it('returns the 403 of a GET without a step-up', async () => {
  const { fake, post, get } = await start(twoLevels)
  await post()
  const response = await get('/write')
  expect([response.status, response.bodyUsed]).to.deep.equal([403, false])
  await response.body?.cancel()
  expect(fake.logins.length).to.equal(1)
})

it('session.login adds scopes to the existing ones', async () => {
  const { fake, post, authFetch } = await start(twoLevels)
  await post()
  await authFetch.session.login({ scopes: ['write'] })
  expect(asked(fake).at(-1)).to.equal('read write')
  expect((await post('/write')).status).to.equal(200)
  expect(fake.logins.length).to.equal(2)
})

it('R-62: completes a deferred login in another process with the callback URL', async () => {
  const fake = await startFakeServers()
  const tokenCache = createMemoryTokenCache()
  const records = new Map<string, string>()
  const flowStore = {
    save: (state: string, record: unknown) => void records.set(state, JSON.stringify(record)),
    take(state: string) {
      const record = records.get(state)
      records.delete(state)
      return record === undefined ? undefined : JSON.parse(record)
    },
  }
  const options = { tokenCache, flowStore, interactive: 'defer' } as const
  const error = await authErrorOf(() => startClient(fake, options).post())
  expect(error.code).to.equal('interaction_required')
  const { authorizationUrl, state } = error as unknown as { authorizationUrl: string; state: string }
  expect(new URL(authorizationUrl).searchParams.get('state')).to.equal(state)
  const callback = await fake.delegate(new URL(authorizationUrl))
  const elsewhere = startClient(fake, options)
  await elsewhere.authFetch.session.completeAuthorization(callback)
  expect((await elsewhere.post()).status).to.equal(200)
  expect(fake.logins.length).to.equal(1)
  // A response is good once.
  const again = await authErrorOf(() => elsewhere.authFetch.session.completeAuthorization(callback))
  expect(again.code).to.equal('state_mismatch')
})

it('R-62: completes a deferred login in another process at a server that requires DPoP', async () => {
  const fake = await startFakeServers()
  fake.as.settings.dpop = 'required'
  fake.rs.settings.dpop = true
  const flowStore = createMemoryFlowStore()
  const options = { tokenCache: createMemoryTokenCache(), flowStore, interactive: 'defer' } as const
  const error = await authErrorOf(() => startClient(fake, options).post())
  const callback = await fake.delegate(new URL((error as unknown as { authorizationUrl: string }).authorizationUrl))
  const elsewhere = startClient(fake, options)
  await elsewhere.authFetch.session.completeAuthorization(callback)
  expect((await elsewhere.post()).status).to.equal(200)
})

it('R-62: rejects a response for the login of another session', async () => {
  const fake = await startFakeServers()
  const shared = startClient(fake, { interactive: 'defer', profile: 'one' })
  const error = await authErrorOf(() => shared.post())
  const callback = await fake.delegate(new URL((error as unknown as { authorizationUrl: string }).authorizationUrl))
  const other = startClient(fake, { interactive: 'defer', profile: 'two' })
  expect((await authErrorOf(() => other.authFetch.session.completeAuthorization(callback))).code).to.equal(
    'state_mismatch',
  )
})
