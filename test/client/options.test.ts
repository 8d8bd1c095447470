// Tests the client options: validation, defaults and presets.
import { expect } from 'chai'
import { type ClientOAuthOptions, createAuthFetch, entra, google } from '../../client/index.ts'
import { createAuthFetch as createOnNode } from '../../client/node/auth-fetch.ts'
import { resolveOptions } from '../../client/resolve-options.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

const GOOD: ClientOAuthOptions = { serverUrl: 'https://mcp.example/mcp', redirectUri: 'http://127.0.0.1:8765/callback' }

const WRONG: ReadonlyArray<readonly [string, Partial<ClientOAuthOptions>, RegExp]> = [
  ['serverUrl that is no URL', { serverUrl: 'mcp.example' }, /serverUrl.*URL: "mcp.example"/],
  ['serverUrl of another scheme', { serverUrl: 'ftp://mcp.example' }, /serverUrl/],
  ['serverUrl with a password', { serverUrl: 'https://me:secret@mcp.example' }, /serverUrl/],
  ['no redirectUri', { redirectUri: undefined as never }, /redirectUri/],
  ['redirectUri that is http elsewhere', { redirectUri: 'http://app.example/cb' }, /redirectUri.*app\.example/],
  ['redirectUri with a fragment', { redirectUri: 'https://app.example/cb#x' }, /redirectUri/],
  ['redirectUri of a dangerous scheme', { redirectUri: 'javascript:alert(1)' }, /redirectUri/],
  ['clientSecret alone', { clientSecret: 'x' }, /clientSecret without clientId/],
  ['clientSecret without an issuer', { clientId: 'me', clientSecret: 'x' }, /clientSecret without clientIssuer/],
  [
    'initialAccessToken without an issuer',
    { dynamicClientRegistration: { initialAccessToken: 'x' } },
    /dynamicClientRegistration\.initialAccessToken without clientIssuer/,
  ],
  ['clientSecret that is empty', { clientId: 'me', clientSecret: '' }, /clientSecret/],
  ['clientId that is empty', { clientId: '' }, /clientId/],
  ['clientIssuer alone', { clientIssuer: 'https://as.example' }, /clientIssuer without clientId/],
  [
    'client_credentials without clientId',
    { grant: { type: 'client_credentials' } },
    /client_credentials needs clientId/,
  ],
  [
    'both delegates',
    { authorizationRedirectDelegate: async () => null, authorizationCallbackHandler: async () => null },
    /both set/,
  ],
  ['metadata document that is http', { clientMetadataDocumentUri: 'http://a.example/c' }, /not https/],
  ['metadata document without a path', { clientMetadataDocumentUri: 'https://a.example' }, /no path/],
  ['metadata document with a fragment', { clientMetadataDocumentUri: 'https://a.example/c#x' }, /fragment/],
  ['metadata document with a user', { clientMetadataDocumentUri: 'https://u@a.example/c' }, /user/],
  ['metadata document with dot segments', { clientMetadataDocumentUri: 'https://a.example/x/../c' }, /dot segments/],
  [
    'metadata document with encoded dots',
    { clientMetadataDocumentUri: 'https://a.example/x/%2e%2E/c' },
    /dot segments/,
  ],
  ['scopes with a space', { scopes: ['a b'] }, /scopes has "a b"/],
  ['loginTimeoutMs below 0', { loginTimeoutMs: -1 }, /loginTimeoutMs is -1/],
  ['maxStepUps that is no whole number', { maxStepUps: 1.5 }, /maxStepUps is 1\.5; give a whole number of 0 or more/],
  ['maxStepUps that is infinite', { maxStepUps: Number.POSITIVE_INFINITY }, /maxStepUps is Infinity/],
  ['maxStepUps that is no number', { maxStepUps: Number.NaN }, /maxStepUps is NaN/],
]

for (const [name, options, message] of WRONG) {
  it(`rejects ${name}`, async () => {
    const error = await authErrorOf(() => createAuthFetch({ ...GOOD, ...options }))
    expect(error.code).to.equal('invalid_options')
    expect(error.message).to.match(message)
    expect(error.fix).to.be.a('string').and.not.equal('')
    expect(error.message).not.to.include('me:secret')
  })
}

