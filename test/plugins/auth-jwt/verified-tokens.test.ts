// Tests the cache of verified tokens over time with a fake clock.
import { expect } from 'chai'
import type { Route } from '../../../core/plugin.ts'
import { createVerifier } from '../../../plugins/auth-jwt/verify-token.ts'
import { createStaticKeys, type KeySource, type VerificationKey } from '../../../plugins/families/issuer-keys/index.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../../support/test-issuer.ts'

const ISSUER = 'https://issuer.example'
const key = makeKey('a')
// Long after the slowest run of all tests, which load this file at their start.
const exp = inSeconds(36_000)
const token = signToken({ iss: ISSUER, sub: 'ann', aud: 'https://a.example/mcp', exp }, key)

function createSubject() {
  const fixed = createStaticKeys([toJwk(key)], false)
  const state = { time: Date.now(), current: true, resource: 'https://a.example/mcp', looked: 0 }
  const keys: KeySource = {
    find(kid, algorithm) {
      state.looked += 1
      return fixed.find(kid, algorithm)
    },
    isCurrent: (_: VerificationKey) => state.current,
  }
  const algorithms = new Set(['ES256'])
  const claims = { scopes: 'scope', roles: 'roles', subject: 'sub', clientId: 'client_id', audience: 'aud' }
  const issuers = new Map([[ISSUER, { name: ISSUER, keys, algorithms, audience: undefined, claims }]])
  const validate = { issuer: true, audience: true, lifetime: true, signingKey: true }
  const profile = { issuers, validate, clockTolerance: 60, streamsOutliveToken: false, remote: new Map() }
  const verify = createVerifier({ profile, resourceAt: () => state.resource, now: () => state.time })
  const place = { route: {} as Route, params: {} }
  return { state, ask: async (shown = token) => verify(shown, place, () => shown) }
}

describe('auth-jwt: verified token cache', () => {
  it('verifies a token once, and returns the same user again', async () => {
    const { state, ask } = createSubject()
    const [one, two] = [await ask(), await ask()]
    expect(one).to.have.nested.property('user.subject', 'ann')
    expect(two).to.equal(one)
    expect(state.looked).to.equal(1)
  })

  it('keeps a token until expiry, then verifies again and rejects beyond the tolerance', async () => {
    const { state, ask } = createSubject()
    await ask()
    state.time = exp * 1_000 - 1
    await ask()
    expect(state.looked).to.equal(1)
    state.time = exp * 1_000 + 59_000
    expect(await ask()).to.have.property('user')
    expect(state.looked).to.equal(2)
    state.time = exp * 1_000 + 60_000
    expect(await ask()).to.deep.equal({ refused: 'the token has expired' })
  })

  it('verifies a token again if its key is no longer current', async () => {
    const { state, ask } = createSubject()
    await ask()
    state.current = false
    await ask()
    expect(state.looked).to.equal(2)
  })

  it('is separate for each resource', async () => {
    const { state, ask } = createSubject()
    await ask()
    state.resource = 'https://b.example/mcp'
    const audience = ['https://b.example/mcp']
    expect(await ask()).to.deep.equal({ refused: 'the token is for another audience', audience })
  })

  it('does not match a similar token', async () => {
    const { ask } = createSubject()
    await ask()
    const other = signToken({ iss: ISSUER, sub: 'ann', aud: 'https://a.example/mcp', exp }, makeKey('a'))
    expect(await ask(other)).to.have.property('refused')
    expect(await ask(`${token}A`)).to.have.property('refused')
  })

  it('does not cache rejections', async () => {
    const { state, ask } = createSubject()
    const forged = signToken({ iss: ISSUER, sub: 'ann', aud: 'https://a.example/mcp', exp }, makeKey('a'))
    for (let time = 0; time < 3; time += 1) expect(await ask(forged)).to.have.property('refused')
    expect(state.looked).to.equal(3)
  })
})
