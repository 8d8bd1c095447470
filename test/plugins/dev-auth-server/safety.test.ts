// Tests the protections of the development authorization server: loopback only, consent, CSRF and CORS.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { Browser, HandClient, readClaims } from '../../support/form-browser.ts'
import { requestBytes, requestHead, sendRaw } from '../../support/raw-http.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const config = (http: object = {}) => ({
  toolsets: { clock: [defineTool({ name: 'now', handler: () => 'now' })] },
  routes: { '/': { toolsets: ['clock'] } },
  plugins: { 'transport-streamable': {}, 'dev-auth-server': { scopes: ['mcp.tools'] } },
  http,
})

const corsHeaders = (headers: Iterable<[string, string]>) =>
  [...headers].map(([name]) => name).filter(name => name.startsWith('access-control-'))

describe('dev-auth-server: sign-in page', () => {
  after(stopHosts)

  it('is an error page with the development banner if the URL has no state', async () => {
    const { url } = await startHost(config({ port: 0 }))
    const response = await fetch(`${url}/dev-auth/sign-in`, { headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('content-type')]).to.deep.equal([400, 'text/html; charset=utf-8'])
    expect(await response.text())
      .to.contain('This sign-in has expired')
      .and.contain('no password required')
  })
})

describe('dev-auth-server: startup', () => {
  after(stopHosts)

  for (const host of ['0.0.0.0', '::']) {
    it(`fails on ${host}`, () => expectStopped(config({ host, port: 0 }), `http.host is ${host}`))
  }

  it('fails with a public URL off loopback', () =>
    expectStopped(
      config({ port: 0, publicUrl: 'https://mcp.acme.example' }),
      'http.publicUrl is https://mcp.acme.example',
    ))

  it('fails in production', async () => {
    const before = process.env['NODE_ENV']
    process.env['NODE_ENV'] = 'production'
    try {
      await expectStopped(config({ port: 0 }), 'production')
    } finally {
      if (before === undefined) delete process.env['NODE_ENV']
      else process.env['NODE_ENV'] = before
    }
  })

  it('fails for an empty user list', () =>
    expectStopped(
      { ...config({ port: 0 }), plugins: { 'transport-streamable': {}, 'dev-auth-server': { users: [] } } },
      'users',
    ))
})

