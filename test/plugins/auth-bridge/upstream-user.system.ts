// Tests how provider claims map to a user, and how a refresh updates them.
import { expect } from 'chai'
import {
  type IdentityProvider,
  type IdpUser,
  startIdentityProvider,
  stopIdentityProviders,
} from '../../support/identity-provider.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

type Settings = NonNullable<Parameters<typeof startIdentityProvider>[0]>

after(stopIdentityProviders)

const start = (settings: Settings) => startIdentityProvider({ redirects: [CALLBACK], ...settings })

/** The person of one login with this one user. */
async function personOf(user: IdpUser, settings: Settings = {}, options: Record<string, unknown> = {}) {
  const idp = await start({ users: [user], extraClaims: Object.keys(user.claims ?? {}), ...settings })
  const { upstream } = makeUpstream(idp.options(options))
  return (await signIn(upstream, idp)).person
}

const ann = { sub: 'ann', email: 'Ann@Acme.example' }

describe('Upstream user: e-mail address', () => {
  for (const [name, user, settings, options, email] of [
    ['that is verified, in lower case', ann, {}, {}, 'ann@acme.example'],
    ['that is verified in text', { ...ann, claims: { email_verified: 'true' } }, {}, {}, 'ann@acme.example'],
    ['of userinfo', ann, { claimsIn: 'userinfo' }, {}, 'ann@acme.example'],
    ['that is not verified', { ...ann, emailVerified: false }, {}, {}, undefined],
    ['of which nothing is said', { ...ann, claims: { email_verified: null } }, {}, {}, undefined],
    [
      'of which nothing is said, where it is trusted',
      { ...ann, emailVerified: false },
      {},
      { trustEmail: true },
      'ann@acme.example',
    ],
    [
      'that is another claim',
      { ...ann, claims: { mail: 'x@acme.example' } },
      {},
      { claims: { email: 'mail' } },
      undefined,
    ],
    [
      'that is another, trusted claim',
      { ...ann, claims: { mail: 'x@acme.example' } },
      {},
      { claims: { email: 'mail' }, trustEmail: true },
      'x@acme.example',
    ],
    ['of two domains', { ...ann, email: 'a@evil.example@acme.example' }, {}, {}, undefined],
    ['with a name', { ...ann, email: 'Ann <ann@acme.example>' }, {}, {}, undefined],
    ['of nobody', { sub: 'ann', claims: { email: 7, email_verified: true } }, {}, {}, undefined],
    ['of Entra', ann, { vendor: 'entra' }, {}, undefined],
    [
      'of Entra that calls itself verified',
      { ...ann, claims: { email_verified: true } },
      { vendor: 'entra' },
      {},
      undefined,
    ],
    [
      'of Entra whose domain is verified',
      { ...ann, claims: { xms_edov: true } },
      { vendor: 'entra' },
      {},
      'ann@acme.example',
    ],
    ['of Entra whose domain is not', { ...ann, claims: { xms_edov: false } }, { vendor: 'entra' }, {}, undefined],
    ['of Entra where it is trusted', ann, { vendor: 'entra' }, { trustEmail: true }, 'ann@acme.example'],
    ['of a Workspace', ann, { vendor: 'google' }, {}, 'ann@acme.example'],
    ['of Gmail', { sub: 'ann', email: 'ann@gmail.com' }, { vendor: 'google' }, {}, 'ann@gmail.com'],
    [
      'of a Google account that is of no Workspace',
      { ...ann, claims: { hd: null } },
      { vendor: 'google' },
      {},
      undefined,
    ],
    ['of Google that is not verified', { ...ann, emailVerified: false }, { vendor: 'google' }, {}, undefined],
  ] as ReadonlyArray<readonly [string, IdpUser, Settings, Record<string, unknown>, string | undefined]>) {
    it(`${name}: ${email ?? 'ignored'}`, async () => {
      const person = await personOf(user, settings, options)
      expect(person.email).to.equal(email)
    })
  }

  it('in userinfo is not verified by the ID token of another address', async () => {
    const idp = await start({ claimsIn: 'userinfo', users: [{ ...ann, claims: { email_verified: null } }] })
    idp.tamper = answer => ({
      ...answer,
      id_token: idp.sign({ ...idp.read(answer['id_token']), email_verified: true }),
    })
    const { upstream } = makeUpstream(idp.options())
    const { person } = await signIn(upstream, idp)
    expect(person.claims['email']).to.equal('Ann@Acme.example')
    expect(person.email).to.equal(undefined)
  })
})

