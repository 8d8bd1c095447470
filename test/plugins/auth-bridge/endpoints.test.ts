// Tests the endpoints of auth-bridge: unknown paths, cross-site requests, size limits and rate limits.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { itThorough } from '../../support/thorough.ts'

describe('auth-bridge: endpoints', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  const send = (path: string, init: RequestInit = {}) =>
    fetch(`${bridge.issuer}${path}`, { redirect: 'manual', ...init })

  it('redirects the root path to the account page', async () => {
    const { status, headers } = await send('/')
    expect([status, headers.get('location')]).to.deep.equal([302, '/auth/account'])
  })

  it('serves its metadata where RFC 8414 and OpenID Connect put it, for a publicUrl with a path', async () => {
    const publicUrl = 'https://mcp.acme.example/tools'
    const { host } = await startBridge({ config: { http: { port: 0, publicUrl } } })
    const listening = `http://127.0.0.1:${new URL(host.url).port}`
    for (const path of [
      // As clients request it, if the proxy passes it on as it is.
      '/.well-known/oauth-authorization-server/tools/auth',
      '/.well-known/openid-configuration/tools/auth',
      // Without the prefix.
      '/.well-known/oauth-authorization-server/auth',
      '/auth/.well-known/openid-configuration',
    ]) {
      const response = await fetch(`${listening}${path}`)
      expect(response.status, path).to.equal(200)
      expect(await response.json(), path).to.include({
        issuer: `${publicUrl}/auth`,
        token_endpoint: `${publicUrl}/auth/token`,
      })
    }
  })

  it('rejects other spellings of a path and unserved oidc-provider endpoints', async () => {
    const paths = [
      '/Register',
      '/REGISTER',
      '/register/',
      '/Token',
      '/session/end',
      '/session/end/confirm',
      '/me',
      '/reg',
    ]
    const statuses = await Promise.all(
      ['GET', 'POST'].flatMap(method =>
        paths.map(async path => [path, (await send(path, { method })).status] as const),
      ),
    )
    const found = statuses.filter(([path, status]) => status !== 404 && !(path === '/register/' && status >= 400))
    expect(found).to.deep.equal([])
  })

  it('rejects an oversized authorization request with 400', async () => {
    const client = await bridge.client()
    const url = client.authorizeUrl({ resource: bridge.resource, state: 'x'.repeat(7_000) })
    expect((await fetch(url, { redirect: 'manual' })).status).to.equal(400)
  })

  it('answers 429 with Retry-After at the rate limit of registrations', async () => {
    const other = await startBridge()
    const client = await other.client()
    const register = async () => client.register()
    let registered = await register()
    for (let count = 0; count < 70 && registered.status === 201; count++) registered = await register()
    expect([registered.status, registered.headers.get('retry-after')]).to.deep.equal([429, '60'])
    expect(await registered.json()).to.include({ error: 'temporarily_unavailable' })
    const told = other.log.filter(({ code }) => code === 'MH2131')
    expect(told.map(({ what }) => what)).to.deep.equal(['register'])
  })

  itThorough(
    'answers 429 at the rate limit of logins, which does not count cross-site subresource requests',
    async () => {
      const other = await startBridge()
      const client = await other.client()
      const url = client.authorizeUrl({ resource: other.resource })
      for (let count = 0; count < 20; count++) {
        const headers = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'image' }
        expect((await fetch(url, { headers, redirect: 'manual' })).status).to.equal(403)
      }
      let page = await fetch(url, { redirect: 'manual' })
      let accepted = 0
      for (; accepted < 320 && page.status === 303; accepted++) page = await fetch(url, { redirect: 'manual' })
      expect(accepted).to.equal(300)
      expect([page.status, page.headers.get('retry-after'), page.headers.get('content-type')]).to.deep.equal([
        429,
        '60',
        'text/html; charset=utf-8',
      ])
      const told = other.log.filter(({ code }) => code === 'MH2131')
      expect(told.map(({ what }) => what)).to.deep.equal(['authorize'])
    },
  )
})
