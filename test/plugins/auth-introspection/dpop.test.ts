// Tests token introspection of sender-constrained opaque tokens (DPoP, RFC 9449 section 6.2) with a fake authorization
// server.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { boundTo, type ProofFacts, provenBy } from '../../support/dpop.ts'
import {
  callWith,
  challengeHeader,
  type ProtectedHost,
  readUser,
  startProtected,
} from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { makeKey } from '../../support/test-issuer.ts'

const key = makeKey('mine')
const thief = makeKey('of-a-thief')
const answers = new Map<string, object>()
let asked: string[] = []
let host: ProtectedHost

const server = createServer(async (request, response) => {
  const token = new URLSearchParams(await text(request)).get('token') ?? ''
  asked.push(token)
  const known = answers.get(token)
  response.setHeader('Content-Type', 'application/json')
  response.end(
    JSON.stringify(known ? { active: true, sub: 'ann', aud: 'https://mcp.test', ...known } : { active: false }),
  )
})
before(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect`
  const options = { endpoint, clientId: 'x', clientSecret: 'y', audience: 'https://mcp.test' }
  host = await startProtected({ 'auth-introspection': options })
})
after(async () => {
  await stopHosts()
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  answers.clear()
  asked = []
})

const proven = (token: string, more: Partial<ProofFacts> = {}) => provenBy({ key, token, url: host.guarded, ...more })
const statusOf = async (headers: Record<string, string>) => (await callWith(host.guarded, headers)).status

describe('auth-introspection: DPoP-bound tokens', () => {
  it('accepts a bound token with a proof of the key in cnf, whatever its token_type', async () => {
    for (const [index, type] of [undefined, 'DPoP', 'dpop', 'Bearer'].entries()) {
      const token = `token-${index}`
      answers.set(token, { ...boundTo(key), ...(type !== undefined && { token_type: type }) })
      expect(readUser(await callWith(host.guarded, proven(token))).subject).to.equal('ann')
      expect(await statusOf({ Authorization: `Bearer ${token}` })).to.equal(401)
      expect(await statusOf({ Authorization: `DPoP ${token}` })).to.equal(401)
      expect(await statusOf(proven(token, { key: thief }))).to.equal(401)
    }
  })

  it('introspects a token once, and requires a proof for each request', async () => {
    answers.set('one', { ...boundTo(key), token_type: 'DPoP' })
    for (let calls = 0; calls < 5; calls++) expect(await statusOf(proven('one'))).to.equal(200)
    const used = proven('one')
    expect([await statusOf(used), await statusOf(used)]).to.deep.equal([200, 401])
    expect(asked).to.deep.equal(['one'])
  })

  it('rejects a token of type DPoP without a key, and one of an unknown type', async () => {
    for (const cnf of [undefined, {}, { jkt: 5 }, 'x', { 'x5t#S256': 'x' }]) {
      answers.clear()
      const token = `odd-${JSON.stringify(cnf)?.replace(/\W/g, '') ?? 'none'}`
      answers.set(token, { token_type: 'DPoP', ...(cnf !== undefined && { cnf }) })
      for (const headers of [proven(token), { Authorization: `Bearer ${token}` }]) {
        const answer = await callWith(host.guarded, headers)
        expect(answer.status).to.equal(401)
        expect(challengeHeader(answer)).to.match(/has the type DPoP/)
      }
    }
    answers.set('mac', { token_type: 'mac', ...boundTo(key) })
    expect(await statusOf(proven('mac'))).to.equal(401)
  })
})
