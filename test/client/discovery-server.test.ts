// Tests discovery and validation of authorization server metadata, including servers of protocol version 2025-03-26.
import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { testContext } from './support/context.ts'
import { type Entry, tableFetch } from './support/static-fetch.ts'

const AS = 'https://as.example'
const OAUTH = `${AS}/.well-known/oauth-authorization-server`
const OIDC = `${AS}/.well-known/openid-configuration`
const TENANT = `${AS}/tenant1`
const TENANT_URLS = [`${OAUTH}/tenant1`, `${OIDC}/tenant1`, `${TENANT}/.well-known/openid-configuration`]

const document = (members: object = {}) => ({
  issuer: AS,
  authorization_endpoint: `${AS}/authorize`,
  token_endpoint: `${AS}/token`,
  code_challenge_methods_supported: ['plain', 'S256'],
  ...members,
})

const never = new AbortController().signal

interface About extends Partial<ClientOAuthOptions> {
  readonly listed?: string
  readonly legacy?: boolean
  /** Given for this server by the caller. */
  readonly endpoint?: string
}

function discover(table: Record<string, Entry>, { listed = AS, legacy = false, endpoint, ...options }: About = {}) {
  const { fetch, asked } = tableFetch(table)
  const ctx = testContext({ serverUrl: 'https://mcp.example/mcp', fetch, ...options })
  return { asked, ctx, info: () => discoverServer(ctx, listed, legacy, never, endpoint) }
}

describe('R-30: metadata locations', () => {
  it('without a path: OAuth first, then OpenID Connect', async () => {
    const { info, asked } = discover({ [OIDC]: document() })
    expect(await info()).to.include({ metadataUrl: OIDC, oidc: true })
    expect(asked).to.deep.equal([OAUTH, OIDC])
  })

  for (const [index, url] of TENANT_URLS.entries()) {
    it(`with a path: ${url}`, async () => {
      const { info, asked } = discover({ [url]: document({ issuer: TENANT }) }, { listed: TENANT })
      expect(await info()).to.include({ issuer: TENANT, metadataUrl: url })
      expect(asked).to.deep.equal(TENANT_URLS.slice(0, index + 1))
    })
  }

  it('with a path: never the root', async () => {
    const { info, asked } = discover({ [OAUTH]: document(), [OIDC]: document() }, { listed: TENANT })
    expect(await authErrorOf(info)).to.include({ code: 'invalid_server_metadata' })
    expect(asked).to.deep.equal(TENANT_URLS)
  })

  it('omit a trailing slash of the path, which the issuer keeps', async () => {
    const listed = `${TENANT}/`
    const { info } = discover({ [`${OAUTH}/tenant1`]: document({ issuer: listed }) }, { listed })
    expect((await info()).issuer).to.equal(listed)
  })

  for (const listed of [`${AS}?x`, `${AS}#x`]) {
    it(`reject ${listed} as issuer`, async () => {
      const { info, asked } = discover({}, { listed })
      expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
      expect(asked).to.deep.equal([])
    })
  }
})

describe('R-31: issuer validation', () => {
  for (const issuer of [
    `${AS}/`,
    'https://AS.example',
    `${AS}:443`,
    'https://evil.example',
    'http://as.example',
    `${AS}/tenant1`,
    undefined,
    null,
    '',
    7,
    [AS],
  ]) {
    it(`never uses a document with ${JSON.stringify(issuer)}, and tries the next location`, async () => {
      const wrong = document({ issuer, token_endpoint: `${AS}/wrong` })
      const { info, asked } = discover({ [OAUTH]: wrong, [OIDC]: document() })
      expect(await info()).to.include({ issuer: AS, metadataUrl: OIDC, tokenEndpoint: `${AS}/token` })
      expect(asked).to.deep.equal([OAUTH, OIDC])
      expect(await authErrorOf(discover({ [OAUTH]: wrong, [OIDC]: wrong }).info)).to.include({
        code: 'issuer_mismatch',
        retryable: false,
      })
    })
  }

  it('names the scheme as the only difference, and no option that accepts it', async () => {
    const issuer = AS.replace('https:', 'http:')
    const { info } = discover({ [OAUTH]: document({ issuer }), [OIDC]: document({ issuer }) })
    const error = await authErrorOf(info)
    expect(error).to.include({ code: 'issuer_mismatch', setting: undefined })
    expect(error.message).to.contain('scheme')
  })

  it('compares the issuer with the identifier exactly as listed', async () => {
    const listed = 'https://AS.example:443'
    expect((await discover({ [OAUTH]: document({ issuer: listed }) }, { listed }).info()).issuer).to.equal(listed)
    expect(await authErrorOf(discover({ [OAUTH]: document() }, { listed }).info)).to.include({
      code: 'issuer_mismatch',
    })
  })
})

