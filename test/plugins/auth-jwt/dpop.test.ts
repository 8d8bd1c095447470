// Tests requirements for DPoP-bound tokens (RFC 9449) and the accepted variants of valid proofs.
import { expect } from 'chai'
import { boundTo, createProof, type ProofFacts, provenBy, publicJwk, thumbprint } from '../../support/dpop.ts'
import {
  callWith,
  challengeHeader,
  type ProtectedHost,
  readUser,
  startProtected,
} from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { inSeconds, makeKey, type TestKey, toJwk } from '../../support/test-issuer.ts'
import { ISSUER, issuerKey, key, startBound, thief, tokenFor } from './bound-tokens.ts'

let host: ProtectedHost
before(async () => {
  host = await startBound()
})
after(stopHosts)

async function expectTaken(facts: ProofFacts) {
  const answer = await callWith(facts.url, provenBy(facts))
  expect(answer.status, challengeHeader(answer) ?? '').to.equal(200)
  expect(readUser(answer).subject).to.equal('ann')
}

describe('DPoP: valid proofs', () => {
  const algorithms: readonly TestKey[] = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'RS256'].map(alg =>
    makeKey(`of-${alg}`, alg),
  )
  for (const one of algorithms) {
    it(`are accepted with ${one.alg}`, async () => {
      await expectTaken({ key: one, token: tokenFor(host.guarded, boundTo(one)), url: host.guarded })
    })
  }

  it('are accepted with the algorithm name Ed25519', async () => {
    const one = makeKey('ed', 'EdDSA')
    const token = tokenFor(host.guarded, boundTo(one))
    await expectTaken({ key: one, token, url: host.guarded, header: { alg: 'Ed25519' } })
  })

  it('can use equivalent URL spellings (RFC 3986) and extra key members', async () => {
    const spelled = [
      `${host.guarded}?a=b`,
      `${host.guarded}#x`,
      `${host.guarded}/`,
      host.guarded.replace('http:', 'HTTP:'),
      host.guarded.replace('/guarded', '/x/../guarded'),
      host.guarded.replace('/guarded', '/%67uarded'),
    ]
    for (const htu of spelled) {
      const token = tokenFor(host.guarded)
      const facts = { key, token, url: host.guarded, claims: { htu } }
      const answer = await callWith(host.guarded, provenBy(facts))
      expect(answer.status, htu).to.equal(200)
    }
    const described = { ...publicJwk(key), alg: 'ES256', use: 'sig', key_ops: ['verify'], kid: 'mine', ext: true }
    await expectTaken({ key, token: tokenFor(host.guarded), url: host.guarded, header: { jwk: described } })
  })

  it('can have an iat slightly in the future', async () => {
    for (const seconds of [0, 2, 4]) {
      const facts = { key, token: tokenFor(host.guarded), url: host.guarded, claims: { iat: inSeconds(seconds) } }
      await expectTaken(facts)
    }
  })
})

describe('auth-jwt: DPoP-bound tokens', () => {
  it('are rejected as bearer tokens, with a DPoP challenge', async () => {
    const token = tokenFor(host.guarded)
    const proof = createProof({ key, token, url: host.guarded })
    for (const more of [{}, { DPoP: proof }] as Record<string, string>[]) {
      for (const url of [host.guarded, host.open]) {
        const shown = url === host.guarded ? token : tokenFor(url)
        const answer = await callWith(url, { Authorization: `Bearer ${shown}`, ...more })
        expect(answer.status).to.equal(401)
        expect(challengeHeader(answer)).to.match(/^DPoP error="invalid_token", .*DPoP.*algs="/)
      }
    }
  })

  it('are rejected with a malformed cnf claim', async () => {
    const odd = [{ cnf: 'x' }, { cnf: [] }, { cnf: { jkt: 5 } }, { cnf: { jkt: '' } }, { cnf: { jkt: 'short' } }]
    for (const bound of [...odd, { cnf: { jkt: [thumbprint(key)] } }, { cnf: { jkt: `${thumbprint(key)}=` } }]) {
      const token = tokenFor(host.guarded, bound)
      for (const headers of [{ Authorization: `Bearer ${token}` }, provenBy({ key, token, url: host.guarded })]) {
        expect((await callWith(host.guarded, headers)).status, JSON.stringify(bound)).to.equal(401)
      }
    }
  })

  it('are required by the DPoP scheme: a bearer token with a proof is rejected', async () => {
    const token = tokenFor(host.guarded, {})
    const answer = await callWith(host.guarded, provenBy({ key, token, url: host.guarded }))
    expect(answer.status).to.equal(401)
    expect(challengeHeader(answer)).to.match(/not bound to a key/)
    expect((await callWith(host.guarded, { Authorization: `Bearer ${token}` })).status).to.equal(200)
  })

  it('require a proof for each request, even if the token is cached', async () => {
    const token = tokenFor(host.guarded)
    await expectTaken({ key, token, url: host.guarded })
    expect((await callWith(host.guarded, { Authorization: `DPoP ${token}` })).status).to.equal(401)
    const thiefs = await callWith(host.guarded, provenBy({ key: thief, token, url: host.guarded }))
    expect(thiefs.status).to.equal(401)
    expect(challengeHeader(thiefs)).to.contain('invalid_token')
    await expectTaken({ key, token, url: host.guarded })
  })
})

const READER = 'a reader of figures, long enough'.replaceAll(/\W/g, '-')

describe('DPoP: metrics', () => {
  it('count proof results, and the log contains no proof or token', async () => {
    const jwt = { issuer: ISSUER, keys: [toJwk(issuerKey)], dpop: { nonce: true } }
    const counted = await startProtected({ 'auth-jwt': jwt, metrics: { path: '/metrics', token: READER } })
    const url = counted.guarded
    const token = tokenFor(url)
    const asked = await callWith(url, provenBy({ key, token, url }))
    const nonce = asked.headers.get('dpop-nonce')
    const good = provenBy({ key, token, url, claims: { nonce } })
    const bad = provenBy({ key, token, url, claims: { nonce, ath: 'x' } })
    for (const headers of [good, good, bad]) await callWith(url, headers)
    const text = await (
      await fetch(`${counted.url}/metrics`, { headers: { Authorization: `Bearer ${READER}` } })
    ).text()
    const rows = text.split('\n').filter(line => line.startsWith('mcp_host_dpop_proofs_total{'))
    const counts = Object.fromEntries(
      rows.map(row => [/outcome="(\w+)"/.exec(row)?.[1], Number(row.split(' ').at(-1))]),
    )
    expect(counts).to.deep.equal({ nonce: 1, accepted: 1, replayed: 1, refused: 1 })
    const logged = JSON.stringify(counted.log)
    for (const secret of [token, good['DPoP'], bad['DPoP']]) expect(logged).to.not.contain(secret)
  })
})