describe('dev-auth-server: protections', () => {
  let url: string
  let client: HandClient
  before(async () => {
    url = (await startHost(config())).url
    client = await new HandClient(`${url}/dev-auth`).start()
  })
  after(stopHosts)

  const authorizeUrl = () => client.authorizeUrl({ resource: `${url}/`, scope: 'mcp.tools' })

  it('uses a loopback publicUrl as issuer', async () => {
    const { url: other } = await startHost(config({ port: 0, publicUrl: 'https://localhost:8443/base/' }))
    const response = await fetch(`${other}/dev-auth/.well-known/openid-configuration`)
    expect(await response.json()).to.include({
      issuer: 'https://localhost:8443/base/dev-auth',
      token_endpoint: 'https://localhost:8443/base/dev-auth/token',
    })
  })

  it('reads null as absent in registration metadata', async () => {
    const absent = ['client_uri', 'logo_uri', 'jwks', 'jwks_uri', 'scope', 'contacts']
    const response = await client.register(Object.fromEntries(absent.map(name => [name, null])))
    expect([response.status, await response.json()]).to.have.nested.property('[1].client_id')
  })

  describe('pages', () => {
    it('lists every user, and shows client, redirect URI, resource and scopes as escaped text', async () => {
      const { html: choice } = await client.browser.page(authorizeUrl())
      expect([...choice.matchAll(/<button name="user" value="([^"]*)"/g)].map(([, id]) => id)).to.deep.equal(['dev'])
      const { html } = await client.browser.signIn(authorizeUrl(), 'dev')
      expect(html).to.contain('Hand &#38; Co').and.to.not.contain('Hand & Co')
      expect(html).to.contain('http://127.0.0.1:9/callback').and.to.contain(`${url}/`).and.to.contain('mcp.tools')
    })

    it('cannot be framed or cached', async () => {
      const { headers } = await client.browser.page(authorizeUrl())
      expect(headers.get('x-frame-options')).to.equal('DENY')
      expect(headers.get('content-security-policy')).to.contain("frame-ancestors 'none'")
      expect(headers.get('cache-control')).to.equal('no-store')
    })

    it('changes nothing when opened: an unapproved client needs consent again', async () => {
      const fresh = await new HandClient(`${url}/dev-auth`).start()
      const address = fresh.authorizeUrl({ resource: `${url}/`, scope: 'mcp.tools' })
      await fresh.browser.signIn(address, 'dev')
      expect((await fresh.browser.signIn(address, 'dev')).fields).to.have.property('csrf')
    })

    it('rejects an answer from another origin', async () => {
      const { url: address } = await client.browser.page(authorizeUrl())
      const response = await fetch(address, { method: 'POST', headers: { Origin: 'https://evil.example' } })
      expect(response.status).to.equal(403)
      expect(corsHeaders(response.headers)).to.deep.equal([])
    })

    it('signs in a user who is not in the config, with the entered roles', async () => {
      const { url: address, fields } = await client.browser.page(authorizeUrl())
      const form = new URLSearchParams({ ...fields, user: 'root', roles: 'admin, ops' })
      const page = await client.browser.page(new URL(`callback?${form}`, address))
      const answer = await client.browser.click(page, { decision: 'allow' })
      const code = ('redirect' in answer && answer.redirect.searchParams.get('code')) || ''
      const { access_token } = await client.token(client.codeForm(code))
      expect(readClaims(access_token)).to.deep.include({ sub: 'root', roles: ['admin', 'ops'] })
    })

    it('rejects a form without a user, and the state of another browser', async () => {
      const { url: address, fields } = await client.browser.page(authorizeUrl())
      const at = (user: string) => new URL(`callback?${new URLSearchParams({ ...fields, user })}`, address)
      expect(await new Browser(url).page(at('dev'))).to.have.property('status', 400)
      expect(await client.browser.page(at(' '))).to.have.property('status', 403)
    })
  })

  describe('cross-origin requests', () => {
    const ORIGIN = 'https://inspector.example'

    for (const path of [
      '/.well-known/oauth-authorization-server/dev-auth',
      '/dev-auth/.well-known/openid-configuration',
      '/dev-auth/jwks',
    ]) {
      it(`allows any origin to read ${path}`, async () => {
        const response = await fetch(url + path, { headers: { Origin: ORIGIN } })
        expect([response.status, response.headers.get('access-control-allow-origin')]).to.deep.equal([200, '*'])
      })
    }

    for (const path of ['/dev-auth/token', '/dev-auth/register']) {
      it(`allows any origin to post to ${path}, for preflight, response and errors`, async () => {
        const preflight = await fetch(url + path, {
          method: 'OPTIONS',
          headers: {
            Origin: ORIGIN,
            'Access-Control-Request-Method': 'POST',
            'Access-Control-Request-Headers': 'content-type',
          },
        })
        expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).to.deep.equal([204, '*'])
        expect(preflight.headers.get('access-control-allow-methods')).to.contain('POST')
        expect(preflight.headers.get('access-control-allow-headers')).to.match(/content-type/i)
        const wrong = await fetch(url + path, { method: 'POST', headers: { Origin: ORIGIN }, body: '{}' })
        expect([wrong.status, wrong.headers.get('access-control-allow-origin')]).to.deep.equal([400, '*'])
      })
    }

    it('sends no CORS headers on authorize, and rejects other origins', async () => {
      const own = await fetch(authorizeUrl(), { redirect: 'manual' })
      expect([own.status, corsHeaders(own.headers)]).to.deep.equal([303, []])
      const foreign = await fetch(authorizeUrl(), { redirect: 'manual', headers: { Origin: ORIGIN } })
      expect([foreign.status, corsHeaders(foreign.headers)]).to.deep.equal([403, []])
    })

    for (const path of ['/dev-auth/authorize', '/dev-auth/jwks', '/dev-auth/.well-known/openid-configuration']) {
      it(`answers 403 at ${path} for a non-loopback host name`, async () => {
        const head = requestHead(url, { method: 'GET', path, headers: { Host: 'rebound.example' } })
        expect((await sendRaw(url, head)).status).to.equal(403)
      })
    }

    for (const path of ['/dev-auth/authorize', '/dev-auth/jwks']) {
      it(`answers 403 at ${path} for requests through a tunnel`, async () => {
        const response = await fetch(url + path, { headers: { 'X-Forwarded-Host': 'tunnel.example' } })
        expect(response.status).to.equal(403)
      })
    }

    it('rejects registrations under a non-loopback host name', async () => {
      const bytes = requestBytes(url, '{"redirect_uris":["http://127.0.0.1:9/"]}', {
        path: '/dev-auth/register',
        headers: { Host: 'rebound.example' },
      })
      expect((await sendRaw(url, bytes)).status).to.equal(403)
    })
  })
})
