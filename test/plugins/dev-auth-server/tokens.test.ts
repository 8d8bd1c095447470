// Tests the development authorization server as a client uses it: discovery, registration, sign-in and tokens.
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { expect } from 'chai'
import jsonwebtoken from 'jsonwebtoken'
import { defineTool } from '../../../core/index.ts'
import { Browser, HandClient, REDIRECT, readClaims } from '../../support/form-browser.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'

const USERS = [
  { id: 'ada', name: 'Ada <Lovelace>', roles: ['admin'], claims: { tier: 'gold' } },
  { id: 'bob', roles: [] },
]

const ROUTES = { '/': { toolsets: ['clock'] }, '/clock': { toolsets: ['clock'] } }

async function startServer(options: object = {}, routes: TestConfig['routes'] = ROUTES, secrets?: string[]) {
  const { url, host } = await startHost({
    toolsets: { clock: [defineTool({ name: 'now', handler: () => 'now' })] },
    routes,
    ...(secrets && { secrets }),
    plugins: {
      'transport-streamable': {},
      'dev-auth-server': { scopes: ['mcp.tools', 'mcp.admin'], users: USERS, ...options },
    },
  })
  return { url, host, issuer: `${url}/dev-auth` }
}

const json = async (response: Response): Promise<Record<string, unknown>> =>
  (await response.json()) as Record<string, unknown>

