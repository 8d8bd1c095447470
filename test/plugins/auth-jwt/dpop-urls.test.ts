// Tests which proof URLs a single host accepts without a public URL, and proof replay after a restart.
import { expect } from 'chai'
import { createProof, provenBy } from '../../support/dpop.ts'
import { eventually } from '../../support/eventually.ts'
import { callWith, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { requestBytes, sendRaw } from '../../support/raw-http.ts'
import { modernRequest } from '../../support/rpc.ts'
import { stopHosts, type TestConfig } from '../../support/start-host.ts'
import { inSeconds, toJwk } from '../../support/test-issuer.ts'
import { ISSUER, issuerKey, key, tokenFor } from './bound-tokens.ts'

afterEach(stopHosts)

const AUDIENCE = 'https://mcp.test'
const start = (http: TestConfig['http'] = {}, maxAge: '60s' | '10m' = '60s', clockTolerance: '60s' | '2s' = '60s') =>
  startProtected(
    { 'auth-jwt': { issuer: ISSUER, keys: [toJwk(issuerKey)], audience: AUDIENCE, dpop: { maxAge, clockTolerance } } },
    { http },
  )

/** A call with this Host, sent to `url`, and a proof for the same address. */
async function relay(url: string, asked: string) {
  const { headers, body } = modernRequest('tools/call', { name: 'whoami' })
  const token = tokenFor(AUDIENCE)
  const proven = provenBy({ key, token, url: `http://${asked}/guarded` })
  const sent = { ...headers, ...proven, Host: asked, Connection: 'close' }
  return sendRaw(url, requestBytes(url, body, { path: '/guarded', headers: sent }))
}

describe('DPoP proofs relayed by another local server', () => {
  it('are rejected for every other loopback URL, with advice', async () => {
    const { url, guarded } = await start()
    const { port } = new URL(url)
    const elsewhere = [
      ...['localhost:9', '127.0.0.1:9', '[::1]:9', 'localhost', '127.0.0.1', '[::1]', '127.9.9.9', 'LOCALHOST:65535'],
      ...[`127.9.9.9:${port}`, `[::1]:${port}`, '127.0.0.1:80', 'localhost:0'],
    ]
    for (const asked of elsewhere) {
      const { status, text } = await relay(url, asked)
      expect(status, asked).to.equal(401)
      expect(text, asked).to.match(/the port of the server.*http\.publicUrl.*http\.allowedHosts/)
    }
    const own = [`localhost:${port}`, `127.0.0.1:${port}`, `LocalHost:${port}`]
    for (const asked of own) expect((await relay(url, asked)).status, asked).to.equal(200)
    const answer = await callWith(guarded, provenBy({ key, token: tokenFor(AUDIENCE), url: guarded }))
    expect(readUser(answer).subject).to.equal('ann')
  })

  it('are accepted for hosts and ports in http.allowedHosts', async () => {
    const { url } = await start({ allowedHosts: ['localhost:3000', 'mcp.test'] })
    const { port } = new URL(url)
    const tried: Record<string, number> = {}
    for (const asked of ['localhost:3000', 'mcp.test', `mcp.test:${port}`, 'localhost:3001', 'mcp.test:3000']) {
      tried[asked.replace(port, 'own')] = (await relay(url, asked)).status
    }
    const refused = { 'localhost:3001': 401, 'mcp.test:3000': 401 }
    expect(tried).to.deep.equal({ 'localhost:3000': 200, 'mcp.test': 200, 'mcp.test:own': 200, ...refused })
  })
})

describe('DPoP proofs on a single host', () => {
  it('are rejected after a restart if used before it (replay)', async () => {
    const http = { publicUrl: AUDIENCE }
    const first = await start(http)
    const used = Array.from({ length: 20 }, () => {
      const proven = provenBy({ key, token: tokenFor(AUDIENCE), url: `${AUDIENCE}/guarded` })
      return { ...proven, Connection: 'close' }
    })
    for (const headers of used) expect((await callWith(first.guarded, headers)).status).to.equal(200)
    const made = inSeconds(0)
    await stopHosts()
    // Proofs say whole seconds.
    await eventually('the next second', () => inSeconds(0) > made)
    const { guarded } = await start(http, '10m')
    const statuses = await Promise.all(used.map(headers => callWith(guarded, headers)))
    for (const answer of statuses) {
      expect(answer.status).to.equal(401)
      expect(challengeHeader(answer)).to.match(/before this server started/)
    }
    const fresh = provenBy({ key, token: tokenFor(AUDIENCE), url: `${AUDIENCE}/guarded` })
    expect((await callWith(guarded, fresh)).status).to.equal(200)
  })

  it('are accepted from a clock up to `clockTolerance` ahead, by default 60 s', async () => {
    const at = (guarded: string, seconds: number) => {
      const token = tokenFor(AUDIENCE)
      const proof = createProof({ key, token, url: guarded, claims: { iat: inSeconds(seconds) } })
      return callWith(guarded, { Authorization: `DPoP ${token}`, DPoP: proof })
    }
    const usual = (await start()).guarded
    for (const seconds of [0, 6, 50]) expect((await at(usual, seconds)).status, `${seconds}`).to.equal(200)
    expect(challengeHeader(await at(usual, 75))).to.match(/more than 60 s ahead/)
    const strict = (await start({}, '60s', '2s')).guarded
    expect((await at(strict, 0)).status).to.equal(200)
    expect(challengeHeader(await at(strict, 20))).to.match(/more than 2 s ahead/)
  })
})
