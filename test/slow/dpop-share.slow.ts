// Tests the per-key limit of remembered DPoP proofs: a client that floods the host gets 429, other clients are served.
import { expect } from 'chai'
import { boundTo, provenBy } from '../support/dpop.ts'
import { callWith, startProtected } from '../support/protected-host.ts'
import { stopHosts } from '../support/start-host.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../support/test-issuer.ts'

const ISSUER = 'https://issuer.test'
const AUDIENCE = 'https://mcp.test'
const AT_ONCE = 32
/** More than one key may have. */
const MOST = 60_000

describe('DPoP proof limit per key', function () {
  this.timeout(400_000)
  after(stopHosts)

  it('rejects a flooding client with 429 and serves other clients', async () => {
    const [issuerKey, eve, ann] = [makeKey('of-issuer'), makeKey('eve', 'EdDSA'), makeKey('ann')]
    const jwt = { issuer: ISSUER, keys: [toJwk(issuerKey)], audience: AUDIENCE, dpop: { maxAge: '10m' as const } }
    const { guarded } = await startProtected({ 'auth-jwt': jwt })
    const tokenOf = (sub: string, key: typeof eve) =>
      signToken({ iss: ISSUER, sub, aud: AUDIENCE, exp: inSeconds(3_600), ...boundTo(key) }, issuerKey)
    const [ofEve, ofAnn] = [tokenOf('eve', eve), tokenOf('ann', ann)]
    const counts: Record<number, number> = {}
    let [sent, isOver] = [0, false]
    const flood = async () => {
      while (!isOver && sent < MOST) {
        sent++
        const { status, headers } = await callWith(guarded, provenBy({ key: eve, token: ofEve, url: guarded }))
        counts[status] = (counts[status] ?? 0) + 1
        if (status !== 200) expect(headers.get('retry-after')).to.equal('5')
        isOver ||= status !== 200
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, flood))
    const refused = await callWith(guarded, provenBy({ key: eve, token: ofEve, url: guarded }))
    expect(refused.status).to.equal(429)
    expect(refused.message.error.message).to.match(/of this key.*send fewer requests/)
    const others = await Promise.all(
      Array.from({ length: 200 }, () => callWith(guarded, provenBy({ key: ann, token: ofAnn, url: guarded }))),
    )
    const served = others.filter(({ status }) => status === 200).length
    expect(Object.keys(counts)).to.deep.equal(['200', '429'])
    expect(counts[200]).to.equal(44_445)
    expect(served).to.equal(200)
  })
})