/** What a program in JavaScript, or one with a slip, may pass: options, what is wrong, what would fit. */
const UNFIT: ReadonlyArray<readonly [options: object, found: string, fix: string]> = [
  [{ grant: { type: 'client_credential' } }, 'grant.type is "client_credential"', "did you mean 'client_credentials'?"],
  [{ grant: { type: 'password' } }, 'grant.type is "password"', "one of 'authorization_code'"],
  [{ grant: 'device' }, 'grant is "device"', "did you mean 'device'?"],
  [{ grant: {} }, 'grant.type is missing', 'one of'],
  [{ grant: { type: 'device' } }, 'grant.onUserCode is missing', 'a function'],
  [{ grant: { type: 'device', onUsercode: () => {} } }, 'unknown option grant.onUsercode', 'grant.onUserCode?'],
  [
    { clientId: 'x', grant: { type: 'jwt_bearer', assertion: 'eyJhbGciOi' } },
    'grant.assertion is "eyJhbGciOi"',
    'a function',
  ],
  [
    { clientId: 'x', grant: { type: 'enterprise', idToken: async () => '', idp: {} } },
    'grant.idp.clientId is missing',
    'a text',
  ],
  [{ interactive: 'allways' }, 'interactive is "allways"', "one of 'post', 'any', 'never', 'defer'"],
  [{ interactive: 'nevre' }, 'interactive is "nevre"', "did you mean 'never'?"],
  [{ interactive: false }, 'interactive is false', "'never'"],
  [{ issuerMatch: 'ignore_trailing_slash' }, 'issuerMatch is "ignore_trailing_slash"', "'ignore-trailing-slash'?"],
  [{ dpop: 'Auto' }, 'dpop is "Auto"', "did you mean 'auto'?"],
  [{ dpop: 1 }, 'dpop is 1', "'auto', true or false"],
  [{ tokenCache: {} }, 'tokenCache is an object', 'getTokens and storeTokens'],
  [{ tokenCache: '/home/me/tokens' }, 'tokenCache is "/home/me/tokens"', 'getTokens'],
  [{ tokenCache: { getTokens() {}, storeTokens() {}, withLock: true } }, 'tokenCache is an object', 'getTokens'],
  [{ flowStore: { save() {} } }, 'flowStore is an object', 'save and take'],
  [{ scopes: 'read write' }, 'scopes is "read write"', 'a list of texts'],
  [{ scopeMode: 'replace' }, 'scopeMode is "replace"', "one of 'override', 'fallback'"],
  [{ resourceIndicator: 'none' }, 'resourceIndicator is "none"', "'omit', or an absolute URI"],
  [{ resourceIndicator: 'https://a.example/#x' }, 'resourceIndicator is', 'without a fragment'],
  [{ resourceMatch: 'prefix' }, 'resourceMatch is "prefix"', "'path-prefix'"],
  [{ refreshScope: true }, 'refreshScope is true', "'granted'"],
  [{ tokenEndpointAuthMethod: 'basic' }, 'tokenEndpointAuthMethod is "basic"', "'client_secret_basic'"],
  [{ legacyFallback: 'no' }, 'legacyFallback is "no"', 'true or false'],
  [{ loginTimeoutMs: 1e12 }, 'loginTimeoutMs is 1000000000000', 'to 2147483647'],
  [{ loginTimeoutMs: '60s' }, 'loginTimeoutMs is "60s"', 'milliseconds'],
  [{ redirectURI: 'http://127.0.0.1/cb' }, 'unknown option redirectURI', 'did you mean redirectUri?'],
  [{ issuer: 'https://as.example' }, 'unknown option issuer', 'available: serverUrl'],
  [{ networkPolicy: { allowedHosts: [] } }, 'unknown option networkPolicy.allowedHosts', 'networkPolicy.allowHosts?'],
  [{ networkPolicy: { allowHosts: 'a' } }, 'networkPolicy.allowHosts is "a"', 'a list of texts'],
  [
    { dynamicClientRegistration: { clientname: 'me' } },
    'unknown option dynamicClientRegistration.clientname',
    'did you mean dynamicClientRegistration.clientName?',
  ],
  [
    { dynamicClientRegistration: { applicationType: 'desktop' } },
    'dynamicClientRegistration.applicationType is "desktop"',
    "'native', 'web'",
  ],
  [{ trustedIssuers: { 'https://a': 'https://b' } }, 'trustedIssuers is an object', 'a list of issuers'],
  [{ assumePkceS256: true }, 'assumePkceS256 is true', 'a list of texts'],
  [{ authorizationRedirectDelegate: 'browser' }, 'authorizationRedirectDelegate is "browser"', 'a function'],
  [{ clientId: 'x', clientSecret: { v: 'hunter2hunter2' } }, 'clientSecret is an object', 'a text'],
  [{ clientId: 'x', privateKey: 5 }, 'privateKey is a number', 'a PKCS#8 PEM'],
  [{ serverUrl: undefined }, 'serverUrl is missing', 'a text or a URL'],
  [{ fetch: null }, 'fetch is null', 'a function'],
]

