// Tests `mcp-host doctor --config` with auth-bridge and a test identity provider with one configuration error at a
// time.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { PluginFinding } from '../../core/config/examination.ts'
import { definePlugin } from '../../core/internal.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import {
  type IdentityProvider,
  type IdpSettings,
  startIdentityProvider,
  stopIdentityProviders,
} from '../support/identity-provider.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'
import { CALLBACK, configOf, examine, PUBLIC } from './doctor-bridge-config.ts'
import { runCli, stopAll } from './in-process.ts'

/** A page as a vendor shows it, in the place of the authorization endpoint. */
interface Shown {
  readonly status: number
  readonly body?: string
  readonly location?: string
}

const idps = new Map<string, IdentityProvider>()
let shown: Shown = { status: 200 }
let pages: Server

/** The provider with these ways, where the bridge is registered as it must be. */
async function idpOf(vendor: IdpSettings['vendor'] = 'oidc'): Promise<IdentityProvider> {
  const known = idps.get(vendor)
  if (known) return known
  const idp = await startIdentityProvider({ vendor, redirects: [CALLBACK] })
  idps.set(vendor, idp)
  return idp
}

const wrongs = (findings: readonly PluginFinding[]) => findings.filter(({ level }) => level === 'wrong')
const told = (findings: readonly PluginFinding[]) =>
  findings.map(({ check, level, text, fix = '' }) => `${level} ${check}: ${text} -> ${fix}`).join('\n')