describe('Upstream user: subject', () => {
  for (const [name, claims, paths, subject] of [
    ['at a path', { org: { id: 'x-1' } }, 'org.id', 'x-1'],
    ['at the second of two paths', {}, ['org.id', 'sub'], 'ann'],
    ['that is a number', { number: 4711 }, 'number', '4711'],
  ] as const) {
    it(`${name} is ${subject}`, async () => {
      const person = await personOf(
        { ...ann, claims },
        { extraClaims: ['org', 'number'] },
        { claims: { subject: paths } },
      )
      expect(person.subject).to.equal(subject)
    })
  }

  for (const [name, value] of Object.entries({
    nothing: null,
    'no text': { a: 1 },
    'an empty text': '',
    'a fraction': 1.5,
  })) {
    it(`with value ${name} is rejected with advice`, async () => {
      const idp = await start({ users: [{ ...ann, claims: { number: value } }], extraClaims: ['number'] })
      const { upstream } = makeUpstream(idp.options({ claims: { subject: 'number' } }))
      const fault = await catchError(signIn(upstream, idp))
      expect(fault.fault).to.equal('misconfigured')
      expect(fault.fix).to.include('provider.claims.subject')
    })
  }
})

describe('Upstream user: groups', () => {
  for (const [name, claims, paths, groups] of [
    ['that are a list', { groups: ['a', 'b', 'a'] }, undefined, ['a', 'b']],
    ['that are one text', { groups: 'a' }, undefined, ['a']],
    ['that are none', { groups: [] }, undefined, []],
    ['that are not there', {}, undefined, undefined],
    ['that are null', { groups: null }, undefined, undefined],
    ['that are no texts', { groups: ['a', 7, { name: 'b' }, null, ''] }, undefined, ['a']],
    ['at two paths', { groups: ['a'], realm_access: { roles: ['b'] } }, ['groups', 'realm_access.roles'], ['a', 'b']],
    ['at a name with dots', { 'https://acme.example/groups': ['a'] }, 'https://acme.example/groups', ['a']],
  ] as ReadonlyArray<readonly [string, Record<string, unknown>, string | string[] | undefined, string[] | undefined]>) {
    it(`${name}: ${JSON.stringify(groups)}`, async () => {
      const options = paths === undefined ? {} : { claims: { groups: paths } }
      const person = await personOf({ ...ann, claims }, {}, options)
      expect(person.groups).to.deep.equal(groups)
    })
  }
})

