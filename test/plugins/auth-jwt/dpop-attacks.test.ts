// Tests attacks on DPoP proofs (RFC 9449) over real HTTP; valid proofs are accepted before each test.

import { randomBytes, sign } from 'node:crypto'
import { expect } from 'chai'
import { definePlugin } from '../../../core/internal.ts'
import { createUsedProofs } from '../../../plugins/families/dpop/replay.ts'
import { createMemoryGrantStore } from '../../../plugins/families/grant-store/index.ts'
import { boundTo, createProof, type ProofFacts, provenBy, publicJwk, sha256 } from '../../support/dpop.ts'
import { callWith, challengeHeader, type ProtectedHost, readUser } from '../../support/protected-host.ts'
import { requestBytes, sendRaw } from '../../support/raw-http.ts'
import { modernRequest } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { encode, inSeconds, makeKey, signText } from '../../support/test-issuer.ts'
import { selectCases } from '../../support/thorough.ts'
import { key, startBound, thief, tokenFor } from './bound-tokens.ts'

const rsa = makeKey('rsa', 'RS256')

let host: ProtectedHost
let startedAt: number
before(async () => {
  startedAt = inSeconds(0)
  host = await startBound()
})
after(stopHosts)

type Changes = Partial<Omit<ProofFacts, 'url'>>
/** A proof for `/guarded` with something wrong, and the words by which it is refused. */
type Row = readonly [attack: string, proof: (facts: ProofFacts) => string, words: RegExp, error?: string]

const having = (changes: Changes) => (facts: ProofFacts) => createProof({ ...facts, ...changes })
const claims = (changes: Record<string, unknown>) => having({ claims: changes })
/** `iat` is determined when the proof is made. */
const issued = (iat: () => unknown) => (facts: ProofFacts) => claims({ iat: iat() })(facts)
const header = (changes: Record<string, unknown>) => having({ header: changes })
const jwk = (changes: Record<string, unknown>) => header({ jwk: { ...publicJwk(key), ...changes } })
const text = (change: (parts: [string, string, string]) => string) => (facts: ProofFacts) => {
  const [head = '', body = '', signature = ''] = createProof(facts).split('.')
  return change([head, body, signature])
}
const elsewhere = (change: (url: string) => string) => (facts: ProofFacts) =>
  createProof({ ...facts, url: change(facts.url) })

/** The signer's own key with another spelling of one member: every spelling has its own thumbprint. */
const respelt = (signer: typeof key, member: string, change: (value: string) => string) =>
  having({
    key: signer,
    header: { jwk: { ...publicJwk(signer), [member]: change(String(publicJwk(signer)[member])) } },
  })
const zerosFirst = (value: string) =>
  Buffer.concat([Buffer.alloc(1), Buffer.from(value, 'base64url')]).toString('base64url')
/** Changes the last bits, which decode to no byte. */
const unusedBits = (value: string) => {
  const same = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map(last => value.slice(0, -1) + last)
    .find(other => other !== value && Buffer.from(other, 'base64url').equals(Buffer.from(value, 'base64url')))
  return same ?? value
}

/** RSA with another modulus or exponent than the host takes. */
const weak = makeKey('weak', 'RS256', { bits: 1024 })

function symmetric(facts: ProofFacts): string {
  const secret = randomBytes(32).toString('base64url')
  const unsigned = createProof({ ...facts, header: { alg: 'HS256', jwk: { kty: 'oct', k: secret } } })
    .split('.')
    .slice(0, 2)
  return `${unsigned.join('.')}.${signText(unsigned.join('.'), 'HS256', secret)}`
}

const HEADERS: readonly Row[] = [
  ['no proof', () => '', /DPoP header/],
  ['two proofs in one header', facts => `${createProof(facts)}, ${createProof(facts)}`, /more than one/],
  ['no JWT', () => 'x', /JWT/],
  ['two parts', text(([h, c]) => `${h}.${c}`), /JWT/],
  ['five parts', text(([h, c, s]) => `${h}.${c}.${s}.${s}.${s}`), /JWT/],
  ['an empty signature', text(([h, c]) => `${h}.${c}.`), /JWT/],
  ['padding', text(([h, c, s]) => `${h}.${c}.${s}==`), /JWT/],
  ['a header that is a list', text(([, c, s]) => `${encode([])}.${c}.${s}`), /JWT/],
  ['claims that are no JSON', text(([h, , s]) => `${h}.${encode('{')}.${s}`), /JWT/],
  ['5,000 characters', claims({ more: 'x'.repeat(5_000) }), /longer than/],
  ['typ JWT', header({ typ: 'JWT' }), /typ/],
  ['typ at+jwt', header({ typ: 'at+jwt' }), /typ/],
  ['no typ', header({ typ: undefined }), /typ/],
  ['the access token itself', ({ token }) => token, /typ/],
  ['crit', header({ crit: ['b64'], b64: false }), /crit/],
  ['alg none', header({ alg: 'none' }), /algorithm/],
  ['alg none, unsigned', text(([, c]) => `${encode({ typ: 'dpop+jwt', alg: 'none' })}.${c}.AA`), /algorithm/],
  ['no alg', header({ alg: undefined }), /algorithm/],
  ['alg that is a list', header({ alg: ['ES256'] }), /algorithm/],
  ['alg HS256 with its secret', symmetric, /algorithm/],
  ['alg RS384, which is not in the list', header({ alg: 'RS384', jwk: publicJwk(rsa) }), /algorithm/],
]

