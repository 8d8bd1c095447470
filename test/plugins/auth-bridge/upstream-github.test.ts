// Tests GitHub and plain OAuth providers: no ID token, errors with status 200, and separate e-mail and group endpoints.
import { expect } from 'chai'
import { type PlainOauth, type PlainUser, startPlainOauth, stopPlainOauths } from '../../support/plain-oauth.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

let github: PlainOauth
beforeEach(async () => {
  github = await startPlainOauth({ redirects: [CALLBACK] })
})
afterEach(stopPlainOauths)

const change = (of: Partial<PlainUser>) => {
  const ann = github.users.get('ann')
  if (ann) github.users.set('ann', { ...ann, ...of })
}

describe('GitHub: login', () => {
  it('returns the account, verified primary e-mail address, organizations and teams', async () => {
    const { upstream, lines } = makeUpstream(github.options())
    const { person, tokens } = await signIn(upstream, github)
    expect(person).to.deep.include({ subject: '4711', name: 'Ann Example', email: 'ann@acme.example' })
    expect(person.groups).to.deep.equal(['acme', 'acme/engineering'])
    expect(person.claims).to.include({ login: 'ann' })
    expect(tokens.scopes).to.deep.equal(['read:user', 'user:email', 'read:org'])
    expect(tokens).to.not.have.any.keys('expiresAt', 'refreshToken', 'idToken')
    expect(lines).to.deep.equal([])
    const [asked] = github.requests
    expect(asked?.query).to.include({ code_challenge_method: 'S256', state: 'the state of this login' })
    expect(asked?.query).to.not.have.any.keys('nonce', 'prompt', 'login_hint')
  })

  it('ignores the public profile e-mail address and unverified addresses', async () => {
    change({ emails: [{ email: 'ceo@acme.example', primary: true, verified: false }], email: 'ceo@acme.example' })
    const { upstream } = makeUpstream(github.options())
    const { person } = await signIn(upstream, github)
    expect(person.email).to.equal(undefined)
    expect(JSON.stringify(person)).to.not.include('ceo@')
  })

  it('omits e-mail and groups if the token lacks the scope, and logs what to change', async () => {
    github.grants = ['read:user']
    const { upstream, lines } = makeUpstream(github.options())
    const { person } = await signIn(upstream, github)
    expect(person).to.not.have.property('email')
    expect(person.groups).to.equal(undefined)
    expect(lines.map(({ fields }) => JSON.stringify(fields)).join())
      .to.include('user:email')
      .and.include('read:org')
  })

  it('reads at most ten pages', async () => {
    github.pageSize = 3
    change({ teams: Array.from({ length: 20 }, (_, index) => `acme/team-${index}`) })
    const { upstream, lines } = makeUpstream(github.options())
    expect((await signIn(upstream, github)).person.groups).to.have.lengthOf(21)
    expect(github.asked('/user/teams')).to.equal(7)
    expect(lines).to.deep.equal([])
    change({ teams: Array.from({ length: 40 }, (_, index) => `acme/team-${index}`) })
    expect((await signIn(upstream, github)).person.groups).to.have.lengthOf(31)
    expect(github.asked('/user/teams')).to.equal(17)
    expect(lines).to.have.lengthOf(1)
  })

  it('checks the account again at refresh', async () => {
    const { upstream } = makeUpstream(github.options())
    const first = await signIn(upstream, github)
    change({ teams: [], name: 'Ann B' })
    const second = await upstream.renew(first)
    expect(second.person).to.deep.include({ groups: ['acme'], name: 'Ann B' })
    github.users.delete('ann')
    expect((await catchError(upstream.renew(second))).fault).to.equal('refused')
  })

  it('uses the refresh token if tokens expire', async () => {
    github.expiring = true
    const { upstream } = makeUpstream(github.options())
    const first = await signIn(upstream, github)
    const second = await upstream.renew(first)
    expect(second.tokens.refreshToken).to.not.equal(first.tokens.refreshToken)
    expect(await catchError(upstream.renew(first))).to.include({ fault: 'refused', code: 'bad_refresh_token' })
  })

  it('rejects another account at refresh', async () => {
    const { upstream } = makeUpstream(github.options())
    const first = await signIn(upstream, github)
    change({ id: 4712 })
    expect((await catchError(upstream.renew(first))).fault).to.equal('refused')
  })

  it('is temporarily unavailable during an outage or rate limit at GitHub', async () => {
    const { upstream } = makeUpstream(github.options())
    const first = await signIn(upstream, github)
    for (const mood of ['down', 'limited'] as const) {
      github.mood = mood
      expect((await catchError(upstream.renew(first))).fault, mood).to.equal('unavailable')
      expect((await catchError(upstream.revoke(first.tokens))).fault, mood).to.equal('unavailable')
    }
  })

  it('revokes the grant at logout, and again without error', async () => {
    const { upstream } = makeUpstream(github.options())
    const first = await signIn(upstream, github)
    await upstream.revoke(first.tokens)
    expect(github.tokens.size).to.equal(0)
    await upstream.revoke(first.tokens)
    expect((await catchError(upstream.renew(first))).fault).to.equal('refused')
  })

  it('issues no token with other scopes', async () => {
    const { upstream } = makeUpstream(github.options())
    const { tokens } = await signIn(upstream, github)
    expect((await catchError(upstream.exchange(tokens, 'repo'))).fault).to.equal('misconfigured')
  })
})