describe('R-32: configured issuer exceptions', () => {
  const options = { issuerMatch: 'ignore-trailing-slash' } as const

  for (const [listed, issuer] of [
    [AS, `${AS}/`],
    [`${AS}/`, AS],
  ] as const) {
    it(`accept ${issuer} for ${listed}, if trailing slashes are ignored`, async () => {
      const { info, ctx } = discover({ [OAUTH]: document({ issuer }) }, { listed, ...options })
      expect(await info()).to.include({ listed, issuer })
      expect(ctx.events).to.deep.include({
        type: 'tolerated',
        key: 'test',
        what: `issuer ${issuer} for ${listed}`,
        option: 'issuerMatch',
      })
      const refused = await authErrorOf(discover({ [OAUTH]: document({ issuer }) }, { listed }).info)
      expect(refused.setting).to.include({ option: 'issuerMatch', value: 'ignore-trailing-slash' })
    })
  }

  for (const [listed, issuer] of [
    [TENANT, `${TENANT}/`],
    [AS, `${AS}//`],
    [AS, 'https://AS.example/'],
    [AS, `${AS}:443/`],
  ] as const) {
    it(`reject ${issuer} for ${listed}`, async () => {
      const table = { [OAUTH]: document({ issuer }), [TENANT_URLS[0] ?? '']: document({ issuer }) }
      expect(await authErrorOf(discover(table, { listed, ...options }).info)).to.include({ code: 'issuer_mismatch' })
    })
  }

  it('trustedIssuers accepts a listed issuer only for its server', async () => {
    const issuer = 'https://other.example'
    const trustedIssuers = { [AS]: [issuer] }
    const { info, ctx } = discover({ [OAUTH]: document({ issuer }) }, { trustedIssuers })
    expect(await info()).to.include({ listed: AS, issuer })
    expect(ctx.events.map(({ type }) => type)).to.deep.equal(['tolerated'])
    for (const wrong of [{ [AS]: ['https://third.example'] }, { [`${AS}/`]: [issuer] }, { [issuer]: [issuer] }]) {
      const refused = await authErrorOf(discover({ [OAUTH]: document({ issuer }) }, { trustedIssuers: wrong }).info)
      expect(refused.code).to.equal('issuer_mismatch')
      expect(refused.setting).to.deep.include({ option: 'trustedIssuers', value: { [AS]: [issuer] } })
    }
  })
})

describe('R-33: PKCE with S256', () => {
  const without = [undefined, null, [], ['plain'], 'S256', ['s256'], { S256: true }]

  for (const methods of without) {
    it(`rejects ${JSON.stringify(methods)} after trying the other locations`, async () => {
      const bad = document({ code_challenge_methods_supported: methods })
      const { info, asked } = discover({ [OAUTH]: bad, [OIDC]: bad })
      const error = await authErrorOf(info)
      expect(error.code).to.equal('pkce_unsupported')
      expect(error.setting).to.deep.include({ option: 'assumePkceS256', value: [AS] })
      expect(asked).to.deep.equal([OAUTH, OIDC])
    })
  }

  const bad = document({ code_challenge_methods_supported: undefined })

  it('accepts support in the next document', async () => {
    expect(await discover({ [OAUTH]: bad, [OIDC]: document() }).info()).to.include({
      metadataUrl: OIDC,
      pkceS256: true,
    })
  })

  it('does not use the next document if it has another issuer', async () => {
    const { info } = discover({ [OAUTH]: bad, [OIDC]: document({ issuer: 'https://evil.example' }) })
    expect(await authErrorOf(info)).to.include({ code: 'pkce_unsupported' })
  })

  it('assumePkceS256 applies to one issuer', async () => {
    const { info, asked, ctx } = discover({ [OAUTH]: bad }, { assumePkceS256: [AS] })
    expect(await info()).to.include({ metadataUrl: OAUTH, pkceS256: true })
    expect(asked).to.deep.equal([OAUTH])
    expect(ctx.events).to.deep.include({
      type: 'tolerated',
      key: 'test',
      what: `no PKCE methods listed by ${AS}`,
      option: 'assumePkceS256',
    })
    const other = discover({ [OAUTH]: bad }, { assumePkceS256: ['https://other.example'] })
    expect(await authErrorOf(other.info)).to.include({ code: 'pkce_unsupported' })
  })

  it('is not required for a grant without a browser', async () => {
    const grant = { type: 'client_credentials' } as const
    const { info, asked } = discover({ [OAUTH]: bad }, { grant, clientId: 'c', clientSecret: 's', clientIssuer: AS })
    expect(await info()).to.include({ pkceS256: false, metadataUrl: OAUTH })
    expect(asked).to.deep.equal([OAUTH])
  })
})