const KEYS: readonly Row[] = [
  ['no jwk', header({ jwk: undefined }), /no key/],
  ['jwk that is text', header({ jwk: JSON.stringify(publicJwk(key)) }), /no key/],
  ['jwk null', header({ jwk: null }), /no key/],
  ['the private key', header({ jwk: key.privateKey.export({ format: 'jwk' }) }), /public key/],
  ['jku in the key', jwk({ jku: 'https://thief.example/keys' }), /public key/],
  ['x5c in the key', jwk({ x5c: ['AA'] }), /public key/],
  ['k in the key', jwk({ k: 'AA' }), /public key/],
  ['a key without y', jwk({ y: undefined }), /incomplete/],
  ['a number for x', jwk({ x: 5 }), /incomplete/],
  ['x with padding', jwk({ x: `${publicJwk(key)['x']}=` }), /not encoded/],
  ['kty RSA over an EC key', jwk({ kty: 'RSA' }), /ES256/],
  ['crv P-384 over P-256', jwk({ crv: 'P-384' }), /ES256/],
  ['crv secp256k1', jwk({ crv: 'secp256k1' }), /ES256/],
  ['alg ES384 over P-256', header({ alg: 'ES384' }), /ES384/],
  ['alg RS256 over an EC key', header({ alg: 'RS256' }), /RS256/],
  ['alg EdDSA over an EC key', header({ alg: 'EdDSA' }), /EdDSA/],
  ['a key for another algorithm', jwk({ alg: 'ES384' }), /ES256/],
  ['a key for encryption', jwk({ use: 'enc' }), /signatures/],
  ['a key that signs', jwk({ key_ops: ['sign'] }), /verify/],
  [
    'RSA with a long exponent',
    header({ alg: 'RS256', jwk: { ...publicJwk(rsa), e: randomBytes(256).toString('base64url') } }),
    /exponent/,
  ],
  ['the key of somebody else', having({ key: thief }), /another key/, 'invalid_token'],
  ['RSA of somebody else', having({ key: rsa }), /another key/, 'invalid_token'],
  ['x of another key', jwk({ x: publicJwk(thief)['x'] }), /another key/, 'invalid_token'],
  ['RSA of 1,024 bits', having({ key: weak }), /another key/, 'invalid_token'],
]

/** Keys that are none, and that the token is bound to all the same, as an issuer that checks nothing has it. */
const BOUND_KEYS: readonly Row[] = [
  ['x of another key', jwk({ x: publicJwk(thief)['x'] }), /jwk/],
  ['x with zeros before it', jwk({ x: encode(`\0\0${'x'.repeat(30)}`) }), /jwk/],
  ['RSA of 1,024 bits', having({ key: weak }), /jwk/],
  ['RSA with zeros before the exponent', respelt(rsa, 'e', zerosFirst), /base64url/],
  ['RSA with zeros before the modulus', respelt(rsa, 'n', zerosFirst), /base64url/],
  ['RSA with unused bits in the modulus', respelt(rsa, 'n', unusedBits), /base64url/],
  ['x with zeros before it, signed', respelt(key, 'x', zerosFirst), /base64url/],
  ['x with unused bits', respelt(key, 'x', unusedBits), /base64url/],
]

