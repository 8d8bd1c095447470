// Tests hostile callbacks, ID tokens, userinfo, token refreshes and metadata between auth-bridge and its provider.
import { expect } from 'chai'
import type { LoginUnderWay } from '../../../plugins/auth-bridge/upstream/upstream.ts'
import {
  type IdentityProvider,
  startIdentityProvider,
  stopIdentityProviders,
  unsignedToken,
} from '../../support/identity-provider.ts'
import { encode, inSeconds, makeKey, signText } from '../../support/test-issuer.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

const REQUEST = { redirectUri: CALLBACK, state: 'a state' }

let idp: IdentityProvider
before(async () => {
  idp = await startIdentityProvider({ redirects: [CALLBACK] })
  idp.users.set('eve', { sub: 'eve', email: 'eve@acme.example', groups: [] })
})
after(stopIdentityProviders)
beforeEach(() => {
  idp.tamper = undefined
  idp.metadata = {}
})

type Claims = Record<string, unknown>

/** An answer of the token endpoint with an ID token made anew of its claims. */
const withClaims = (change: Claims) => (answer: Claims) => ({
  ...answer,
  id_token: idp.sign({ ...idp.read(answer['id_token']), ...change }),
})

const withToken = (make: (claims: Claims) => string) => (answer: Claims) => ({
  ...answer,
  id_token: make(idp.read(answer['id_token'])),
})

const ID_TOKENS: Readonly<Record<string, () => (answer: Claims) => Claims>> = {
  'of another issuer': () => withClaims({ iss: 'https://evil.example' }),
  'for another client': () => withClaims({ aud: 'another-client' }),
  'for several, this not the authorized party': () => withClaims({ aud: [idp.clientId, 'other'], azp: 'other' }),
  'with another nonce': () => withClaims({ nonce: 'of another login' }),
  'without a nonce': () => withClaims({ nonce: undefined }),
  'that has ended': () => withClaims({ exp: inSeconds(-600) }),
  'without an end': () => withClaims({ exp: undefined }),
  'without a subject': () => withClaims({ sub: undefined }),
  'of a time to come': () => withClaims({ nbf: inSeconds(600) }),
  'signed by another key': () => withToken(claims => idp.sign(claims, makeKey('first'))),
  'signed by a key that nobody knows': () => withToken(claims => idp.sign(claims, makeKey('unknown'))),
  'with no signature': () => withToken(unsignedToken),
  'signed with the client secret': () =>
    withToken(claims => {
      const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
      return `${text}.${signText(text, 'HS256', idp.clientSecret)}`
    }),
  'of an algorithm that the metadata does not list': () =>
    withToken(claims => idp.sign(claims, makeKey('first', 'ES384'))),
  'that is no JWT': () => answer => ({ ...answer, id_token: 'nothing' }),
  'that is a number': () => answer => ({ ...answer, id_token: 7 }),
  'that is not there':
    () =>
    ({ id_token: _, ...answer }) =>
      answer,
}

describe('Upstream attacks: ID token', () => {
  it('is accepted as issued, and when signed again with the same claims', async () => {
    const { upstream } = makeUpstream(idp.options())
    await signIn(upstream, idp)
    idp.tamper = withClaims({})
    expect((await signIn(upstream, idp)).person.subject).to.equal('ann')
  })

  it('is rejected if it does not match the request', async () => {
    const { upstream } = makeUpstream(idp.options())
    for (const [name, make] of Object.entries(ID_TOKENS)) {
      idp.tamper = make()
      const fault = await catchError(signIn(upstream, idp))
      expect(fault.fault, `${name}: ${fault.message}`).to.equal('untrusted')
    }
  })

  it('is accepted at once with a new key, even after a recent key fetch', async () => {
    const { upstream } = makeUpstream(idp.options())
    await signIn(upstream, idp)
    idp.rotateKeys()
    expect((await signIn(upstream, idp)).person.subject).to.equal('ann')
  })
})

const CALLBACKS: Readonly<Record<string, (callback: URL) => void>> = {
  'with another state': callback => callback.searchParams.set('state', 'of another login'),
  'without a state': callback => callback.searchParams.delete('state'),
  'with an empty state': callback => callback.searchParams.set('state', ''),
  'with two states': callback => callback.searchParams.append('state', 'another'),
  'with another issuer': callback => callback.searchParams.set('iss', 'https://evil.example'),
  'with the issuer and a slash': callback => callback.searchParams.set('iss', `${idp.issuer}/`),
  'with an empty issuer': callback => callback.searchParams.set('iss', ''),
  'without an issuer, which the metadata promises': callback => callback.searchParams.delete('iss'),
  'with two codes': callback => callback.searchParams.append('code', 'another'),
  'without a code': callback => callback.searchParams.delete('code'),
  'with an error, and another state': callback => {
    callback.searchParams.set('state', 'of another login')
    callback.searchParams.set('error', 'access_denied')
  },
  'with an error of another issuer': callback => {
    callback.searchParams.set('iss', 'https://evil.example')
    callback.searchParams.set('error', 'access_denied')
  },
  'with an error without an issuer': callback => {
    callback.searchParams.delete('iss')
    callback.searchParams.set('error', 'access_denied')
  },
  'with a signed response': callback => callback.searchParams.set('response', 'a.b.c'),
  'with an ID token': callback => callback.searchParams.set('id_token', 'a.b.c'),
}

