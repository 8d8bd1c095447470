// Entra's own ways: groups that do not fit into a token, tokens for one API each, and other scopes by refresh, by exchange
// and on behalf of somebody.
import { expect } from 'chai'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../../support/identity-provider.ts'
import { CALLBACK, faultOf, makeUpstream, signIn } from '../../support/upstream.ts'

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

describe('too many groups for a token', () => {
  it('are asked of Microsoft Graph with the access token', async () => {
    const before = idp.asked('token')
    const { upstream, lines } = makeUpstream(idp.options())
    const { person } = await signIn(upstream, idp)
    expect(person.claims).to.have.property('_claim_names')
    expect(person.groups).to.deep.equal(MANY)
    expect(idp.asked('token') - before).to.equal(1)
    expect(lines).to.deep.equal([])
  })

  it('are asked anew with each renewal, and not where they fit', async () => {
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

  it('are asked with a token for Graph where the login is for another API', async () => {
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

  it('are unknown where Graph refuses, and the log says what to change', async () => {
    for (const status of [400, 401, 403]) {
      idp.failing.graph = { status, error: 'Authorization_RequestDenied' }
      const { upstream, lines } = makeUpstream(idp.options())
      const { person } = await signIn(upstream, idp)
      expect(person.groups).to.equal(undefined)
      expect(lines).to.have.lengthOf(1)
      expect(JSON.stringify(lines[0]?.fields)).to.include('User.Read')
    }
  })

  it('are unknown where the login is for another API and there is no refresh token', async () => {
    const { upstream, lines } = makeUpstream(idp.options({ scopes: [API] }))
    const { person } = await signIn(upstream, idp)
    expect(person.groups).to.equal(undefined)
    expect(lines.at(-1)?.message).to.include('too many groups')
  })

  it('make a login wait for Graph: where that is away, nobody is refused for it', async () => {
    const { upstream } = makeUpstream(idp.options())
    await upstream.begin(REQUEST)
    idp.troubled = ['graph']
    idp.mood = 'down'
    expect((await faultOf(signIn(upstream, idp))).fault).to.equal('unavailable')
  })

  it('are seen by hasgroups, too', async () => {
    idp.users.set('ann', { sub: 'ann', groups: ['staff'], claims: { hasgroups: true, groups: null } })
    const { upstream } = makeUpstream(idp.options())
    expect((await signIn(upstream, idp)).person.groups).to.deep.equal(['staff'])
  })
})

describe('another scope', () => {
  it('comes by a refresh that names it, with the refresh token to go on with', async () => {
    const { upstream } = makeUpstream(idp.options())
    const { tokens, person } = await signIn(upstream, idp)
    const other = await upstream.exchange(tokens, API)
    expect(other.scopes).to.deep.equal([API])
    expect(other.accessToken).to.not.equal(tokens.accessToken)
    expect(other.refreshToken).to.not.equal(tokens.refreshToken)
    const next = { ...tokens, ...(other.refreshToken !== undefined && { refreshToken: other.refreshToken }) }
    await upstream.renew({ person, tokens: next })
  })

  it('needs a refresh token for that', async () => {
    const { upstream } = makeUpstream(idp.options())
    const { tokens } = await signIn(upstream, idp)
    const { refreshToken: _, ...bare } = tokens
    const fault = await faultOf(upstream.exchange(bare, API))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('offline_access')
  })

  for (const [exchange, grant, parameters] of [
    ['on-behalf-of', 'urn:ietf:params:oauth:grant-type:jwt-bearer', { requested_token_use: 'on_behalf_of' }],
    [
      'token-exchange',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      { subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    ],
  ] as const) {
    it(`comes by ${exchange}`, async () => {
      const { upstream } = makeUpstream(idp.options({ exchange }))
      const { tokens } = await signIn(upstream, idp)
      const other = await upstream.exchange(tokens, API)
      const sent = idp.requests.filter(({ endpoint }) => endpoint === 'token').at(-1)
      expect(sent?.form).to.include({ grant_type: grant, scope: API, ...parameters })
      expect(other).to.include({ refreshToken: tokens.refreshToken })
      expect(other.scopes).to.deep.equal([API])
      expect(other.accessToken).to.not.equal(tokens.accessToken)
      expect((await faultOf(upstream.exchange({ ...tokens, accessToken: 'unknown' }, API))).fault).to.equal(
        'misconfigured',
      )
    })
  }

  it('comes in no way where the options say none', async () => {
    const { upstream } = makeUpstream(idp.options({ exchange: 'none' }))
    const { tokens } = await signIn(upstream, idp)
    const fault = await faultOf(upstream.exchange(tokens, API))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('provider.exchange')
  })

  it('that nobody consented to is no end of the login: it says what to change', async () => {
    const { upstream } = makeUpstream(idp.options())
    const signedIn = await signIn(upstream, idp)
    idp.failing.token = { error: 'invalid_grant', error_description: 'AADSTS65001: The user has not consented.' }
    const fault = await faultOf(upstream.exchange(signedIn.tokens, API))
    expect(fault).to.include({ fault: 'misconfigured', code: 'invalid_grant' })
    expect(fault.fix).to.include('API permissions')
    expect((await faultOf(upstream.renew(signedIn))).fault).to.equal('refused')
  })
})

describe('a parameter `resource`', () => {
  it('is refused there, and the log says why', async () => {
    const { upstream } = makeUpstream(idp.options({ parameters: { resource: 'https://mcp.acme.example/' } }))
    const fault = await faultOf(signIn(upstream, idp))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('resource')
  })
})