const CLAIMS: readonly Row[] = [
  ['signed by somebody else', having({ signer: thief }), /signature/],
  ['claims changed after it', text(([h, , s]) => `${h}.${encode({ changed: true })}.${s}`), /jti/],
  ['a signature of zeros', text(([h, c]) => `${h}.${c}.${Buffer.alloc(64).toString('base64url')}`), /signature/],
  ['a signature in DER', derSigned, /signature/],
  ['no jti', claims({ jti: undefined }), /jti/],
  ['an empty jti', claims({ jti: '' }), /jti/],
  ['a jti of 129 characters', claims({ jti: 'x'.repeat(129) }), /jti/],
  ['a jti that is a number', claims({ jti: 5 }), /jti/],
  ['no htm', claims({ htm: undefined }), /htm/],
  ['htm GET', having({ method: 'GET' }), /htm/],
  ['htm DELETE', having({ method: 'DELETE' }), /htm/],
  ['htm post', having({ method: 'post' }), /htm/],
  ['no htu', claims({ htu: undefined }), /htu/],
  ['htu that is a list', claims({ htu: ['x'] }), /htu/],
  ['htu of another route', elsewhere(url => url.replace('/guarded', '/open')), /htu/],
  ['htu of a path below', elsewhere(url => `${url}/x`), /htu/],
  ['htu of the root', elsewhere(url => url.replace('/guarded', '/')), /htu/],
  ['htu in capitals', elsewhere(url => url.replace('/guarded', '/Guarded')), /htu/],
  ['htu of https', elsewhere(url => url.replace('http:', 'https:')), /htu/],
  ['htu of another port', elsewhere(url => url.replace(/:\d+/, ':1')), /htu/],
  ['htu of another host', elsewhere(url => url.replace('127.0.0.1', 'thief.example')), /htu/],
  ['htu with user and password', elsewhere(url => url.replace('//', '//a:b@')), /htu/],
  ['htu with an encoded slash', elsewhere(url => url.replace('/guarded', '%2Fguarded')), /htu/],
  ['htu with two slashes', elsewhere(url => url.replace('/guarded', '//guarded')), /htu/],
  ['htu with a backslash', elsewhere(url => url.replace('/guarded', '\\guarded')), /htu/],
  ['htu with a tab in it', elsewhere(url => url.replace('/guarded', '/gua\trded')), /htu/],
  ['htu that is a path', claims({ htu: '/guarded' }), /htu/],
  ['no iat', claims({ iat: undefined }), /iat/],
  ['an iat that is text', issued(() => String(inSeconds(0))), /iat/],
  ['an iat of 70 s ago', issued(() => inSeconds(-70)), /ago/],
  ['an iat in 70 s', issued(() => inSeconds(70)), /ahead/],
  ['an iat of 30 s before the start of the host', issued(() => startedAt - 30), /iat|ago/],
  ['an iat in milliseconds', issued(() => Date.now()), /ahead/],
  ['no ath', claims({ ath: undefined }), /ath/],
  ['an empty ath', claims({ ath: '' }), /ath/],
  ['ath of another token', facts => createProof({ ...facts, token: 'another' }), /ath/],
]

/** As OpenSSL writes it, which is not as JOSE does. */
function derSigned(facts: ProofFacts): string {
  const [head = '', body = ''] = createProof(facts).split('.')
  const der = sign('sha256', Buffer.from(`${head}.${body}`), facts.key.privateKey)
  return `${head}.${body}.${der.toString('base64url')}`
}

/** The token for a proof that is bound to the key as the proof spells it. */
function tokenOfProof(proof: string): string {
  const [head = ''] = proof.split('.')
  const { jwk: shown } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { jwk: Record<string, unknown> }
  const parts = shown['kty'] === 'RSA' ? ['e', 'kty', 'n'] : ['crv', 'kty', 'x', 'y']
  const jkt = sha256(JSON.stringify(Object.fromEntries(parts.map(name => [name, shown[name]]))))
  return tokenFor(host.guarded, { cnf: { jkt } })
}

async function attack(rows: readonly Row[], tokenOf: (proof: string) => string = () => tokenFor(host.guarded)) {
  for (const [name, make, words, error = 'invalid_dpop_proof'] of rows) {
    const token = tokenOf(make({ key, token: '', url: host.guarded }))
    const proof = make({ key, token, url: host.guarded })
    const headers = { Authorization: `DPoP ${token}`, ...(proof !== '' && { DPoP: proof }) }
    const answer = await callWith(host.guarded, headers)
    expect(answer.status, name).to.equal(401)
    expect(challengeHeader(answer), name)
      .to.match(/^DPoP /)
      .and.contain(`error="${error}"`)
      .and.contain('algs="ES256 ')
    expect(challengeHeader(answer), name).to.match(words)
  }
}

async function expectTaken(facts: ProofFacts) {
  const answer = await callWith(facts.url, provenBy(facts))
  expect(answer.status, challengeHeader(answer) ?? '').to.equal(200)
  expect(readUser(answer).subject).to.equal('ann')
}