for (const create of [createAuthFetch, createOnNode]) {
  it(`reports each invalid value and each unknown option${create === createOnNode ? ', on Node' : ''}`, async () => {
    for (const [options, found, fix] of UNFIT) {
      const error = await authErrorOf(() => create({ ...GOOD, ...options } as ClientOAuthOptions))
      expect(error.code, error.message).to.equal('invalid_options')
      expect(error.message).to.include(found)
      expect(error.fix).to.include(fix)
      expect(error.message).not.to.include('hunter2')
    }
    for (const options of [undefined, null, 'https://mcp.example', []]) {
      const error = await authErrorOf(() => create(options as unknown as ClientOAuthOptions))
      expect([error.code, error.message.startsWith('the options are ')]).to.deep.equal(['invalid_options', true])
    }
  })
}

it('treats an undefined option as absent', () => {
  const resolved = resolveOptions({ ...GOOD, interactive: undefined, maxStepUps: undefined } as never)
  expect([resolved.interactive, resolved.maxStepUps]).to.deep.equal(['post', 2])
})

it('validates the scopes of a login like those of the options', async () => {
  const { session } = createAuthFetch(GOOD)
  for (const scopes of ['read', ['read write'], [5]]) {
    expect((await authErrorOf(() => session.login({ scopes } as never))).code).to.equal('invalid_options')
  }
})

for (const name of ['client_id', 'redirect_uri', 'response_type', 'code_challenge', 'state', 'resource', 'scope']) {
  it(`R-56: rejects ${name} in additionalAuthorizationParameters`, async () => {
    const additionalAuthorizationParameters = { audience: 'x', [name]: 'x' }
    const error = await authErrorOf(() => createAuthFetch({ ...GOOD, additionalAuthorizationParameters }))
    expect([error.code, error.message.includes(name)]).to.deep.equal(['invalid_options', true])
  })
}

for (const redirectUri of [
  'https://app.example/cb',
  'http://localhost/cb',
  'http://[::1]:80/cb',
  'com.example.app:/cb',
]) {
  it(`keeps the redirect URI ${redirectUri} unchanged`, () => {
    expect(resolveOptions({ ...GOOD, redirectUri }).redirectUri).to.equal(redirectUri)
  })
}

it('requires no redirect URI without user login', () => {
  const { serverUrl } = GOOD
  for (const options of [
    { interactive: 'never' },
    { grant: { type: 'client_credentials' }, clientId: 'me', clientSecret: 'x', clientIssuer: 'https://as.example' },
    { grant: { type: 'device', onUserCode: () => undefined } },
  ] satisfies Partial<ClientOAuthOptions>[]) {
    expect(() => createAuthFetch({ serverUrl, ...options })).not.to.throw()
  }
})

it('keeps URLs as written', () => {
  const resolved = resolveOptions({
    serverUrl: 'https://MCP.example:443',
    redirectUri: 'http://LOCALHOST:3000',
    clientMetadataDocumentUri: 'https://App.example:443/client',
  })
  expect([resolved.serverUrl, resolved.redirectUri, resolved.clientMetadataDocumentUri]).to.deep.equal([
    'https://MCP.example:443',
    'http://LOCALHOST:3000',
    'https://App.example:443/client',
  ])
})

