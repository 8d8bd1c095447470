// Tests Entra specifics: group overage, tokens for one API each, and token exchange.
import { expect } from 'chai'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../../support/identity-provider.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

const MANY = Array.from({ length: 300 }, (_, index) => `group-${index}`)
const API = 'api://reports/read'

const REQUEST = { redirectUri: CALLBACK, state: 'a state' }

let idp: IdentityProvider
before(async () => {
  idp = await startIdentityProvider({ vendor: 'entra', redirects: [CALLBACK], scopes: [API] })
})
after(stopIdentityProviders)
beforeEach(() => {
  delete idp.failing.graph
  delete idp.failing.token
  idp.troubled = undefined
  idp.mood = 'well'
  idp.users.set('ann', { sub: 'ann', name: 'Ann', groups: MANY })
})

describe('Entra: group overage', () => {
  it('reads groups from Microsoft Graph with the access token', async () => {
    const before = idp.asked('token')
    const { upstream, lines } = makeUpstream(idp.options())
    const { person } = await signIn(upstream, idp)
    expect(person.claims).to.have.property('_claim_names')
    expect(person.groups).to.deep.equal(MANY)
    expect(idp.asked('token') - before).to.equal(1)
    expect(lines).to.deep.equal([])
  })

  it('reads groups again at each refresh, and only on overage', async () => {
    const { upstream } = makeUpstream(idp.options())
    const first = await signIn(upstream, idp)
    idp.users.set('ann', { sub: 'ann', groups: MANY.slice(0, 250) })
    const second = await upstream.renew(first)
    expect(second.person.groups).to.have.lengthOf(250)
    const asked = idp.asked('graph')
    idp.users.set('ann', { sub: 'ann', groups: ['staff'] })
    expect((await upstream.renew(second)).person.groups).to.deep.equal(['staff'])
    expect(idp.asked('graph')).to.equal(asked)
  })

  it('uses a Graph token if the login is for another API', async () => {
    const { upstream } = makeUpstream(idp.options({ scopes: [API, 'profile', 'offline_access'] }))
    const first = await signIn(upstream, idp)
    expect(first.tokens.scopes).to.include(API)
    expect(first.person.groups).to.deep.equal(MANY)
    const sent = idp.requests.filter(({ endpoint }) => endpoint === 'token').at(-1)
    expect(sent?.form['scope']).to.equal(`${idp.origin}/User.Read`)
    // The refresh token was used for it: the login goes on with the new one.
    const second = await upstream.renew(first)
    expect(second.person.groups).to.deep.equal(MANY)
    expect(second.tokens.scopes).to.include(API)
  })

  it('leaves groups unknown if Graph refuses, and logs what to change', async () => {
    for (const status of [400, 401, 403]) {
      idp.failing.graph = { status, error: 'Authorization_RequestDenied' }
      const { upstream, lines } = makeUpstream(idp.options())
      const { person } = await signIn(upstream, idp)
      expect(person.groups).to.equal(undefined)
      expect(lines).to.have.lengthOf(1)
      expect(JSON.stringify(lines[0]?.fields)).to.include('User.Read')
    }
  })

  it('leaves groups unknown for another API without a refresh token', async () => {
    const { upstream, lines } = makeUpstream(idp.options({ scopes: [API] }))
    const { person } = await signIn(upstream, idp)
    expect(person.groups).to.equal(undefined)
    expect(lines.at(-1)?.message).to.include('too many groups')
  })

  it('fails the login as unavailable, not as denied, while Graph is away', async () => {
    const { upstream } = makeUpstream(idp.options())
    await upstream.startLogin(REQUEST)
    idp.troubled = ['graph']
    idp.mood = 'down'
    expect((await catchError(signIn(upstream, idp))).fault).to.equal('unavailable')
  })

  it('detects overage in the hasgroups claim', async () => {
    idp.users.set('ann', { sub: 'ann', groups: ['staff'], claims: { hasgroups: true, groups: null } })
    const { upstream } = makeUpstream(idp.options())
    expect((await signIn(upstream, idp)).person.groups).to.deep.equal(['staff'])
  })
})

describe('Entra: tokens for another API', () => {
  it('are issued by a refresh with that scope, which returns the next refresh token', async () => {
    const { upstream } = makeUpstream(idp.options())
    const { tokens, person } = await signIn(upstream, idp)
    const other = await upstream.exchange(tokens, API)
    expect(other.scopes).to.deep.equal([API])
    expect(other.accessToken).to.not.equal(tokens.accessToken)
    expect(other.refreshToken).to.not.equal(tokens.refreshToken)
    const next = { ...tokens, ...(other.refreshToken !== undefined && { refreshToken: other.refreshToken }) }
    await upstream.renew({ person, tokens: next })
  })

  it('require a refresh token', async () => {
    const { upstream } = makeUpstream(idp.options())
    const { tokens } = await signIn(upstream, idp)
    const { refreshToken: _, ...bare } = tokens
    const fault = await catchError(upstream.exchange(bare, API))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('offline_access')
  })

  it('are issued by token exchange', async () => {
    const { upstream } = makeUpstream(idp.options({ exchange: 'token-exchange' }))
    const { tokens } = await signIn(upstream, idp)
    const other = await upstream.exchange(tokens, API)
    const sent = idp.requests.filter(({ endpoint }) => endpoint === 'token').at(-1)
    expect(sent?.form).to.include({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      scope: API,
    })
    expect(other).to.include({ refreshToken: tokens.refreshToken })
    expect(other.scopes).to.deep.equal([API])
    expect(other.accessToken).to.not.equal(tokens.accessToken)
    expect((await catchError(upstream.exchange({ ...tokens, accessToken: 'unknown' }, API))).fault).to.equal(
      'misconfigured',
    )
  })

  it('without user consent keep the login and report what to change', async () => {
    const { upstream } = makeUpstream(idp.options())
    const signedIn = await signIn(upstream, idp)
    idp.failing.token = { error: 'invalid_grant', error_description: 'AADSTS65001: The user has not consented.' }
    const fault = await catchError(upstream.exchange(signedIn.tokens, API))
    expect(fault).to.include({ fault: 'misconfigured', code: 'invalid_grant' })
    expect(fault.fix).to.include('docs/bridge/entra.md')
    expect((await catchError(upstream.renew(signedIn))).fault).to.equal('refused')
  })
})

describe('Entra: parameter `resource`', () => {
  it('is rejected by Entra, and the log states why', async () => {
    const { upstream } = makeUpstream(idp.options({ parameters: { resource: 'https://mcp.acme.example/' } }))
    const fault = await catchError(signIn(upstream, idp))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('docs/bridge/entra.md')
  })
})
