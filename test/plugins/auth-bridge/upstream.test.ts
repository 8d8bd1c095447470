// Tests OpenID Connect logins with a real provider in the variants of each vendor.
import { expect } from 'chai'
import { Browser } from '../../support/form-browser.ts'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../../support/identity-provider.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

const VENDORS = ['oidc', 'entra', 'okta', 'google', 'auth0', 'keycloak'] as const

const start = (settings: Parameters<typeof startIdentityProvider>[0] = {}) =>
  startIdentityProvider({ redirects: [CALLBACK], ...settings })

after(stopIdentityProviders)

const GROUPS: Readonly<Record<(typeof VENDORS)[number], string[] | undefined>> = {
  oidc: ['staff', 'engineering'],
  entra: ['staff', 'engineering'],
  okta: ['staff', 'engineering'],
  google: undefined,
  auth0: undefined,
  keycloak: ['/staff', '/engineering', 'staff', 'engineering'],
}

for (const vendor of VENDORS) {
  describe(`Upstream login: ${vendor}`, () => {
    let idp: IdentityProvider
    before(async () => {
      idp = await start({ vendor })
    })

    it('returns the user, and tokens that can be refreshed and revoked', async () => {
      const { upstream } = makeUpstream(idp.options())
      const first = await signIn(upstream, idp)
      expect(first.person.subject).to.equal(vendor === 'entra' ? 'oid-of-ann' : 'ann')
      expect(first.person.name).to.equal('Ann Example')
      expect(first.person.email).to.equal(vendor === 'entra' ? undefined : 'ann@acme.example')
      expect(first.person.groups).to.deep.equal(GROUPS[vendor])
      expect(first.tokens.refreshToken).to.be.a('string')
      expect(first.tokens.expiresAt).to.be.a('number')
      expect(first.tokens.scopes).to.include('openid')

      const second = await upstream.renew(first)
      expect(second.person.subject).to.equal(first.person.subject)
      expect(second.person.groups).to.deep.equal(first.person.groups)
      expect(second.tokens.accessToken).to.not.equal(first.tokens.accessToken)
      expect(second.tokens.refreshToken !== first.tokens.refreshToken).to.equal(vendor !== 'google')

      await upstream.revoke(second.tokens)
      expect(idp.asked('revocation')).to.equal(vendor === 'entra' ? 0 : 1)
      if (vendor !== 'entra') expect((await catchError(upstream.renew(second))).fault).to.equal('refused')
    })

    it('sends PKCE, a nonce and the state', () => {
      const query = idp.requests.find(({ endpoint }) => endpoint === 'authorization')?.query ?? {}
      expect(query).to.include({ response_type: 'code', code_challenge_method: 'S256', redirect_uri: CALLBACK })
      expect(query['code_challenge']).to.have.lengthOf(43)
      expect(query['nonce']).to.have.lengthOf(43)
      expect(query).to.not.have.property('login_hint')
      const forms = idp.requests.filter(({ endpoint }) => endpoint === 'token').map(({ form }) => form)
      expect(forms[0]?.['code_verifier']).to.have.lengthOf(43)
      for (const form of forms) expect(form).to.not.have.any.keys('resource', 'audience', 'scope')
    })

    it('rejects a removed user', async () => {
      idp.users.set('bob', { sub: 'bob', name: 'Bob', email: 'bob@acme.example' })
      const { upstream } = makeUpstream(idp.options())
      const bob = await signIn(upstream, idp, { loginHint: 'bob' })
      expect(bob.person.name).to.equal('Bob')
      idp.users.delete('bob')
      const fault = await catchError(upstream.renew(bob))
      expect(fault).to.include({ fault: 'refused', code: 'invalid_grant' })
    })
  })
}

describe('Upstream login: name', () => {
  it('is kept if a refresh does not return it', async () => {
    const idp = await start()
    const { upstream } = makeUpstream({ ...idp.options(), claims: { name: 'name' } })
    const first = await signIn(upstream, idp)
    idp.users.set('ann', { sub: 'ann' })
    const second = await upstream.renew(first)
    expect([first.person.name, second.person.name]).to.deep.equal(['Ann Example', 'Ann Example'])
  })
})

describe('Upstream login: login page', () => {
  it('completes for the chosen user, and fails if cancelled', async () => {
    const idp = await start({ page: 'form' })
    idp.users.set('bob', { sub: 'bob', name: 'Bob' })
    const { upstream } = makeUpstream(idp.options())
    const request = { redirectUri: CALLBACK, state: 'a state' }
    const first = await upstream.startLogin(request)
    const browser = new Browser(idp.origin)
    const chosen = await browser.click(await browser.page(first.url), { account: 'bob' })
    if (!('redirect' in chosen)) throw new Error(chosen.html)
    expect((await upstream.finish(chosen.redirect, first.underWay, request)).person.name).to.equal('Bob')
    const second = await upstream.startLogin({ ...request, prompt: 'select_account' })
    const left = await browser.click(await browser.page(second.url), { deny: 'yes' })
    if (!('redirect' in left)) throw new Error(left.html)
    const fault = await catchError(upstream.finish(left.redirect, second.underWay, request))
    expect(fault).to.include({ fault: 'refused', code: 'access_denied' })
  })
})