it('authorizationCallbackHandler replaces the delegate, and its response is validated', async () => {
  const fake = await startFakeServers()
  const authFetch = createAuthFetch({
    serverUrl: fake.serverUrl,
    redirectUri: 'http://localhost:3000/callback',
    async authorizationCallbackHandler({ authorizationUri, redirectUri }) {
      expect(redirectUri).to.equal('http://localhost:3000/callback')
      const { searchParams } = await fake.delegate(authorizationUri)
      const [code, state, iss] = ['code', 'state', 'iss'].map(name => searchParams.get(name) ?? undefined)
      return { code, state, iss }
    },
  })
  expect((await authFetch(fake.serverUrl, { method: 'POST', body: '{}' })).status).to.equal(200)
})

it('responseDelegate receives the registration before the login', async () => {
  const fake = await startFakeServers()
  const told: unknown[] = []
  const { post } = startClient(fake, {
    dynamicClientRegistration: {
      clientName: 'Mine',
      responseDelegate(response) {
        told.push([response.clientId, response.issuer, fake.logins.length])
      },
    },
  })
  await post()
  const [login] = fake.logins
  expect(told).to.deep.equal([[login?.searchParams.get('client_id'), fake.as.issuer, 0]])
  expect(JSON.parse(fake.as.to('/register')[0]?.body ?? '{}').client_name).to.equal('Mine')
})

it('authServerSelector can be asynchronous', async () => {
  const fake = await startFakeServers({ authorizationServers: 2 })
  const second = fake.servers[1]
  fake.rs.settings.authorizationServers = fake.servers
  const listed: (readonly string[])[] = []
  const { post } = startClient(fake, {
    authServerSelector: async servers => {
      listed.push(servers)
      return second?.issuer ?? null
    },
  })
  expect((await post()).status).to.equal(200)
  expect(listed).to.deep.equal([fake.servers.map(({ issuer }) => issuer)])
  expect([fake.as.count('/token'), second?.count('/token')]).to.deep.equal([0, 1])
})

it('sends additionalAuthorizationParameters only to the authorization endpoint', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake, { additionalAuthorizationParameters: { audience: 'them', prompt: 'login' } })
  await post()
  const [login] = fake.logins
  expect([login?.searchParams.get('audience'), login?.searchParams.get('prompt')]).to.deep.equal(['them', 'login'])
  expect(fake.as.to('/token')[0]?.form.has('audience')).to.equal(false)
})

it('entra() omits the resource, sends the scope on refresh and assumes PKCE', async () => {
  const recipe = entra({ tenant: 'contoso', clientId: 'app', scopes: ['api://app/mcp'] })
  expect(recipe).to.include({ resourceIndicator: 'omit', refreshScope: 'granted', clientId: 'app' })
  expect(recipe.assumePkceS256).to.deep.equal(['https://login.microsoftonline.com/contoso/v2.0'])
  const fake = await startFakeServers()
  fake.as.settings.codeChallengeMethods = undefined
  fake.as.addClient({ client_id: 'app', redirect_uris: ['http://localhost:3000/callback'] })
  fake.rs.settings.checkAudience = false
  const { post } = startClient(fake, { ...recipe, assumePkceS256: [fake.as.issuer] })
  await post()
  fake.as.tokens.expireAll()
  expect((await post()).status).to.equal(200)
  const [login, refresh] = fake.as.to('/token').map(({ form }) => form)
  expect([fake.logins[0]?.searchParams.has('resource'), login?.has('resource')]).to.deep.equal([false, false])
  expect(refresh?.get('scope')).to.equal('api://app/mcp offline_access')
})

it('google() requests offline access with its own parameters', async () => {
  const fake = await startFakeServers()
  fake.as.addClient({
    client_id: 'app',
    client_secret: 'google-secret-1',
    redirect_uris: ['http://localhost:3000/callback'],
  })
  fake.rs.settings.checkAudience = false
  const options = google({ clientId: 'app', clientSecret: 'google-secret-1', scopes: ['openid'] })
  expect(options.clientIssuer).to.equal('https://accounts.google.com')
  const { post } = startClient(fake, { ...options, clientIssuer: fake.as.issuer })
  expect((await post()).status).to.equal(200)
  const query = fake.logins[0]?.searchParams
  expect([query?.get('access_type'), query?.get('scope'), query?.get('prompt')]).to.deep.equal([
    'offline',
    'openid',
    'consent',
  ])
})
