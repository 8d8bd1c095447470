// Tests when the consent page is shown: once for web clients that authenticate, each time for all others, and again after changes.
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { readClaims } from '../../support/form-browser.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const WEB = 'https://client.example/callback'
/** Of a client that authenticates at the token endpoint. */
const CONFIDENTIAL = { token_endpoint_auth_method: 'client_secret_post' }

describe('auth-bridge: consent', () => {
  let bridge: StartedBridge

  before(async () => {
    const users = [
      { sub: 'ann', email: 'ann@acme.example', groups: ['engineering'] },
      { sub: 'bob', email: 'bob@acme.example' },
    ]
    const redirects = ['http://127.0.0.1:*/**', 'https://client.example/**', 'cursor://*']
    bridge = await startBridge({ idp: { users }, options: { clients: { redirects } } })
  })
  after(stopBridges)

  const asked = (client: BridgeClient, redirect_uri: string, more = {}) =>
    client.browser.open(client.authorizeUrl({ resource: bridge.resource, scope: 'read', redirect_uri, ...more }))

  it('asks once per browser for a web client that authenticates', async () => {
    const client = await bridge.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: WEB, scope: 'read' }))
    const again = await asked(client, WEB)
    expect('redirect' in again && again.redirect.searchParams.get('code')).to.be.a('string')
  })

  it('requires resource in the token request of a client whose consent is remembered', async () => {
    const client = await bridge.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    const page = () => client.ask({ redirect_uri: WEB, scope: 'read', prompt: 'consent' })
    const without = await client.exchange(await client.decide(await page()), { redirect_uri: WEB })
    expect(without).to.include({ error: 'invalid_target' })
    const back = await client.decide(await page())
    const other = { redirect_uri: WEB, resource: 'https://attacker.example/mcp' }
    expect(await client.exchange(back, other)).to.include({ error: 'invalid_target' })
  })

  it('asks each time for a public web client, whatever the request says', async () => {
    const client = await bridge.client({ redirect_uris: [WEB] })
    const first = await client.ask({ redirect_uri: WEB, scope: 'read' })
    expect(first.html).to.include('This page appears at each sign-in')
    await client.decide(first)
    for (const more of [{}, { login_hint: 'ann' }, { prompt: 'consent' }, { scope: 'openid' }]) {
      const again = await asked(client, WEB, more)
      expect('html' in again && again.html, JSON.stringify(more)).to.include('name="decision"')
    }
    const silent = await asked(client, WEB, { prompt: 'none' })
    expect('redirect' in silent && silent.redirect.searchParams.get('error')).to.equal('consent_required')
  })

  it('asks again for more scopes and for another user', async () => {
    const client = await bridge.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: WEB, scope: 'read' }))
    const more = await asked(client, WEB, { scope: 'read admin' })
    expect('html' in more && more.html).to.include('admin')
    // At the provider the first one signed out.
    for (const name of client.browser.cookies.keys())
      if (name.includes(' _session')) client.browser.cookies.delete(name)
    const other = await asked(client, WEB, { prompt: 'login', login_hint: 'bob' })
    expect('html' in other && other.html).to.include('bob@acme.example')
    const back = await client.decide(other as Parameters<typeof client.decide>[0])
    const { access_token } = await client.exchange(back, { redirect_uri: WEB, resource: bridge.resource })
    expect(readClaims(access_token)['sub']).to.equal('bob')
  })

  it('asks again for a scope that was not granted only once the user may have it', async () => {
    const person = { sub: 'cat', email: 'cat@acme.example' }
    bridge.idp.users.set('cat', person)
    const client = await bridge.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: WEB, scope: 'read admin', login_hint: 'cat' }))
    expect(await asked(client, WEB, { scope: 'read admin' })).to.have.property('redirect')
    bridge.idp.users.set('cat', { ...person, groups: ['engineering'] })
    const more = await asked(client, WEB, { scope: 'read admin', prompt: 'login', login_hint: 'cat' })
    const back = await client.decide(more as Parameters<typeof client.decide>[0])
    expect(await client.exchange(back, { redirect_uri: WEB, resource: bridge.resource })).to.include({
      scope: 'read admin',
    })
  })

  it('asks again in another browser', async () => {
    const client = await bridge.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: WEB, scope: 'read' }))
    const elsewhere = await bridge
      .browser()
      .open(client.authorizeUrl({ resource: bridge.resource, scope: 'read', redirect_uri: WEB }))
    expect('html' in elsewhere && elsewhere.status).to.equal(200)
  })

  it('asks every time for a client with a loopback redirect URI', async () => {
    const client = await bridge.client()
    await client.logIn({ scope: 'read' })
    expect((await client.ask({ scope: 'read' })).status).to.equal(200)
  })

  it('asks again when the redirect URI changes', async () => {
    const other = 'https://client.example/other'
    const client = await bridge.client({ redirect_uris: [WEB, other], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: WEB, scope: 'read' }))
    const page = await asked(client, other)
    expect('html' in page && page.status).to.equal(200)
    expect('html' in page && page.html).to.match(/changed|different/i)
  })

  it('asks for each resource', async () => {
    const several = await startBridge({
      options: { clients: { redirects: ['https://client.example/**'] } },
      config: {
        routes: {
          '/mcp': { toolsets: 'all', authorize: true },
          '/t/:category?': { toolsets: ':category', default: ['all'], authorize: true },
        },
      },
    })
    const client = await several.client({ redirect_uris: [WEB], ...CONFIDENTIAL })
    const [one, other] = [`${several.url}/mcp`, `${several.url}/t/all`]
    const open = (resource: string, scope?: string) =>
      client.browser.open(client.authorizeUrl({ redirect_uri: WEB, resource, ...(scope && { scope }) }))
    await client.decide(await client.ask({ redirect_uri: WEB, resource: one }))
    expect('redirect' in (await open(one))).to.equal(true)
    for (const scope of ['openid', 'read', undefined]) {
      const page = await open(other, scope)
      expect('html' in page && page.html, scope ?? 'no scope').to.include(other)
    }
    for (const parameters of [{}, { scope: 'read' }]) {
      const unnamed = await client.browser.open(client.authorizeUrl({ redirect_uri: WEB, ...parameters }))
      expect('redirect' in unnamed && unnamed.redirect.searchParams.get('error')).to.equal('invalid_target')
    }
    await client.decide(await client.ask({ redirect_uri: WEB, resource: other }))
    expect('redirect' in (await open(one)) && 'redirect' in (await open(other))).to.equal(true)
  })

  it('redirects with access_denied when the user denies consent', async () => {
    const client = await bridge.client()
    const back = await client.decide(await client.ask({ scope: 'read' }), 'deny')
    expect(Object.fromEntries(back.searchParams)).to.include({
      error: 'access_denied',
      state: 'a state',
      iss: bridge.issuer,
    })
  })

  it('supports a custom scheme redirect URI of an app', async () => {
    const client = await bridge.client({ redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'] })
    const back = await client.decide(
      await client.ask({ redirect_uri: 'cursor://anysphere.cursor-mcp/oauth/callback', scope: 'read' }),
    )
    expect(back.protocol).to.equal('cursor:')
    expect(back.searchParams.get('code')).to.be.a('string')
  })
})