describe('DPoP attacks: invalid proofs', () => {
  beforeEach(() => expectTaken({ key, token: tokenFor(host.guarded), url: host.guarded }))

  it('are rejected for an invalid format or header', () => attack(HEADERS))
  it('are rejected for an invalid key', () => attack(KEYS))
  it('are rejected for an invalid key that matches the token', () => attack(BOUND_KEYS, tokenOfProof))
  it('are rejected for invalid claims', () => attack(CLAIMS))

  it('are rejected if a request has two DPoP headers', async () => {
    const token = tokenFor(host.guarded)
    const proof = () => createProof({ key, token, url: host.guarded })
    const { headers, body } = modernRequest('tools/call', { name: 'whoami' })
    const shown = { ...headers, Authorization: `DPoP ${token}`, DPoP: [proof(), proof()] }
    const request = requestBytes(host.guarded, body, { path: '/guarded', headers: shown })
    const { status, text: answered } = await sendRaw(host.url, request)
    expect(status).to.equal(401)
    expect(answered).to.contain('DPoP header')
  })
})

describe('DPoP attacks: misused and replayed proofs', () => {
  it('rejects a proof for another path, method, token or key', async () => {
    const keys = [key, thief]
    const urls = [host.guarded, host.open, host.writers]
    const methods = ['POST', 'GET', 'DELETE']
    const tokens = keys.flatMap(one =>
      urls.map(url => ({ one, url, token: tokenFor(url, boundTo(one), { scope: 'write' }) })),
    )
    for (const { one, url, token } of tokens) {
      const right = { key: one, token, url, method: 'POST' }
      const send = async (proof: typeof right) =>
        (await callWith(url, { Authorization: `DPoP ${token}`, DPoP: createProof(proof) })).status
      expect(await send(right)).to.equal(200)
      const others = keys.flatMap(signer =>
        urls.flatMap(forUrl =>
          methods.flatMap(method =>
            [token, 'another token'].map(forToken => ({ key: signer, token: forToken, url: forUrl, method })),
          ),
        ),
      )
      const differences = (proof: typeof right) =>
        Object.entries(right).filter(([name, value]) => proof[name as keyof typeof right] !== value).length
      const single = others.filter(proof => differences(proof) === 1)
      const several = others.filter(proof => differences(proof) > 1)
      for (const proof of [...single, ...selectCases(several, 2)])
        expect(await send(proof), `${proof.method} ${proof.url} at POST ${url}`).to.equal(401)
    }
  })

  it('accepts one of 20 concurrent requests with the same proof (replay)', async () => {
    const token = tokenFor(host.guarded)
    const headers = provenBy({ key, token, url: host.guarded })
    const answers = await Promise.all(Array.from({ length: 20 }, () => callWith(host.guarded, headers)))
    const statuses = answers.map(({ status }) => status)
    const refused = answers.filter(({ status }) => status === 401)
    expect(statuses.filter(one => one === 200)).to.have.length(1)
    for (const answer of refused) expect(challengeHeader(answer)).to.contain('error="invalid_dpop_proof"')
  })

  it('rejects a client over the limit of used proofs with 429 and Retry-After', async () => {
    const usedOnce = createUsedProofs(8)
    const store = createMemoryGrantStore()
    const add = async (id: string, _value: string, ttl: number) => usedOnce({ id, ttl, thumbprint: 'eve', user: 'eve' })
    const limited = definePlugin<Record<never, never>>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup: host => host.provide('grantStore', { ...store, add, shared: true }),
    })
    const { guarded } = await startBound({ 'grant-store-test': limited() })
    const call = () => callWith(guarded, provenBy({ key, token: tokenFor(guarded), url: guarded }))
    expect((await call()).status).to.equal(200)
    const { status, headers, message } = await call()
    expect([status, headers.get('retry-after')]).to.deep.equal([429, '5'])
    expect(message.error.message).to.match(/of this key.*send fewer requests/)
  })

  it('accepts the same jti under different keys', async () => {
    const jti = 'one id for all'
    for (const one of [key, thief]) {
      await expectTaken({ key: one, token: tokenFor(host.guarded, boundTo(one)), url: host.guarded, claims: { jti } })
    }
    const token = tokenFor(host.guarded)
    const again = await callWith(host.guarded, provenBy({ key, token, url: host.guarded, claims: { jti } }))
    expect(again.status).to.equal(401)
  })

  it('does not mark a proof as used if the request is rejected for another reason', async () => {
    const token = tokenFor(host.guarded)
    const proof = createProof({ key, token, url: host.guarded })
    const [head, body] = proof.split('.')
    const forged = `${head}.${body}.${Buffer.alloc(64, 7).toString('base64url')}`
    expect((await callWith(host.guarded, { Authorization: `DPoP ${token}`, DPoP: forged })).status).to.equal(401)
    expect((await callWith(host.guarded, { Authorization: `DPoP ${token}`, DPoP: proof })).status).to.equal(200)
  })
})
