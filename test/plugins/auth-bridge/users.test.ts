// Tests which users can sign in, their scopes and roles, and changes at the provider.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { readClaims } from '../../support/form-browser.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { callAs } from '../../support/protected-host.ts'

const USERS = [
  { sub: 'ann', email: 'ann@acme.example', groups: ['engineering'] },
  { sub: 'bob', email: 'bob@acme.example', groups: ['sales'] },
  { sub: 'eve', email: 'eve@evil.example', groups: ['engineering-fans'] },
  { sub: 'una', email: 'una@acme.example', emailVerified: false, groups: ['sales'] },
  { sub: 'nil' },
]

describe('auth-bridge: users', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({
      clock: createManualClock(),
      idp: { users: USERS },
      options: {
        allow: { domains: ['acme.example'], groups: ['engineering'] },
        scopes: { admin: { title: 'Administer everything', group: 'engineering' }, read: { title: 'Read all notes' } },
        roles: { lead: { group: ['engineering', 'leads'], domain: 'acme.example' }, seller: { group: 'sales' } },
      },
    })
  })
  after(stopBridges)

  const refused: ReadonlyArray<readonly [person: string, reason: string]> = [
    ['eve', 'the domain of your e-mail address is not allowed, and you are not in an allowed group'],
    ['una', 'your account has no verified e-mail address, and you are not in an allowed group'],
    ['nil', 'your account has no verified e-mail address, and the provider does not return your groups'],
  ]
  for (const [person, reason] of refused) {
    it(`shows ${person} why access is denied`, async () => {
      const client = await bridge.client()
      const page = await client.ask({ login_hint: person, scope: 'read' })
      expect(page.status).to.equal(403)
      expect(page.html).to.include(reason)
      expect(page.html).to.include('Use another account')
    })
  }

  it('redirects a denied user to the client with access_denied', async () => {
    const client = await bridge.client()
    const page = await client.ask({ login_hint: 'eve', scope: 'read' })
    const [, href = ''] = /href="([^"]*\?cancel)"/.exec(page.html) ?? []
    const back = await client.browser.open(new URL(href, page.url))
    expect('redirect' in back && back.redirect.searchParams.get('error')).to.equal('access_denied')
  })

  it('grants the scopes and roles whose rules match the user', async () => {
    const held = []
    for (const person of ['ann', 'bob']) {
      const client = await bridge.client()
      const { access_token, scope } = await client.logIn({ login_hint: person, scope: 'read admin' })
      const { sub, roles, scope: inToken } = readClaims(access_token)
      expect(inToken).to.equal(scope)
      held.push([sub, scope, roles])
    }
    expect(held).to.deep.equal([
      ['ann', 'read admin', ['lead']],
      ['bob', 'read', ['seller']],
    ])
  })

  it('shows titles of scopes on the consent page', async () => {
    const client = await bridge.client()
    const { html } = await client.ask({ login_hint: 'ann', scope: 'read admin' })
    for (const title of ['Read all notes', 'Administer everything']) expect(html).to.include(`<li>${title} `)
  })

  it('denies the request if the user may have none of the requested scopes', async () => {
    const client = await bridge.client()
    const back = await client.decide(await client.ask({ login_hint: 'bob', scope: 'admin' }))
    expect(back.searchParams.get('error')).to.equal('access_denied')
  })

  it('grants the default scopes to a client that requests none', async () => {
    const client = await bridge.client()
    expect(await client.logIn({ login_hint: 'ann' })).to.include({ scope: 'read' })
  })

  it('removes a scope at the next refresh, and grants it again later', async () => {
    const client = await bridge.client()
    const first = await client.logIn({ login_hint: 'ann', scope: 'read admin' })
    bridge.idp.users.set('ann', { sub: 'ann', email: 'ann@acme.example', groups: ['sales'] })
    let token = first.refresh_token ?? ''
    const refresh = async () => {
      const next = await client.refreshLater(token)
      token = next.refresh_token ?? token
      return next.scope
    }
    await eventually('the scope is gone', refresh, scope => scope === 'read')
    bridge.idp.users.set('ann', { sub: 'ann', email: 'ann@acme.example', groups: ['engineering'] })
    await eventually('the scope is back', refresh, scope => scope === 'read admin')
  })

  it('rejects the refresh of a removed user and ends the login', async () => {
    bridge.idp.users.set('tom', { sub: 'tom', email: 'tom@acme.example' })
    const client = await bridge.client()
    const first = await client.logIn({ login_hint: 'tom', scope: 'read' })
    expect((await callAs(bridge.resource, first.access_token)).status).to.equal(200)
    bridge.idp.users.delete('tom')
    let token = first.refresh_token ?? ''
    const last = await eventually(
      'the refresh is refused',
      async () => {
        const next = await client.refreshLater(token)
        token = next.refresh_token ?? token
        return next
      },
      ({ error }) => error !== undefined,
    )
    expect(last.error).to.equal('invalid_grant')
    // The browser is sent to the provider, which knows them no more.
    await client.browser.open(client.authorizeUrl({ resource: bridge.resource, scope: 'read' }))
    expect(client.browser.visited.at(-1)?.origin).to.equal(bridge.idp.origin)
  })

  it('rejects the refresh of a user who no longer matches the allow rules', async () => {
    bridge.idp.users.set('joe', { sub: 'joe', email: 'joe@acme.example' })
    const client = await bridge.client()
    let token = (await client.logIn({ login_hint: 'joe', scope: 'read' })).refresh_token ?? ''
    bridge.idp.users.set('joe', { sub: 'joe', email: 'joe@elsewhere.example' })
    const refresh = async () => {
      const next = await client.refreshLater(token)
      token = next.refresh_token ?? token
      return next.error
    }
    await eventually('the refresh is refused', refresh, error => error === 'invalid_grant')
  })
})