describe('mcp-host doctor: auth-bridge', () => {
  let page = ''

  before(async () => {
    pages = createServer((_request, response) => {
      const { status, body = '', location } = shown
      response.writeHead(status, { 'Content-Type': 'text/html', ...(location !== undefined && { Location: location }) })
      response.end(body)
    })
    await new Promise<void>(resolve => pages.listen(0, '127.0.0.1', resolve))
    page = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/authorize`
  })
  afterEach(() => {
    for (const idp of idps.values()) {
      idp.metadata = {}
      idp.mood = 'well'
      for (const endpoint of Object.keys(idp.failing)) delete idp.failing[endpoint as keyof typeof idp.failing]
    }
  })
  after(async () => {
    pages.close()
    await stopAll()
    await Promise.all([stopIdentityProviders(), stopIssuers(), removeFolders()])
  })

  for (const vendor of ['oidc', 'entra', 'okta', 'auth0', 'keycloak'] as const) {
    it(`finds no problem at ${vendor}, with every check`, async () => {
      const idp = await idpOf(vendor)
      const findings = await examine(configOf(idp.options()))
      expect(wrongs(findings), told(findings)).to.deep.equal([])
      for (const check of [
        'provider',
        'keys',
        'clock',
        'redirect URI',
        'authorization request',
        'client secret',
        'renewal',
      ])
        expect(told(findings)).to.include(`ok auth-bridge: ${check}: `)
    })
  }

  it('finds no problem at google, which can show its login page', async () => {
    const idp = await idpOf('google')
    const findings = await examine(configOf(idp.options()))
    expect(wrongs(findings), told(findings)).to.deep.equal([])
    expect(told(findings)).to.include('ok auth-bridge: client secret: ')
  })

  for (const [what, vendor, changes, check, words] of [
    ['another secret', 'oidc', { clientSecret: 'x'.repeat(40) }, 'client secret', /invalid_client.*clientSecret/],
    ['another client id', 'oidc', { clientId: 'nobody' }, 'redirect URI', /invalid_client/],
    [
      'another way to show the secret',
      'oidc',
      { authMethod: 'client_secret_post' },
      'client secret',
      /client_secret_post/,
    ],
    [
      'a resource, at Entra',
      'entra',
      { parameters: { resource: 'https://graph.example' } },
      'authorization request',
      /AADSTS9010010.*docs\/bridge\/entra/,
    ],
    ['no offline access, at Google', 'google', { parameters: { access_type: 'online' } }, 'renewal', /access_type/],
    [
      'offline_access, at Google',
      'google',
      { scopes: ['openid', 'offline_access'] },
      'authorization request',
      /invalid_scope/,
    ],
    ['the issuer with another path', 'oidc', { issuer: 'other' }, 'provider', /404|no metadata|answers/],
  ] as const) {
    it(`finds ${what}`, async () => {
      const idp = await idpOf(vendor)
      const issuer = 'issuer' in changes ? { issuer: `${idp.origin}/elsewhere` } : {}
      const findings = await examine(configOf(idp.options({ ...changes, ...issuer })))
      const mine = wrongs(findings).filter(finding => finding.check === `auth-bridge: ${check}`)
      expect(told(mine), told(findings)).to.match(words)
      expect(
        mine.every(({ fix }) => fix !== undefined && fix !== ''),
        told(mine),
      ).to.equal(true)
      expect(told(findings)).to.not.include(idp.clientSecret)
    })
  }

  it('finds a scope that the provider rejects or does not list', async () => {
    const idp = await idpOf()
    const config = configOf(idp.options({ scopes: ['openid', 'no-such-scope'] }))
    const ignored = await examine(config)
    expect(wrongs(ignored), told(ignored)).to.deep.equal([])
    expect(told(ignored)).to.match(/note auth-bridge: scopes: .*no-such-scope/)
    idp.failing.authorization = { error: 'invalid_scope', error_description: 'requested scope is not allowed' }
    expect(told(wrongs(await examine(config)))).to.match(/authorization request: .*invalid_scope.*`scopes`/)
  })

  it('finds a redirect URI that is not registered', async () => {
    const idp = await idpOf()
    const findings = await examine(configOf(idp.options(), {}, { publicUrl: 'https://elsewhere.example' }))
    expect(told(wrongs(findings))).to.match(/redirect URI: .*redirect_uri/)
  })

  it('finds metadata of another issuer, and missing metadata', async () => {
    const idp = await idpOf()
    idp.metadata = { issuer: 'https://other.example' }
    expect(told(wrongs(await examine(configOf(idp.options()))))).to.match(
      /provider: .*https:\/\/other\.example.*issuer/,
    )
    idp.metadata = { token_endpoint: undefined }
    expect(told(wrongs(await examine(configOf(idp.options()))))).to.match(/provider: .*no token_endpoint/)
  })

  it('finds an unavailable provider, and ends', async () => {
    const idp = await idpOf()
    for (const [mood, words] of [
      ['down', /provider: .*fails/],
      ['gone', /provider: .*reach/],
    ] as const) {
      idp.mood = mood
      const findings = await examine(configOf(idp.options()))
      expect(told(wrongs(findings))).to.match(words)
      expect(findings).to.have.length(1)
    }
  })

  for (const [what, vendor, reply, words] of [
    [
      'Entra: redirect URI',
      'entra',
      { status: 200, body: `<div id="x">AADSTS50011: The redirect URI &#39;${CALLBACK}&#39; specified</div>` },
      /AADSTS50011: .*docs\/bridge\/entra/,
    ],
    [
      'Entra: application',
      'entra',
      { status: 400, body: '<p>AADSTS700016: Application with identifier was not found</p>' },
      /AADSTS700016.*docs\/bridge\/entra/,
    ],
    [
      'Entra: tenant',
      'entra',
      { status: 400, body: 'AADSTS90002: Tenant not found' },
      /AADSTS90002.*docs\/bridge\/entra/,
    ],
    [
      'Google: redirect URI, in the address',
      'google',
      {
        status: 302,
        location: `https://accounts.google.com/signin/oauth/error?authError=${encodeURIComponent(Buffer.from('\n\x15redirect_uri_mismatch\x12\xb4').toString('base64'))}`,
      },
      /redirect_uri_mismatch/,
    ],
    ['Google: client, on the page', 'google', { status: 401, body: 'Error 401: invalid_client' }, /invalid_client/],
    [
      'Google: deleted client',
      'google',
      {
        status: 302,
        location: `https://accounts.google.com/signin/oauth/error?authError=${Buffer.from('..deleted_client..').toString('base64')}`,
      },
      /deleted_client/,
    ],
    [
      'Keycloak: redirect URI',
      'keycloak',
      { status: 400, body: '<p class="instruction">Invalid parameter: redirect_uri</p>' },
      /docs\/bridge\/keycloak/,
    ],
    [
      'Keycloak: client',
      'keycloak',
      { status: 400, body: '<p class="instruction">Client not found.</p>' },
      /Client not found.*clientId/,
    ],
    ['Auth0: redirect URI', 'auth0', { status: 403, body: '<h1>Callback URL mismatch.</h1>' }, /docs\/bridge\/auth0/],
    [
      'Okta: redirect URI',
      'okta',
      {
        status: 400,
        body: `<p>The &#039;redirect_uri&#039; parameter must be a Login redirect URI in the client app settings</p>`,
      },
      /docs\/bridge\/okta/,
    ],
    ['an error that says nothing', 'oidc', { status: 500, body: 'oops' }, /returns 500.*clientId/],
  ] as const) {
    it(`reads the error page of a vendor: ${what}`, async () => {
      const idp = await idpOf(vendor)
      idp.metadata = { authorization_endpoint: page }
      shown = reply
      const findings = await examine(configOf(idp.options()))
      expect(told(wrongs(findings)), told(findings))
        .to.match(/redirect URI: /)
        .and.match(words)
      expect(told(findings)).to.not.include(idp.clientSecret)
    })
  }

  it('detects a login page, whatever its scripts contain', async () => {
    const idp = await idpOf()
    idp.metadata = { authorization_endpoint: page }
    for (const reply of [
      {
        status: 200,
        body: '<script>const errors = ["invalid_client", "access_denied", "redirect_uri"]</script><form>',
      },
      { status: 302, location: 'https://idp.example/login?return_to=%2Fauthorize%3Fredirect_uri%3Dx' },
      { status: 302 },
    ]) {
      shown = reply
      const findings = await examine(configOf(idp.options()))
      expect(wrongs(findings), told(findings)).to.deep.equal([])
      expect(told(findings)).to.match(/note auth-bridge: redirect URI: /)
    }
  })

  for (const [what, vendor, answer, words] of [
    [
      'Entra: wrong secret',
      'entra',
      { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.', status: 401 },
      /AADSTS7000215.*docs\/bridge\/entra/,
    ],
    [
      'Entra: secret that has expired',
      'entra',
      { error: 'invalid_client', error_description: 'AADSTS7000222: The provided client secret keys are expired.' },
      /AADSTS7000222.*docs\/bridge\/entra/,
    ],
    [
      'Entra: scope',
      'entra',
      { error: 'invalid_scope', error_description: "AADSTS650053: asked for scope 'x' that doesn't exist." },
      /AADSTS650053.*docs\/bridge\/entra/,
    ],
    [
      'Entra: a mistake in the set-up called invalid_grant',
      'entra',
      { error: 'invalid_grant', error_description: 'AADSTS50011: The redirect URI' },
      /AADSTS50011.*docs\/bridge\/entra/,
    ],
    [
      'Okta',
      'okta',
      {
        error: 'invalid_client',
        error_description: 'The client secret supplied for a confidential client is invalid.',
        status: 401,
      },
      /clientSecret.*docs\/bridge\/okta/,
    ],
    [
      'Keycloak',
      'keycloak',
      { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials', status: 401 },
      /unauthorized_client.*docs\/bridge\/keycloak/,
    ],
    ['another', 'oidc', { error: 'server_trouble' }, /server_trouble.*check clientId/],
  ] as const) {
    it(`interprets the token endpoint: ${what}`, async () => {
      const idp = await idpOf(vendor)
      idp.failing.token = answer
      const findings = await examine(configOf(idp.options()))
      expect(told(wrongs(findings)), told(findings))
        .to.match(/client secret: /)
        .and.match(words)
    })
  }

  it('checks GitHub, which reports errors with 200 and shows its login page', async () => {
    const idp = await idpOf()
    const endpoints = { authorization: page, token: `${idp.origin}/token`, userinfo: `${idp.origin}/me` }
    const config = configOf({ type: 'github', clientId: 'x', clientSecret: idp.clientSecret, endpoints })
    shown = { status: 302, location: 'https://github.com/login?client_id=x' }
    const answers = [
      ['incorrect_client_credentials', /wrong auth-bridge: client secret: .*docs\/bridge\/github/],
      ['bad_verification_code', /ok auth-bridge: client secret: /],
    ] as const
    for (const [error, words] of answers) {
      idp.failing.token = { status: 200, error, error_description: 'as GitHub has it' }
      const findings = await examine(config)
      expect(told(findings))
        .to.match(words)
        .and.match(/note auth-bridge: redirect URI: /)
    }
  })

  it('reports a wrong secret only for a response about the secret', async () => {
    const idp = await idpOf('entra')
    idp.failing.token = {
      error: 'invalid_request',
      error_description: 'AADSTS9002313: Invalid request. Request is malformed.',
    }
    const findings = await examine(configOf(idp.options()))
    expect(wrongs(findings), told(findings)).to.deep.equal([])
    expect(told(findings)).to.match(/note auth-bridge: client secret: /)
  })

  it('prints no secret that the provider echoes', async () => {
    const idp = await idpOf()
    idp.failing.token = { error: 'invalid_client', error_description: `the secret ${idp.clientSecret} is wrong` }
    idp.metadata = { authorization_endpoint: page }
    shown = { status: 400, body: `invalid_client ${idp.clientSecret}` }
    const findings = await examine(configOf(idp.options()))
    expect(wrongs(findings)).to.have.length(2)
    expect(JSON.stringify(findings)).to.not.include(idp.clientSecret)
  })

  it('fetches the keys of the issuers of identity assertions', async () => {
    const idp = await idpOf()
    const [good, away] = [await startIssuer(), await startIssuer()]
    away.mood = 'missing'
    const trustedIssuers = [{ issuer: good.url }, { issuer: away.url }]
    const findings = await examine(configOf(idp.options(), { trustedIssuers }))
    expect(told(findings)).to.include(`ok auth-bridge: trusted issuer: the keys of ${good.url} can`)
    expect(told(wrongs(findings))).to.include(away.url)
  })

  it('reports which checks need the URL of the host', async () => {
    const idp = await idpOf()
    const findings = await examine(configOf(idp.options(), {}, { port: 0 }))
    expect(wrongs(findings)).to.deep.equal([])
    expect(told(findings)).to.match(/note auth-bridge: redirect URI: .*http\.publicUrl/)
  })

  it('for any plugin: findings name the plugin, and a failed check is a finding', async () => {
    const plugin = definePlugin({
      setup: () => undefined,
      examine: async (_options, { at, url }) => [
        { check: 'place', level: 'ok' as const, text: `${at.join('.')} ${url('/x')}` },
      ],
    })
    const broken = definePlugin({ setup: () => undefined, examine: () => Promise.reject(new Error('it broke')) })
    const config = configOf({})
    const findings = await examine({
      ...config,
      plugins: { 'transport-streamable': {}, mine: plugin(), broken: broken() },
      routes: { '/': { toolsets: 'all' } },
    })
    expect(findings[0]).to.deep.equal({ check: 'mine: place', level: 'ok', text: `plugins.mine ${PUBLIC}/x` })
    expect(findings[1]).to.include({ check: 'broken', level: 'wrong', text: 'it could not be examined: it broke' })
  })

  describe('on the command line', () => {
    const folder = async (secret: string) => {
      const idp = await idpOf()
      const { toolsets: _, ...config } = configOf(idp.options({ clientSecret: secret }))
      return makeFolder({ 'a.json': JSON.stringify({ ...config, toolsets: { all: [] } }) })
    }

    it('prints problems with their fixes, exits 1, and prints no secret', async () => {
      const secret = 'quite another secret, that nobody may see'
      const { code, stdout, stderr } = await runCli(['doctor', '--config', 'a.json'], await folder(secret))
      expect([code, stderr]).to.deep.equal([1, ''])
      expect(stdout)
        .to.match(/^ok +auth-bridge: redirect URI /m)
        .and.match(/^WRONG +auth-bridge: client secret .*\n +fix: /m)
      expect(stdout).to.not.include(secret)
    })

    it('--json: exits 0 without problems', async () => {
      const { clientSecret } = await idpOf()
      const { code, stdout } = await runCli(['doctor', '-c', 'a.json', '--json'], await folder(clientSecret))
      expect([code, JSON.parse(stdout).healthy, JSON.parse(stdout).config]).to.deep.equal([0, true, 'a.json'])
    })

    it('reports that no plugin has checks, or the errors of the config', async () => {
      const open = {
        server: { name: 'a', version: '1' },
        toolsets: { all: [] },
        routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {} },
      }
      const dir = await makeFolder({
        'open.json': JSON.stringify(open),
        'bad.json': JSON.stringify({ ...open, route: {} }),
      })
      const nothing = await runCli(['doctor', '--config', 'open.json'], dir)
      expect([nothing.code, nothing.stdout]).to.satisfy(
        ([code, text]: [number, string]) => code === 0 && /no plugin/.test(text),
      )
      const bad = await runCli(['doctor', '--config', 'bad.json'], dir)
      expect(bad.code).to.not.equal(0)
      expect(bad.stderr).to.match(/route/)
    })
  })
})
