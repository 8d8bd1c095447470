import { expect } from 'chai'
import { callAs, startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { makeKey, signToken, startIssuer, stopIssuers } from '../../support/test-issuer.ts'

const foreign = makeKey('foreign')

afterEach(async () => {
  await stopHosts()
  await stopIssuers()
})

describe('auth-jwt: token floods', () => {
  it('fetches keys once for a flood of unknown key ids', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
    const before = issuer.asked.length
    const flood = Array.from({ length: 60 }, (_, index) =>
      callAs(guarded, signToken(issuer.claims(guarded), foreign, { kid: `unknown-${index}` })),
    )
    expect(new Set((await Promise.all(flood)).map(({ status }) => status))).to.deep.equal(new Set([401]))
    expect(issuer.asked.slice(before)).to.deep.equal(['/jwks'])
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
  })

  it('fetches no keys for a flood of tokens with invalid claims', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
    const before = issuer.asked.length
    for (const changes of [{ exp: 1 }, { aud: 'other' }, { iss: 'other' }]) {
      const token = signToken(issuer.claims(guarded, changes), foreign, { kid: 'unknown' })
      expect((await callAs(guarded, token)).status).to.equal(401)
    }
    expect(issuer.asked.length).to.equal(before)
  })
})
