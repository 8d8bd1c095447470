// Tests tokens with EdDSA (Ed25519) signatures, by both names of the algorithm.
import { expect } from 'chai'
import { callAs, startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../../support/test-issuer.ts'

after(stopHosts)

describe('Ed25519 tokens', () => {
  it('are accepted only with the signature of the key', async () => {
    const [key, other] = [makeKey('ed', 'EdDSA'), makeKey('ed', 'EdDSA')]
    const [iss, aud] = ['https://login.test', 'https://mcp.test']
    const { guarded } = await startProtected({ 'auth-jwt': { issuer: iss, keys: [toJwk(key)], audience: aud } })
    const claims = { iss, aud, sub: 'ann', iat: inSeconds(0), exp: inSeconds(60) }
    for (const alg of ['EdDSA', 'Ed25519']) {
      expect((await callAs(guarded, signToken(claims, key, { alg }))).status, alg).to.equal(200)
      expect((await callAs(guarded, signToken(claims, other, { alg }))).status, alg).to.equal(401)
    }
  })
})
