// Tests the basic flow of auth-bridge: registration, sign-in, token, tool call and refresh.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { readClaims } from '../../support/form-browser.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { callAs, readUser } from '../../support/protected-host.ts'

describe('auth-bridge: authorization code flow', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  it('signs a user in with the upstream provider and issues an access token for the route', async () => {
    const client = await bridge.client()
    const page = await client.ask({ scope: 'read admin' })
    expect(page.html).to.include('Hand &#38; Co')
    const tokens = await client.logIn({ scope: 'read admin' })
    expect(tokens.error_description).to.equal(undefined)
    const answer = await callAs(bridge.resource, tokens.access_token)
    expect(answer.status).to.equal(200)
    expect(readUser(answer)).to.include({ issuer: bridge.issuer, subject: 'ann', clientId: client.clientId })
    expect(readClaims(tokens.access_token)).to.include({
      iss: bridge.issuer,
      aud: bridge.resource,
      scope: 'read admin',
    })
  })

  it('issues tokens for the route to clients that send its URL with a trailing slash', async () => {
    const client = await bridge.client()
    const tokens = await client.logIn({ scope: 'read', resource: `${bridge.resource}/` })
    expect(readClaims(tokens.access_token)).to.include({ aud: bridge.resource, scope: 'read' })
    const renewed = await client.refresh(tokens.refresh_token ?? '')
    expect((await callAs(bridge.resource, renewed.access_token)).status).to.equal(200)
  })

  it('signs the user in again for max_age without the scope openid', async () => {
    const client = await bridge.client()
    await client.logIn({ scope: 'read' })
    const logins = () => bridge.idp.asked('authorization')
    const before = logins()
    const page = await client.ask({ scope: 'read', max_age: '0' })
    expect(page.status).to.equal(200)
    expect(logins()).to.be.above(before)
  })

  it('refreshes an access token', async () => {
    const client = await bridge.client()
    const first = await client.logIn({ scope: 'read' })
    const second = await client.refresh(first.refresh_token ?? '')
    expect(second.error_description).to.equal(undefined)
    expect(second.refresh_token).to.be.a('string').and.not.equal(first.refresh_token)
    expect((await callAs(bridge.resource, second.access_token)).status).to.equal(200)
  })

  it('issues a refresh token to a client registered without grant_types', async () => {
    const client = await bridge.client({ grant_types: undefined })
    expect((await client.logIn({ scope: 'read' })).refresh_token).to.be.a('string')
    const without = await bridge.client({ grant_types: ['authorization_code'] })
    expect((await without.logIn({ scope: 'read' })).refresh_token).to.equal(undefined)
  })

  it('reads null as absent in registration metadata', async () => {
    const absent = ['client_uri', 'logo_uri', 'jwks', 'jwks_uri', 'scope', 'contacts', 'token_endpoint_auth_method']
    const client = await bridge.client(Object.fromEntries(absent.map(name => [name, null])))
    expect((await client.logIn({ scope: 'read' })).access_token).to.be.a('string')
  })

  it('removes a client from the account page after refresh token reuse', async () => {
    const short = await startBridge({ clock: createManualClock(), options: { refreshGrace: '1s' } })
    const client = await short.client({ client_name: 'Twice' })
    const first = await client.logIn({ scope: 'read' })
    expect((await client.browser.page(`${short.issuer}/account`)).html).to.include('Twice')
    await client.refresh(first.refresh_token ?? '')
    const refused = await eventually(
      'the grace is over',
      () => client.refreshLater(first.refresh_token ?? ''),
      ({ error }) => error !== undefined,
    )
    expect(refused.error).to.equal('invalid_grant')
    expect((await client.browser.page(`${short.issuer}/account`)).html).not.to.include('Twice')
  })
})