describe('auth-bridge: account page', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({ clock: createManualClock() })
  })
  after(stopBridges)

  it('lists clients and revokes the access of one', async () => {
    const client = await bridge.client({ client_name: 'The Tool' })
    const tokens = await client.logIn({ scope: 'read' })
    const page = await client.browser.page(`${bridge.issuer}/account`)
    expect(page.html).to.include('The Tool')
    const [, id = ''] = /name="revoke" value="([^"]+)"/.exec(page.html) ?? []
    const after = await client.browser.click(page, { revoke: id })
    expect('html' in after && after.html).to.match(/removed the access of .*The Tool/)
    expect(await client.refresh(tokens.refresh_token ?? '')).to.include({ error: 'invalid_grant' })
  })

  it('requires sign-in first, and sign-out revokes all grants of the session', async () => {
    const client = await bridge.client()
    const first = await client.browser.page(`${bridge.issuer}/account`)
    expect(first.html).to.include('Sign in with')
    const page = await client.browser.page(`${bridge.issuer}/account/sign-in`)
    expect(page.url).to.equal(`${bridge.issuer}/account`)
    const tokens = await client.logIn({ scope: 'read' })
    const revocations = bridge.idp.asked('revocation')
    const account = await client.browser.page(`${bridge.issuer}/account`)
    const out = await client.browser.click(account, { signOut: 'yes' })
    expect('html' in out && out.html).to.include('You are signed out')
    expect(await client.refresh(tokens.refresh_token ?? '')).to.include({ error: 'invalid_grant' })
    expect((await client.browser.page(`${bridge.issuer}/account`)).html).to.include('Sign in with')
    expect(bridge.idp.asked('revocation')).to.be.greaterThan(revocations)
  })

  it('signs out of all logins of the user in this browser', async () => {
    const client = await bridge.client()
    const tokens = await client.logIn({ scope: 'read' })
    // They sign in again, as everybody does after some hours.
    await client.browser.page(`${bridge.issuer}/account/sign-in`)
    const elsewhere = await bridge.client()
    const others = await elsewhere.logIn({ scope: 'read' })
    const account = await client.browser.page(`${bridge.issuer}/account`)
    await client.browser.click(account, { signOut: 'yes' })
    expect(await client.refresh(tokens.refresh_token ?? '')).to.include({ error: 'invalid_grant' })
    expect((await elsewhere.refresh(others.refresh_token ?? '')).error).to.equal(undefined)
  })

  it('signs out permanently, even during a concurrent client refresh', async () => {
    const client = await bridge.client()
    let token = (await client.logIn({ scope: 'read' })).refresh_token ?? ''
    const account = await client.browser.page(`${bridge.issuer}/account`)
    // The provider takes its time over a refresh, and the person does not wait.
    bridge.idp.troubled = ['token']
    bridge.idp.delay = 300
    // Nor does it hear of the sign-out: that alone would end the refresh.
    bridge.idp.failing.revocation = { status: 503, error: 'server_error' }
    const asked = bridge.idp.asked('token')
    const refreshing = (async () => {
      while (bridge.idp.asked('token') === asked) {
        const { error, refresh_token } = await client.refreshLater(token)
        if (error !== undefined) return error
        token = refresh_token ?? ''
      }
      return undefined
    })()
    await eventually('the provider is asked', () => bridge.idp.asked('token') > asked)
    await client.browser.click(account, { signOut: 'yes' })
    expect(await refreshing).to.equal('invalid_grant')
    bridge.idp.delay = 0
    bridge.idp.failing.revocation = undefined
    expect(await client.refresh(token)).to.include({ error: 'invalid_grant' })
  })

  it('rejects fields that its form does not contain', async () => {
    const client = await bridge.client()
    await client.logIn({ scope: 'read' })
    const page = await client.browser.page(`${bridge.issuer}/account`)
    const forged = await client.browser.click(page, { signOut: 'yes', csrf: 'made up' })
    expect('html' in forged && forged.status).to.equal(403)
    expect((await client.browser.page(`${bridge.issuer}/account`)).html).not.to.include('Sign in with')
  })
})
