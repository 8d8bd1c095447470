// Tests provider options: incompatible combinations, presets and the resulting authorization request.
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { auth0, entra, github, google, keycloak, oauth, oidc, okta } from '../../../plugins/auth-bridge/providers.ts'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../../support/identity-provider.ts'
import { CALLBACK, makeUpstream } from '../../support/upstream.ts'

const AT = "plugins['auth-bridge'].provider"
const TENANT = '8d2d7b3e-0000-4000-8000-00c0ffee0001'
const own = { clientId: 'the-bridge', clientSecret: 'a secret' }
const endpoints = {
  authorization: 'https://id.acme.example/authorize',
  token: 'https://id.acme.example/token',
  userinfo: 'https://id.acme.example/me',
}

after(stopIdentityProviders)

function refusalOf(options: Record<string, unknown>): string {
  try {
    makeUpstream(options)
  } catch (error) {
    if (error instanceof StartError) return error.message
    throw error
  }
  throw new Error('it was taken')
}

describe('Upstream options: incompatible combinations', () => {
  for (const [options, place, says] of [
    [{ type: 'entra', ...own }, '', 'needs tenant'],
    [{ type: 'entra', ...own, tenant: 'acme.onmicrosoft.com' }, '.tenant', 'not a directory (tenant) id'],
    [{ type: 'entra', ...own, tenant: 'common' }, '.tenant', 'not a directory (tenant) id'],
    [{ type: 'entra', ...own, tenant: TENANT, issuer: 'https://login.microsoftonline.us/x/v2.0' }, '.issuer', 'tenant'],
    [{ type: 'entra', ...own, tenant: TENANT, domain: 'acme.example' }, '.domain', 'does not use it'],
    [{ type: 'okta', ...own }, '', 'needs domain'],
    [{ type: 'okta', ...own, domain: 'https://acme.okta.com' }, '.domain', 'not a host name'],
    [{ type: 'okta', ...own, domain: 'acme.okta.com/oauth2' }, '.domain', 'not a host name'],
    [{ type: 'okta', ...own, domain: 'acme.okta.com', tenant: TENANT }, '.tenant', 'does not use it'],
    [{ type: 'google', ...own, tenant: TENANT }, '.tenant', 'does not use it'],
    [{ type: 'google', ...own, domain: 'acme.example' }, '.domain', 'does not use it'],
    [{ type: 'google', ...own, issuer: 'https://id.acme.example' }, '.issuer', 'one issuer'],
    [{ type: 'google', clientId: 'x', authMethod: 'none' }, '.authMethod', 'with clientSecret'],
    [{ type: 'google', clientId: 'x' }, '', 'needs clientSecret'],
    [{ type: 'github', ...own, issuer: 'https://github.com' }, '.issuer', 'does not use it'],
    [{ type: 'github', ...own, exchange: 'refresh' }, '.exchange', 'other scopes'],
    [{ type: 'auth0', ...own }, '', 'needs domain'],
    [{ type: 'keycloak', ...own }, '', 'needs issuer'],
    [{ type: 'oidc', ...own }, '', 'needs issuer'],
    [{ type: 'oidc', ...own, issuer: 'http://id.acme.example' }, '.issuer', 'https://'],
    [{ type: 'oidc', ...own, issuer: 'https://id.acme.example', endpoints }, '.endpoints', 'does not use it'],
    [{ type: 'oidc', clientId: 'x', issuer: 'https://id.acme.example' }, '', "authMethod: 'none'"],
    [
      { type: 'oidc', ...own, issuer: 'https://id.acme.example', authMethod: 'none' },
      '.authMethod',
      'for public clients',
    ],
    [{ type: 'oauth', ...own }, '', 'needs endpoints'],
    [
      { type: 'oauth', ...own, endpoints: { ...endpoints, token: 'http://id.acme.example/t' } },
      '.endpoints',
      'https://',
    ],
    ...[
      'response_type',
      'client_id',
      'redirect_uri',
      'state',
      'nonce',
      'code_challenge',
      'code_challenge_method',
      'scope',
      'request',
    ].map(
      name => [{ type: 'google', ...own, parameters: { [name]: 'x' } }, '.parameters', `${name} is set by`] as const,
    ),
  ] as ReadonlyArray<readonly [Record<string, unknown>, string, string]>) {
    it(`are rejected at ${AT}${place}: ${JSON.stringify(options)}`, () => {
      const told = refusalOf(options)
      expect(told).to.include(`${AT}${place}: `)
      expect(told).to.include(says)
      expect(told).to.not.include(own.clientSecret)
    })
  }
})

describe('Upstream options: presets', () => {
  for (const options of [
    entra({ ...own, tenant: TENANT }),
    entra({ ...own, issuer: `https://login.microsoftonline.us/${TENANT}/v2.0` }),
    okta({ ...own, domain: 'acme.okta.com' }),
    okta({ ...own, issuer: 'https://acme.okta.com/oauth2/default' }),
    google({ ...own, parameters: { hd: 'acme.example' } }),
    github(own),
    auth0({ ...own, domain: 'acme.eu.auth0.com' }),
    keycloak({ ...own, issuer: 'https://id.acme.example/realms/acme' }),
    oidc({ clientId: 'public', authMethod: 'none', issuer: 'https://id.acme.example' }),
    oauth({ ...own, endpoints, label: 'Acme' }),
  ]) {
    it(`expand ${options.type} to plain options that are valid`, () => {
      expect(JSON.parse(JSON.stringify(options))).to.deep.equal(options)
      const { upstream } = makeUpstream(options)
      expect(upstream.label).to.be.a('string').and.not.equal('')
    })
  }
})

