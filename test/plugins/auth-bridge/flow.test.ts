// The whole way: a client that nobody knows, a person of the company, a token, a call; and what comes after.
import { expect } from 'chai'
import { type StartedBridge, startBridge } from '../../support/bridge.ts'
import { claimsOf } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs, userIn } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'

describe('auth-bridge', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(async () => {
    await stopHosts()
    await stopIdentityProviders()
  })

  it('signs somebody in with the company’s provider, and gives a client a token for the route', async () => {
    const client = await bridge.client()
    const page = await client.ask({ scope: 'read admin' })
    expect(page.html).to.include('Hand &#38; Co')
    const tokens = await client.logIn({ scope: 'read admin' })
    expect(tokens.error_description).to.equal(undefined)
    const answer = await callAs(bridge.resource, tokens.access_token)
    expect(answer.status).to.equal(200)
    expect(userIn(answer)).to.include({ issuer: bridge.issuer, subject: 'ann', clientId: client.clientId })
    expect(claimsOf(tokens.access_token)).to.include({ iss: bridge.issuer, aud: bridge.resource, scope: 'read admin' })
  })

  it('refreshes', async () => {
    const client = await bridge.client()
    const first = await client.logIn({ scope: 'read' })
    const second = await client.refresh(first.refresh_token ?? '')
    expect(second.error_description).to.equal(undefined)
    expect(second.refresh_token).to.be.a('string').and.not.equal(first.refresh_token)
    expect((await callAs(bridge.resource, second.access_token)).status).to.equal(200)
  })
})