describe('GitHub: errors', () => {
  it('with status 200: wrong client secret', async () => {
    const { upstream } = makeUpstream(github.options({ clientSecret: 'wrong' }))
    const fault = await catchError(signIn(upstream, github))
    expect(fault).to.include({ fault: 'misconfigured', code: 'incorrect_client_credentials' })
    expect(fault.fix).to.include('clientSecret')
  })

  it('with status 200: used code', async () => {
    const { upstream } = makeUpstream(github.options())
    const fault = await catchError(
      signIn(upstream, github, { change: callback => callback.searchParams.set('code', 'another') }),
    )
    expect(fault).to.include({ fault: 'refused', code: 'bad_verification_code' })
  })

  it('in the callback: unregistered redirect URI', async () => {
    const { upstream } = makeUpstream(github.options())
    const fault = await catchError(signIn(upstream, github, { redirectUri: 'http://127.0.0.1:8080/other' }))
    expect(fault).to.include({ fault: 'misconfigured', code: 'redirect_uri_mismatch' })
  })

  it('in the callback: access denied by the user', async () => {
    github.denies = true
    const { upstream } = makeUpstream(github.options())
    expect(await catchError(signIn(upstream, github))).to.include({ fault: 'refused', code: 'access_denied' })
  })

  it('in the callback: wrong state', async () => {
    const { upstream } = makeUpstream(github.options())
    const before = github.asked('/login/oauth/access_token')
    const fault = await catchError(
      signIn(upstream, github, { change: callback => callback.searchParams.set('state', 'another') }),
    )
    expect(fault.fault).to.equal('untrusted')
    expect(github.asked('/login/oauth/access_token')).to.equal(before)
  })
})

describe('Plain OAuth provider', () => {
  const plain = (changes: Record<string, unknown> = {}) => github.options({ type: 'oauth', ...changes })

  it('uses the userinfo claims, and ignores an unverified e-mail address', async () => {
    const { upstream } = makeUpstream(plain({ scopes: ['read:user'], authMethod: 'client_secret_post' }))
    const { person } = await signIn(upstream, github)
    expect(person).to.deep.include({ subject: '4711', name: 'Ann Example', groups: undefined })
    expect(person).to.not.have.property('email')
    const trusting = makeUpstream(plain({ trustEmail: true }))
    expect((await signIn(trusting.upstream, github)).person.email).to.equal('public@elsewhere.example')
  })

  it('requires a claim for the subject', async () => {
    const { upstream } = makeUpstream(plain({ claims: { subject: 'sub' } }))
    expect((await catchError(signIn(upstream, github))).fix).to.include('provider.claims.subject')
    const other = makeUpstream(plain({ claims: { subject: 'login' } }))
    expect((await signIn(other.upstream, github)).person.subject).to.equal('ann')
  })

  it('revokes tokens only if a revocation endpoint is configured', async () => {
    const { upstream } = makeUpstream(plain())
    const { tokens } = await signIn(upstream, github)
    const before = github.requests.length
    await upstream.revoke(tokens)
    expect(github.requests.length).to.equal(before)
  })
})