describe('R-34: invalid metadata responses', () => {
  for (const entry of [
    400,
    401,
    403,
    404,
    429,
    502,
    '<html>',
    '',
    [],
    () => Response.json(null),
    () => Response.json('x'),
  ] as Entry[]) {
    it(`${typeof entry === 'function' ? 'non-object JSON' : JSON.stringify(entry)}: tries the next location`, async () => {
      const { info, asked } = discover({ [OAUTH]: entry, [OIDC]: document() })
      expect((await info()).metadataUrl).to.equal(OIDC)
      expect(asked).to.deep.equal([OAUTH, OIDC])
    })
  }

  for (const [name, entry, code] of [
    ['{}', {}, 'issuer_mismatch'],
    ['an error object', { error: 'not_found' }, 'issuer_mismatch'],
    ['no endpoints', { issuer: AS, code_challenge_methods_supported: ['S256'] }, 'invalid_server_metadata'],
    ['an http endpoint', document({ token_endpoint: 'http://as.example/token' }), 'insecure_endpoint'],
    ['a document over the size limit', 'x'.repeat(300_000), 'malformed_response'],
  ] as [string, Entry, string][]) {
    it(`${name}: tries the next location, and reports the first failure if none is usable`, async () => {
      expect((await discover({ [OAUTH]: entry, [OIDC]: document() }).info()).metadataUrl).to.equal(OIDC)
      expect(await authErrorOf(discover({ [OAUTH]: entry, [OIDC]: 404 }).info)).to.include({ code })
      expect(await authErrorOf(discover({ [OAUTH]: entry }, { legacy: true }).info)).to.include({ code })
    })
  }

  for (const [name, entry] of [
    ['500', 500],
    ['503', 503],
    ['a refused connection', Object.assign(new Error('x'), { code: 'ECONNREFUSED' })],
  ] as [string, Entry][]) {
    it(`${name}: fails as temporary, not as unsupported`, async () => {
      const { info, asked } = discover({ [OAUTH]: entry, [OIDC]: document() })
      expect(await authErrorOf(info)).to.include({ code: 'temporarily_unavailable', retryable: true })
      expect(asked).to.deep.equal([OAUTH])
    })
  }

  it('429 everywhere: fails as temporary', async () => {
    const { info } = discover({ [OAUTH]: 429, [OIDC]: 404 })
    expect(await authErrorOf(info)).to.include({ code: 'temporarily_unavailable', retryable: true })
  })

  it('no document anywhere: fails and names the URL', async () => {
    const error = await authErrorOf(discover({}).info)
    expect(error).to.include({ code: 'invalid_server_metadata', retryable: false })
    expect(error.message).to.include(OAUTH)
  })
})