describe('dev-auth-server: OAuth flow', () => {
  let url: string
  let issuer: string
  const resource = () => `${url}/clock`
  before(async () => {
    const started = await startServer()
    url = started.url
    issuer = started.issuer
  })
  after(stopHosts)

  describe('discovery', () => {
    for (const path of [
      '/.well-known/oauth-authorization-server/dev-auth',
      '/.well-known/openid-configuration/dev-auth',
      '/dev-auth/.well-known/openid-configuration',
    ]) {
      it(`serves ${path}, with every URL under the issuer`, async () => {
        const metadata = await json(await fetch(url + path))
        expect(metadata).to.include({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          registration_endpoint: `${issuer}/register`,
          client_id_metadata_document_supported: true,
          authorization_response_iss_parameter_supported: true,
        })
        expect(metadata['code_challenge_methods_supported']).to.deep.equal(['S256'])
        expect(metadata['scopes_supported']).to.include.members(['mcp.tools', 'mcp.admin'])
      })
    }

    it('returns the issuer URLs for every loopback host name', async () => {
      const { port } = new URL(url)
      const metadata = await json(await fetch(`http://localhost:${port}/dev-auth/.well-known/openid-configuration`))
      expect(metadata).to.include({ issuer, token_endpoint: `${issuer}/token` })
    })
  })

  describe('registration', () => {
    for (const uri of [
      'https://evil.example/callback',
      'http://evil.example/callback',
      'http://127.0.0.1.evil.example/callback',
      'http://127.0.0.1@evil.example/callback',
      'cursor://callback',
    ]) {
      it(`rejects a client with redirect URI ${uri}`, async () => {
        const response = await new HandClient(issuer).register({ redirect_uris: [REDIRECT, uri] })
        expect(response.status).to.equal(400)
        const { error, error_description } = await json(response)
        expect(error).to.equal('invalid_redirect_uri')
        expect(error_description).to.match(/is not allowed; the operator/)
      })
    }

    it('accepts a localhost web client, and one with scopes', async () => {
      const response = await new HandClient(issuer).register({
        application_type: 'web',
        redirect_uris: ['http://localhost:6274/oauth/callback'],
        scope: 'mcp.tools',
      })
      expect(response.status).to.equal(201)
    })
  })

  describe('authorization', () => {
    it('rejects a request without PKCE', async () => {
      const client = await new HandClient(issuer).start()
      const parameters = { code_challenge: undefined, code_challenge_method: undefined, resource: resource() }
      const answer = await client.browser.open(client.authorizeUrl(parameters))
      expect('redirect' in answer && answer.redirect.searchParams.get('error')).to.equal('invalid_request')
    })

    it('rejects an unknown resource', async () => {
      const client = await new HandClient(issuer).start()
      const answer = await client.browser.open(client.authorizeUrl({ resource: 'https://other.example/' }))
      expect('redirect' in answer && answer.redirect.searchParams.get('error')).to.equal('invalid_target')
    })

    it('rejects a request without resource if there are several', async () => {
      const client = await new HandClient(issuer).start()
      const answer = await client.browser.open(client.authorizeUrl({ scope: 'mcp.tools' }))
      expect('redirect' in answer && answer.redirect.searchParams.get('error')).to.equal('invalid_target')
    })

    it('rejects an unregistered redirect URI', async () => {
      const client = await new HandClient(issuer).start()
      const page = await client.browser.page(client.authorizeUrl({ redirect_uri: 'http://127.0.0.1:9/other' }))
      expect(page.status).to.equal(400)
    })

    it('returns access_denied if the user denies consent', async () => {
      const client = await new HandClient(issuer).start()
      const page = await client.browser.signIn(client.authorizeUrl({ resource: resource(), scope: 'mcp.tools' }), 'ada')
      const answer = await client.browser.click(page, { decision: 'deny' })
      const back = 'redirect' in answer ? Object.fromEntries(answer.redirect.searchParams) : {}
      expect(back).to.include({ error: 'access_denied', state: 'a state', iss: issuer })
    })
  })

  describe('tokens', () => {
    it('are JWTs for the resource with granted scopes and user claims, signed by the published key', async () => {
      const client = await new HandClient(issuer).start()
      const { access_token } = await client.signIn('ada', { resource: resource(), scope: 'mcp.tools' })
      const { keys } = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: JsonWebKey[] }
      const [key = {}] = keys
      expect(keys).to.have.length(1)
      expect(key).to.not.have.property('d')
      const { header, payload } = jsonwebtoken.verify(access_token, createPublicKey({ key, format: 'jwk' }), {
        algorithms: ['ES256'],
        issuer,
        audience: resource(),
        complete: true,
      })
      expect(header).to.include({ typ: 'at+jwt' })
      expect(payload).to.deep.include({
        sub: 'ada',
        client_id: client.clientId,
        scope: 'mcp.tools',
        roles: ['admin'],
        tier: 'gold',
      })
    })

    it('omit scopes unknown to the server', async () => {
      const client = await new HandClient(issuer).start()
      const { access_token } = await client.signIn('bob', { resource: resource(), scope: 'mcp.tools other' })
      expect(readClaims(access_token)).to.include({ sub: 'bob', scope: 'mcp.tools' })
    })

    it('have the resource without trailing slash as audience', async () => {
      const client = await new HandClient(issuer).start()
      const tokens = await client.signIn('bob', { resource: `${resource()}/`, scope: 'mcp.tools offline_access' })
      expect(readClaims(tokens.access_token)).to.include({ aud: resource(), scope: 'mcp.tools' })
      const renewed = await client.token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' })
      expect(readClaims(renewed.access_token)).to.include({ aud: resource() })
    })

    it('are for the only resource if the client sends none', async () => {
      const other = await startServer({}, { '/mcp': { toolsets: ['clock'] } })
      const client = await new HandClient(other.issuer).start()
      const { access_token } = await client.signIn('bob', { scope: 'mcp.tools' })
      expect(readClaims(access_token)).to.include({ aud: `${other.url}/mcp`, scope: 'mcp.tools' })
    })

    it('are renewed by a refresh token', async () => {
      const client = await new HandClient(issuer).start()
      const { refresh_token = '' } = await client.signIn('ada', { resource: resource(), scope: 'mcp.tools' })
      const renewed = await client.token({ grant_type: 'refresh_token', refresh_token })
      expect(readClaims(renewed.access_token)).to.include({ sub: 'ada', aud: resource(), scope: 'mcp.tools' })
    })

    it('receive more scopes by a second authorization of the same client and browser', async () => {
      const client = await new HandClient(issuer).start({ scope: 'mcp.tools' })
      await client.signIn('ada', { resource: resource(), scope: 'mcp.tools' })
      const { access_token } = await client.signIn('ada', { resource: resource(), scope: 'mcp.tools mcp.admin' })
      expect(readClaims(access_token)).to.include({ scope: 'mcp.tools mcp.admin' })
    })

    it('belong to another user if another user approves in the same browser', async () => {
      const client = await new HandClient(issuer).start()
      await client.signIn('ada', { resource: resource(), scope: 'mcp.tools' })
      const { access_token } = await client.signIn('bob', { resource: resource(), scope: 'mcp.tools' })
      expect(readClaims(access_token)).to.include({ sub: 'bob' })
    })

    it('are not issued for a code without its verifier, nor twice for one code', async () => {
      const client = await new HandClient(issuer).start()
      const code = async () => {
        const back = await client.browser.allow(
          client.authorizeUrl({ resource: resource(), scope: 'mcp.tools' }),
          'ada',
        )
        return back.searchParams.get('code') ?? ''
      }
      const form = { grant_type: 'authorization_code', redirect_uri: REDIRECT }
      const wrong = await client.token({ ...form, code: await code(), code_verifier: 'w'.repeat(43) })
      expect(wrong).to.include({ error: 'invalid_grant' })
      const right = { ...form, code: await code(), code_verifier: client.verifier }
      expect(await client.token(right)).to.have.property('access_token')
      expect(await client.token(right)).to.include({ error: 'invalid_grant' })
    })
  })

  it('generates new keys at every startup without secrets', async () => {
    const keysOf = async (of: string) => JSON.stringify((await json(await fetch(`${of}/jwks`)))['keys'])
    const [one, other] = await Promise.all([startServer({}, ROUTES, []), startServer({}, ROUTES, [])])
    expect(await keysOf(other.issuer)).to.not.equal(await keysOf(one.issuer))
  })

  it('issues tokens only for the configured resources', async () => {
    const other = await startServer({ resources: ['https://mcp.acme.example'] })
    const client = await new HandClient(other.issuer).start()
    const { access_token } = await client.signIn('ada', { resource: 'https://mcp.acme.example', scope: 'mcp.tools' })
    expect(readClaims(access_token)).to.include({ aud: 'https://mcp.acme.example' })
    const without = await client.signIn('ada', { scope: 'mcp.tools' })
    expect(readClaims(without.access_token)).to.include({ aud: 'https://mcp.acme.example' })
    const answer = await new Browser(other.url).open(client.authorizeUrl({ resource: other.url }))
    expect('redirect' in answer && answer.redirect.searchParams.get('error')).to.equal('invalid_target')
  })
})