describe('Upstream options: authorization request', () => {
  let idp: IdentityProvider
  before(async () => {
    idp = await startIdentityProvider({ redirects: [CALLBACK] })
  })

  const ask = async (options: Record<string, unknown>, request: Record<string, unknown> = {}) => {
    const { upstream } = makeUpstream(idp.options(options))
    const { url, underWay } = await upstream.startLogin({ redirectUri: CALLBACK, state: 'a state', ...request })
    return { parameters: Object.fromEntries(new URL(url).searchParams), underWay }
  }

  it('contains the defaults of the provider type', async () => {
    const { parameters, underWay } = await ask({})
    expect(parameters).to.include({
      response_type: 'code',
      client_id: idp.clientId,
      redirect_uri: CALLBACK,
      state: 'a state',
      scope: 'openid profile email offline_access',
      prompt: 'consent',
      nonce: underWay.nonce,
    })
    expect(parameters).to.not.have.any.keys('login_hint', 'resource')
  })

  it('omits offline_access if the metadata of an oidc provider does not list it', async () => {
    idp.metadata = { scopes_supported: ['openid', 'profile', 'email'] }
    const { parameters } = await ask({})
    idp.metadata = {}
    expect(parameters['scope']).to.equal('openid profile email')
    expect(parameters).to.not.have.property('prompt')
  })

  it('contains the configured scopes and openid', async () => {
    const { parameters } = await ask({ scopes: ['email', 'reports'] })
    expect(parameters['scope']).to.equal('openid email reports')
  })

  it('contains additional parameters, including prompt', async () => {
    const { parameters } = await ask({ parameters: { hd: 'acme.example', prompt: 'login' } })
    expect(parameters).to.include({ hd: 'acme.example', prompt: 'login' })
    expect((await ask({ parameters: { prompt: '' } })).parameters).to.not.have.property('prompt')
    const asked = await ask({ parameters: { prompt: 'login' } }, { prompt: 'select_account' })
    expect(asked.parameters['prompt']).to.equal('select_account consent')
  })

  it('limits login_hint to 256 characters', async () => {
    for (const [loginHint, sent] of [
      ['ann@acme.example', 'ann@acme.example'],
      ['a'.repeat(256), 'a'.repeat(256)],
      ['a'.repeat(257), undefined],
      ['', undefined],
    ] as const) {
      expect((await ask({}, { loginHint })).parameters['login_hint']).to.equal(sent)
    }
  })

  it('has a new PKCE challenge and nonce each time', async () => {
    const { upstream } = makeUpstream(idp.options())
    const request = { redirectUri: CALLBACK, state: 'a state' }
    const all = await Promise.all(Array.from({ length: 50 }, () => upstream.startLogin(request)))
    for (const read of [
      ({ url }: (typeof all)[number]) => new URL(url).searchParams.get('code_challenge'),
      ({ underWay }: (typeof all)[number]) => underWay.nonce,
      ({ underWay }: (typeof all)[number]) => underWay.codeVerifier,
    ])
      expect(new Set(all.map(read)).size).to.equal(50)
  })

  it('for google requests offline access, and ignores prompt=login', async () => {
    const { parameters } = await ask({ type: 'google' }, { prompt: 'login' })
    expect(parameters).to.include({ access_type: 'offline', prompt: 'select_account consent' })
    expect(parameters['scope']).to.equal('openid profile email')
  })

  it('for okta requests groups if the metadata lists them', async () => {
    expect((await ask({ type: 'okta' })).parameters['scope']).to.equal('openid profile email groups offline_access')
    idp.metadata = { scopes_supported: ['openid'] }
    expect((await ask({ type: 'okta' })).parameters['scope']).to.equal('openid profile email offline_access')
    idp.metadata = {}
  })

  it('without offline_access logs a warning if the type requires it', () => {
    const { lines } = makeUpstream(idp.options({ type: 'keycloak', scopes: ['email'] }))
    expect(lines.map(({ level }) => level)).to.deep.equal(['warn'])
  })
})

describe('Upstream options: client secret', () => {
  for (const [listed, header] of [
    [['client_secret_basic', 'client_secret_post'], true],
    [['client_secret_post', 'private_key_jwt'], false],
    [['private_key_jwt'], true],
    [undefined, true],
  ] as const) {
    it(`is sent in ${header ? 'the header' : 'the body'} if the metadata lists ${listed?.join(', ')}`, async () => {
      const authMethod = header ? 'client_secret_basic' : 'client_secret_post'
      const idp = await startIdentityProvider({ redirects: [CALLBACK], authMethod })
      idp.metadata = { token_endpoint_auth_methods_supported: listed }
      const { upstream } = makeUpstream(idp.options())
      const request = { redirectUri: CALLBACK, state: 'a state' }
      const { url, underWay } = await upstream.startLogin(request)
      await upstream.finish(await idp.signIn(url), underWay, request)
      const sent = idp.requests.find(({ endpoint }) => endpoint === 'token')
      expect(sent?.authorization?.startsWith('Basic ') ?? false).to.equal(header)
      expect(sent?.form['client_secret']).to.equal(header ? undefined : idp.clientSecret)
    })
  }

  it('is not sent by a public client', async () => {
    const idp = await startIdentityProvider({ redirects: [CALLBACK], authMethod: 'none' })
    const { upstream } = makeUpstream(idp.options())
    const request = { redirectUri: CALLBACK, state: 'a state' }
    const { url, underWay } = await upstream.startLogin(request)
    await upstream.finish(await idp.signIn(url), underWay, request)
    const sent = idp.requests.find(({ endpoint }) => endpoint === 'token')
    expect(sent?.form['client_id']).to.equal(idp.clientId)
    expect(sent?.authorization).to.equal(undefined)
  })
})