describe('R-35: https endpoints', () => {
  for (const name of ['authorization_endpoint', 'token_endpoint']) {
    for (const [endpoint, code] of [
      ['http://as.example/x', 'insecure_endpoint'],
      ['ftp://as.example/x', 'insecure_endpoint'],
      ['javascript:alert(1)', 'insecure_endpoint'],
      ['/relative', 'insecure_endpoint'],
      ['https://user:pass@as.example/x', 'insecure_endpoint'],
      ['http://localhost:6379/x', 'blocked_address'],
      ['https://10.0.0.1/x', 'blocked_address'],
      ['https://[fe80::1]/x', 'blocked_address'],
    ] as const) {
      it(`rejects ${name} ${endpoint}`, async () => {
        expect(await authErrorOf(discover({ [OAUTH]: document({ [name]: endpoint }) }).info)).to.include({ code })
      })
    }

    for (const endpoint of [undefined, '', 7]) {
      it(`treats ${name} ${JSON.stringify(endpoint)} as missing`, async () => {
        const { info } = discover({ [OAUTH]: document({ [name]: endpoint }) })
        expect(await authErrorOf(info)).to.include({ code: 'invalid_server_metadata' })
      })
    }
  }

  it('allows loopback http only for loopback servers', async () => {
    const listed = 'http://127.0.0.1:9000'
    const local = { issuer: listed, authorization_endpoint: `${listed}/authorize`, token_endpoint: `${listed}/token` }
    const table = { [`${listed}/.well-known/oauth-authorization-server`]: document(local) }
    expect((await discover(table, { listed, serverUrl: 'http://localhost:3000/mcp' }).info()).issuer).to.equal(listed)
    expect(await authErrorOf(discover(table, { listed }).info)).to.include({ code: 'blocked_address' })
  })

  it('requires no authorization endpoint for a grant without a browser', async () => {
    const grant = { type: 'client_credentials' } as const
    const { info } = discover(
      { [OAUTH]: document({ authorization_endpoint: undefined }) },
      { grant, clientId: 'c', clientSecret: 's', clientIssuer: AS },
    )
    expect((await info()).authorizationEndpoint).to.equal(undefined)
  })

  it('tolerates invalid optional fields', async () => {
    const members = {
      registration_endpoint: `${AS}/register`,
      revocation_endpoint: 7,
      device_authorization_endpoint: `${AS}/device`,
      scopes_supported: ['a', 7],
      grant_types_supported: 'x',
      token_endpoint_auth_methods_supported: ['none'],
      dpop_signing_alg_values_supported: ['ES256'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: 'true',
    }
    expect(await discover({ [OAUTH]: document(members) }).info()).to.deep.equal({
      listed: AS,
      issuer: AS,
      authorizationEndpoint: `${AS}/authorize`,
      tokenEndpoint: `${AS}/token`,
      registrationEndpoint: `${AS}/register`,
      revocationEndpoint: undefined,
      deviceAuthorizationEndpoint: `${AS}/device`,
      scopesSupported: ['a'],
      grantTypesSupported: undefined,
      tokenEndpointAuthMethodsSupported: ['none'],
      issParameterSupported: true,
      clientIdMetadataDocumentSupported: false,
      pkceS256: true,
      oidc: false,
      legacy: false,
      metadataUrl: OAUTH,
    })
  })
})

describe('R-36: servers of protocol version 2025-03-26', () => {
  const legacy = { listed: 'https://mcp.example', legacy: true }
  const root = 'https://mcp.example/.well-known/oauth-authorization-server'

  it('use default endpoints without a document', async () => {
    const { info, asked } = discover({}, legacy)
    expect(await info()).to.include({
      issuer: 'https://mcp.example',
      authorizationEndpoint: 'https://mcp.example/authorize',
      tokenEndpoint: 'https://mcp.example/token',
      registrationEndpoint: 'https://mcp.example/register',
      pkceS256: true,
      legacy: true,
    })
    expect(asked).to.deep.equal([root, 'https://mcp.example/.well-known/openid-configuration'])
  })

  for (const issuer of ['https://mcp.example', 'https://mcp.example/']) {
    it(`use the document of issuer ${issuer}`, async () => {
      const { info } = discover({ [root]: document({ issuer, token_endpoint: `${AS}/t` }) }, legacy)
      expect(await info()).to.include({ issuer, tokenEndpoint: `${AS}/t`, legacy: false })
    })
  }

  it('use no defaults for an incomplete document', async () => {
    for (const [members, code] of [
      [{ token_endpoint: undefined }, 'invalid_server_metadata'],
      [{ code_challenge_methods_supported: undefined }, 'pkce_unsupported'],
      [{ issuer: 'https://evil.example' }, 'issuer_mismatch'],
    ] as const) {
      const { info } = discover({ [root]: document({ issuer: 'https://mcp.example', ...members }) }, legacy)
      expect(await authErrorOf(info)).to.include({ code })
    }
  })

  it('are not assumed after a temporary failure', async () => {
    expect(await authErrorOf(discover({ [root]: 503 }, legacy).info)).to.include({ code: 'temporarily_unavailable' })
  })
})

describe('Option tokenEndpoint', () => {
  const endpoint = 'https://gateway.example/token'
  const given = { tokenEndpoint: endpoint, tokenEndpointGiven: true }

  it('replaces the published endpoint, or provides a missing one', async () => {
    for (const token_endpoint of [`${AS}/token`, undefined, 'http://as.example/in-the-clear']) {
      const { info } = discover({ [OAUTH]: document({ token_endpoint }) }, { endpoint })
      expect(await info()).to.include(given)
    }
    const { info } = discover({ [OAUTH]: document() })
    expect(await info())
      .to.include({ tokenEndpoint: `${AS}/token` })
      .and.not.have.property('tokenEndpointGiven')
  })

  it('keeps the checks of issuer, PKCE and authorization endpoint', async () => {
    for (const [members, code] of [
      [{ issuer: 'https://other.example' }, 'issuer_mismatch'],
      [{ code_challenge_methods_supported: undefined }, 'pkce_unsupported'],
      [{ authorization_endpoint: undefined }, 'invalid_server_metadata'],
    ] as const) {
      const { info } = discover({ [OAUTH]: document(members) }, { endpoint })
      expect(await authErrorOf(info)).to.include({ code })
    }
  })

  it('suffices for a machine client without metadata, but not for a user login', async () => {
    const grant = { type: 'client_credentials' } as const
    const program = { grant, clientId: 'robot', clientSecret: 'a secret', clientIssuer: AS }
    expect(await discover({}, { endpoint, ...program }).info()).to.include({ ...given, issuer: AS, legacy: false })
    expect(await authErrorOf(discover({}, { endpoint }).info)).to.include({ code: 'invalid_server_metadata' })
    expect(await discover({}, { endpoint, legacy: true }).info()).to.include({ ...given, legacy: true })
  })
})