describe('Upstream attacks: callback', () => {
  it('is rejected if it does not match the login, and no code is sent', async () => {
    const { upstream } = makeUpstream(idp.options())
    await upstream.startLogin(REQUEST)
    const before = idp.asked('token')
    for (const [name, change] of Object.entries(CALLBACKS)) {
      const fault = await catchError(signIn(upstream, idp, { change }))
      expect(fault.fault, `${name}: ${fault.message}`).to.equal('untrusted')
    }
    expect(idp.asked('token')).to.equal(before)
  })

  it('of another login is rejected by PKCE and the nonce', async () => {
    const { upstream } = makeUpstream(idp.options())
    const request = { redirectUri: CALLBACK, state: 'one state' }
    const one = await upstream.startLogin(request)
    const two = await upstream.startLogin(request)
    const callback = await idp.signIn(one.url)
    const mixed: LoginUnderWay = { ...one.underWay, codeVerifier: two.underWay.codeVerifier }
    expect(await catchError(upstream.finish(callback, mixed, request))).to.include({ code: 'invalid_grant' })
    const again = await idp.signIn(one.url)
    const swapped: LoginUnderWay = { codeVerifier: one.underWay.codeVerifier, nonce: two.underWay.nonce ?? '' }
    expect(await catchError(upstream.finish(again, swapped, request))).to.include({ fault: 'untrusted' })
    const third = await idp.signIn(one.url)
    const bare: LoginUnderWay = { codeVerifier: one.underWay.codeVerifier }
    expect(await catchError(upstream.finish(third, bare, request))).to.include({ fault: 'untrusted' })
  })

  it('is accepted once, because its code is used up', async () => {
    const { upstream } = makeUpstream(idp.options())
    const request = { redirectUri: CALLBACK, state: 'one state' }
    const { url, underWay } = await upstream.startLogin(request)
    const callback = await idp.signIn(url)
    await upstream.finish(callback, underWay, request)
    const fault = await catchError(upstream.finish(callback, underWay, request))
    expect(fault).to.include({ fault: 'refused', code: 'invalid_grant' })
  })
})

describe('Upstream attacks: token refresh', () => {
  it('is rejected for another user', async () => {
    const { upstream } = makeUpstream(idp.options())
    const ann = await signIn(upstream, idp, { loginHint: 'ann' })
    idp.tamper = withClaims({ sub: 'eve' })
    expect(await catchError(upstream.renew(ann))).to.include({ fault: 'refused' })
  })

  it('is rejected for another user, even with an equal subject claim', async () => {
    const { upstream } = makeUpstream(idp.options({ claims: { subject: 'preferred_username' } }))
    const ann = await signIn(upstream, idp, { loginHint: 'ann' })
    idp.tamper = withClaims({ sub: 'eve' })
    expect(await catchError(upstream.renew(ann))).to.include({ fault: 'refused' })
  })

  it('is rejected if userinfo belongs to another user', async () => {
    const { upstream } = makeUpstream(idp.options({ scopes: ['profile'] }))
    const request = { redirectUri: CALLBACK, state: 'one' }
    const begun = await upstream.startLogin(request)
    const ann = await upstream.finish(await idp.signIn(begun.url), begun.underWay, request)
    expect(ann.tokens).to.not.have.property('refreshToken')
    const eve = await signIn(upstream, idp, { loginHint: 'eve' })
    const mixed = { person: ann.person, tokens: eve.tokens }
    expect(await catchError(upstream.renew(mixed))).to.include({ fault: 'untrusted' })
  })

  it('is rejected with a refresh token of another user', async () => {
    const { upstream } = makeUpstream(idp.options())
    const ann = await signIn(upstream, idp, { loginHint: 'ann' })
    const eve = await signIn(upstream, idp, { loginHint: 'eve' })
    expect(await catchError(upstream.renew({ person: ann.person, tokens: eve.tokens }))).to.include({
      fault: 'refused',
    })
    idp.idTokenOnRefresh = false
    const again = await signIn(upstream, idp, { loginHint: 'eve' })
    const bare = { person: ann.person, tokens: again.tokens }
    const fault = await catchError(upstream.renew(bare))
    expect(fault).to.include({ fault: 'untrusted' })
    idp.idTokenOnRefresh = true
  })
})

describe('Upstream attacks: metadata', () => {
  for (const [name, metadata, fault] of [
    ['of another issuer', { issuer: 'https://evil.example' }, 'misconfigured'],
    ['without an issuer', { issuer: undefined }, 'misconfigured'],
    ['that sends codes beyond this machine without TLS', { token_endpoint: 'http://evil.example/token' }, 'untrusted'],
    ['that sends browsers there', { authorization_endpoint: 'http://evil.example/auth' }, 'untrusted'],
    ['that has keys there', { jwks_uri: 'http://evil.example/jwks' }, 'untrusted'],
    ['that has no keys', { jwks_uri: undefined }, 'misconfigured'],
    ['whose token endpoint is no URL', { token_endpoint: 'nowhere' }, 'misconfigured'],
    ['whose endpoint is a script', { authorization_endpoint: 'javascript:alert(1)' }, 'untrusted'],
  ] as const) {
    it(`${name} is rejected`, async () => {
      idp.metadata = metadata
      const { upstream } = makeUpstream(idp.options())
      expect(await catchError(upstream.startLogin(REQUEST))).to.include({ fault })
      idp.metadata = {}
      await upstream.startLogin(REQUEST)
    })
  }
})
