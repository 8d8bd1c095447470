// What keeps the authorization server for development from harm: where it runs, whom it answers, and who may click.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { Browser, HandClient } from '../../support/form-browser.ts'
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

describe('dev-auth-server refuses to start', () => {
  after(stopHosts)

  for (const host of ['0.0.0.0', '::']) {
    it(`on ${host}`, () => expectStopped(config({ host, port: 0 }), `http.host is ${host}`))
  }

  it('under a publicUrl that others can reach', () =>
    expectStopped(
      config({ port: 0, publicUrl: 'https://mcp.acme.example' }),
      'http.publicUrl is https://mcp.acme.example',
    ))

  it('in production', async () => {
    const before = process.env['NODE_ENV']
    process.env['NODE_ENV'] = 'production'
    try {
      await expectStopped(config({ port: 0 }), 'production')
    } finally {
      if (before === undefined) delete process.env['NODE_ENV']
      else process.env['NODE_ENV'] = before
    }
  })

  it('for a list of users that names nobody', () =>
    expectStopped(
      { ...config({ port: 0 }), plugins: { 'transport-streamable': {}, 'dev-auth-server': { users: [] } } },
      'users',
    ))
})

describe('dev-auth-server', () => {
  let url: string
  let client: HandClient
  before(async () => {
    url = (await startHost(config())).url
    client = await new HandClient(`${url}/dev-auth`).start()
  })
  after(stopHosts)

  const authorizeUrl = () => client.authorizeUrl({ resource: `${url}/`, scope: 'mcp.tools' })

  it('takes the issuer from a publicUrl on this machine', async () => {
    const { url: other } = await startHost(config({ port: 0, publicUrl: 'https://localhost:8443/base/' }))
    const response = await fetch(`${other}/dev-auth/.well-known/openid-configuration`)
    expect(await response.json()).to.include({
      issuer: 'https://localhost:8443/base/dev-auth',
      token_endpoint: 'https://localhost:8443/base/dev-auth/token',
    })
  })

  describe('the consent page', () => {
    it('asks once for every user, and names client, redirect URI, resource and scopes as text', async () => {
      const { html } = await client.browser.page(authorizeUrl())
      expect(html).to.contain('Hand &#38; Co').and.to.not.contain('Hand & Co')
      expect(html).to.contain('http://127.0.0.1:9/callback').and.to.contain(`${url}/`).and.to.contain('mcp.tools')
      expect([...html.matchAll(/<button name="account" value="([^"]*)"/g)].map(([, id]) => id)).to.deep.equal(['dev'])
    })

    it('can be framed by no page, and is kept by no cache', async () => {
      const { headers } = await client.browser.page(authorizeUrl())
      expect(headers.get('x-frame-options')).to.equal('DENY')
      expect(headers.get('content-security-policy')).to.contain("frame-ancestors 'none'")
      expect(headers.get('cache-control')).to.equal('no-store')
    })

    it('changes nothing when it is shown: a client that was not allowed is asked for again', async () => {
      const fresh = await new HandClient(`${url}/dev-auth`).start()
      const address = fresh.authorizeUrl({ resource: `${url}/`, scope: 'mcp.tools' })
      await fresh.browser.page(address)
      expect((await fresh.browser.page(address)).fields).to.have.property('csrf')
    })

    for (const [what, csrf] of [
      ['without a CSRF token', ''],
      ['with a CSRF token that is made up', 'A'.repeat(43)],
    ] as const) {
      it(`is not answered by a form ${what}`, async () => {
        const page = await client.browser.page(authorizeUrl())
        const answer = await client.browser.click(page, { account: 'dev', csrf })
        expect(answer).to.have.property('status', 403)
      })
    }

    it('is not answered with the CSRF token of another sign-in', async () => {
      const first = await client.browser.page(authorizeUrl())
      const second = await client.browser.page(authorizeUrl())
      const csrf = first.fields['csrf'] ?? ''
      expect(csrf).to.match(/^[\w-]{43}$/)
      expect(await client.browser.click(second, { account: 'dev', csrf })).to.have.property('status', 403)
    })

    it('is not answered by a browser that did not open it', async () => {
      const page = await client.browser.page(authorizeUrl())
      expect(await new Browser(url).click(page, { account: 'dev' })).to.have.property('status', 400)
    })

    it('is not answered by a page of another origin', async () => {
      const { url: address } = await client.browser.page(authorizeUrl())
      const response = await fetch(address, { method: 'POST', headers: { Origin: 'https://evil.example' } })
      expect(response.status).to.equal(403)
      expect(corsHeaders(response.headers)).to.deep.equal([])
    })

    it('knows no user that is not in the config', async () => {
      const page = await client.browser.page(authorizeUrl())
      expect(await client.browser.click(page, { account: 'root' })).to.have.property('status', 400)
    })
  })

  describe('towards pages', () => {
    const ORIGIN = 'https://inspector.example'

    for (const path of [
      '/.well-known/oauth-authorization-server/dev-auth',
      '/dev-auth/.well-known/openid-configuration',
      '/dev-auth/jwks',
    ]) {
      it(`lets any origin read ${path}`, async () => {
        const response = await fetch(url + path, { headers: { Origin: ORIGIN } })
        expect([response.status, response.headers.get('access-control-allow-origin')]).to.deep.equal([200, '*'])
      })
    }

    for (const path of ['/dev-auth/token', '/dev-auth/reg']) {
      it(`lets any origin post to ${path}, preflight and answer, an error's too`, async () => {
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

    it('gives no CORS header on authorize, and refuses other origins there', async () => {
      const own = await fetch(authorizeUrl(), { redirect: 'manual' })
      expect([own.status, corsHeaders(own.headers)]).to.deep.equal([303, []])
      const foreign = await fetch(authorizeUrl(), { redirect: 'manual', headers: { Origin: ORIGIN } })
      expect([foreign.status, corsHeaders(foreign.headers)]).to.deep.equal([403, []])
    })

    for (const path of ['/dev-auth/auth', '/dev-auth/jwks', '/dev-auth/.well-known/openid-configuration']) {
      it(`answers 403 at ${path} under a name that is not this machine's`, async () => {
        const head = requestHead(url, { method: 'GET', path, headers: { Host: 'rebound.example' } })
        expect((await sendRaw(url, head)).status).to.equal(403)
      })
    }

    for (const path of ['/dev-auth/auth', '/dev-auth/jwks']) {
      it(`answers 403 at ${path} to who came through a tunnel`, async () => {
        const response = await fetch(url + path, { headers: { 'X-Forwarded-Host': 'tunnel.example' } })
        expect(response.status).to.equal(403)
      })
    }

    it('registers nobody under a name that is not this machine’s', async () => {
      const bytes = requestBytes(url, '{"redirect_uris":["http://127.0.0.1:9/"]}', {
        path: '/dev-auth/reg',
        headers: { Host: 'rebound.example' },
      })
      expect((await sendRaw(url, bytes)).status).to.equal(403)
    })
  })
})