describe('Upstream user: refresh', () => {
  const changed = async (settings: Settings, change: (idp: IdentityProvider) => void, options = {}) => {
    const idp = await start({ users: [{ ...ann, name: 'Ann', groups: ['staff', 'admins'] }], ...settings })
    const { upstream } = makeUpstream(idp.options(options))
    const before = await signIn(upstream, idp)
    change(idp)
    return { before, after: await upstream.renew(before), idp, upstream }
  }
  const demote = (idp: IdentityProvider) => void idp.users.set('ann', { ...ann, name: 'Ann B', groups: ['staff'] })
  const forget = (idp: IdentityProvider) =>
    void idp.users.set('ann', { sub: 'ann', claims: { preferred_username: null } })

  for (const claimsIn of ['both', 'id_token', 'userinfo'] as const) {
    it(`reads the user claims again (${claimsIn})`, async () => {
      const { after } = await changed({ claimsIn }, demote)
      expect(after.person).to.deep.include({ name: 'Ann B', groups: ['staff'], email: 'ann@acme.example' })
    })

    it(`with an ID token removes claims that are no longer present (${claimsIn})`, async () => {
      const { after } = await changed({ claimsIn }, forget)
      expect(after.person.groups).to.equal(undefined)
      expect(after.person.email).to.equal(undefined)
      expect(after.person.name).to.equal('Ann')
    })
  }

  it('without an ID token reads userinfo', async () => {
    const { after } = await changed({}, idp => {
      idp.idTokenOnRefresh = false
      demote(idp)
    })
    expect(after.person.groups).to.deep.equal(['staff'])
    expect(after.person.claims).to.include({ sub: 'ann' })
    expect(after.tokens.idToken).to.be.a('string')
  })

  it('without an ID token keeps claims that userinfo lacks', async () => {
    const { after } = await changed({}, idp => {
      idp.idTokenOnRefresh = false
      forget(idp)
    })
    expect(after.person).to.deep.include({ groups: ['staff', 'admins'], email: 'ann@acme.example', name: 'Ann' })
  })

  it('without a refresh token reads userinfo, and is rejected if userinfo refuses', async () => {
    const { before, after, idp, upstream } = await changed({}, demote, { scopes: ['profile', 'email'] })
    expect(before.tokens).to.not.have.property('refreshToken')
    expect(after.tokens).to.deep.equal(before.tokens)
    expect(after.person.groups).to.deep.equal(['staff'])
    for (const status of [401, 403]) {
      idp.failing.userinfo = { status, error: 'invalid_token' }
      expect((await catchError(upstream.renew(after))).fault).to.equal('refused')
    }
    delete idp.failing.userinfo
    idp.users.delete('ann')
    expect((await catchError(upstream.renew(after))).fault).to.equal('refused')
  })

  it('without a refresh token and userinfo reports what to change', async () => {
    const idp = await start({ users: [ann] })
    idp.metadata = { userinfo_endpoint: undefined }
    const { upstream } = makeUpstream(idp.options({ scopes: ['profile', 'email'] }))
    const fault = await catchError(upstream.renew(await signIn(upstream, idp)))
    expect(fault.fault).to.equal('misconfigured')
    expect(fault.fix).to.include('offline_access')
  })

  it('with a reused refresh token is rejected, and so is the newest one', async () => {
    const { before, after, upstream } = await changed({}, demote)
    expect((await catchError(upstream.renew(before))).fault).to.equal('refused')
    expect((await catchError(upstream.renew(after))).fault).to.equal('refused')
  })

  for (const endpoint of ['userinfo', 'jwks'] as const) {
    it(`keeps known claims and the new refresh token while only ${endpoint} is unavailable`, async () => {
      const idp = await start({ users: [{ ...ann, groups: ['staff'] }], claimsIn: 'userinfo' })
      const { upstream, lines } = makeUpstream(idp.options())
      const first = await signIn(upstream, idp)
      idp.rotateKeys()
      idp.troubled = [endpoint]
      idp.mood = 'down'
      const second = await upstream.renew(first)
      expect(second.person).to.deep.include({ groups: ['staff'], email: 'ann@acme.example' })
      expect(second.tokens.refreshToken).to.not.equal(first.tokens.refreshToken)
      expect(lines.map(({ level }) => level)).to.deep.equal(['warn'])
      idp.mood = 'well'
      await upstream.renew(second)
    })
  }

  it('uses the ID token if userinfo refuses, and logs what to change', async () => {
    const idp = await start({ users: [{ ...ann, groups: ['staff'] }], claimsIn: 'userinfo' })
    const { upstream, lines } = makeUpstream(idp.options())
    idp.failing.userinfo = { status: 403, error: 'insufficient_scope' }
    const { person } = await signIn(upstream, idp)
    expect(person).to.include({ subject: 'ann', groups: undefined })
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]?.fields).to.have.property('fix')
  })
})
