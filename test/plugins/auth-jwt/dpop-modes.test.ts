// Tests the `dpop` option of auth-jwt: modes, proof URLs, sessions, nonces and startup checks.
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { testHost } from '../../../core/testing.ts'
import type { AuthJwtOptions } from '../../../plugins/auth-jwt/options.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { boundTo, createProof, type ProofFacts, provenBy } from '../../support/dpop.ts'
import { callWith, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { initialize, postMessage, sendRequest } from '../../support/session-client.ts'
import { openSse } from '../../support/sse-client.ts'
import { stopHosts, type TestConfig } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../../support/test-issuer.ts'

afterEach(stopHosts)

type DPoP = NonNullable<AuthJwtOptions['dpop']>

const ISSUER = 'https://issuer.test'
const issuerKey = makeKey('of-issuer')
const key = makeKey('mine')
const AUDIENCE = 'https://mcp.test'

const withDPoP = (dpop?: DPoP): AuthJwtOptions => ({
  issuer: ISSUER,
  keys: [toJwk(issuerKey)],
  audience: AUDIENCE,
  ...(dpop && { dpop }),
})
const start = (dpop?: DPoP, more: Partial<TestConfig> = {}) =>
  startProtected({ 'auth-jwt': withDPoP(dpop), 'resource-metadata': SERVERS }, more)
const SERVERS = { authorizationServers: [ISSUER] }

const claims = { iss: ISSUER, sub: 'ann', aud: AUDIENCE, client_id: 'c', exp: inSeconds(600), iat: inSeconds(0) }
const unbound = signToken(claims, issuerKey)
const bound = signToken({ ...claims, ...boundTo(key) }, issuerKey)
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const proven = (url: string, more: Partial<ProofFacts> = {}) => provenBy({ key, token: bound, url, ...more })

describe('auth-jwt: dpop not set', () => {
  it('accepts bearer and bound tokens, with an unchanged challenge', async () => {
    const { guarded, writers } = await start()
    expect(readUser(await callWith(guarded, bearer(unbound))).subject).to.equal('ann')
    expect(readUser(await callWith(guarded, proven(guarded))).subject).to.equal('ann')
    const none = challengeHeader(await callWith(guarded, {}))
    expect(none).to.match(/^Bearer resource_metadata="[^"]*"$/)
    expect(challengeHeader(await callWith(writers, bearer(unbound)))).to.match(/^Bearer error="insufficient_scope"/)
    const lacking = await callWith(writers, proven(writers))
    expect(lacking.status).to.equal(403)
    expect(challengeHeader(lacking)).to.match(/^DPoP error="insufficient_scope", .*scope="write".*algs="ES256 /)
  })

  it('rejects bound tokens if the public URL is unknown', async () => {
    const { url, log } = await startProtected({ 'auth-jwt': withDPoP() }, { http: { host: '0.0.0.0' } })
    const guarded = `http://127.0.0.1:${new URL(url).port}/guarded`
    expect((await callWith(guarded, bearer(unbound))).status).to.equal(200)
    for (const headers of [proven(guarded), bearer(bound)]) {
      const answer = await callWith(guarded, headers)
      expect(answer.status).to.equal(401)
      expect(challengeHeader(answer)).to.match(/^Bearer/)
    }
    expect((await callWith(guarded, bearer(bound))).status).to.equal(401)
    const told = log.filter(({ message }) => message === 'tokens that are bound to a key (DPoP) are refused')
    expect(told).to.have.length(1)
    expect(JSON.stringify(told)).to.contain('set http.publicUrl')
  })
})

describe('auth-jwt: dpop mode "required"', () => {
  it('rejects unbound tokens, and challenges only for DPoP', async () => {
    const { guarded, open, writers } = await start({ mode: 'required' })
    for (const url of [guarded, writers]) {
      expect(challengeHeader(await callWith(url, {}))).to.match(
        /^DPoP .*resource_metadata="[^"]*", algs="ES256 [^"]*"$/,
      )
    }
    for (const url of [guarded, open, writers]) {
      for (const scheme of ['Bearer', 'bearer', 'DPoP']) {
        const answer = await callWith(url, { Authorization: `${scheme} ${unbound}` })
        expect(answer.status).to.equal(401)
        expect(challengeHeader(answer)).to.match(/^DPoP error="invalid_token", /)
      }
    }
    const bad = await callWith(guarded, bearer('x'))
    expect(challengeHeader(bad)).to.match(/^DPoP error="invalid_token".*algs=/)
    expect((await callWith(guarded, proven(guarded))).status).to.equal(200)
    expect((await callWith(open, {})).status).to.equal(200)
  })

  it('can apply to one route, whose resource metadata states it', async () => {
    const strict = {
      toolsets: 'all',
      authorize: true,
      plugins: { 'auth-jwt': withDPoP({ mode: 'required' }) },
    } as const
    const { url, guarded } = await start(undefined, {
      routes: { '/guarded': { toolsets: 'all', authorize: true }, '/strict': strict },
    })
    expect((await callWith(guarded, bearer(unbound))).status).to.equal(200)
    expect((await callWith(`${url}/strict`, bearer(unbound))).status).to.equal(401)
    expect((await callWith(`${url}/strict`, proven(`${url}/strict`))).status).to.equal(200)
    const documentOf = async (path: string) =>
      (await fetch(`${url}/.well-known/oauth-protected-resource${path}`)).json() as Promise<object>
    expect(await documentOf('/strict')).to.include({ dpop_bound_access_tokens_required: true })
    expect(await documentOf('/guarded')).to.not.have.any.keys(
      'dpop_bound_access_tokens_required',
      'dpop_signing_alg_values_supported',
    )
  })

  it('accepts fake tokens of testHost without a proof', async () => {
    const { 'auth-jwt': jwt } = { 'auth-jwt': withDPoP({ mode: 'required' }) }
    const config = {
      server: { name: 'x', version: '1.0.0' },
      toolsets: { none: [] },
      routes: { '/': { toolsets: 'none', authorize: true as const } },
      plugins: { 'transport-streamable': {}, 'auth-jwt': jwt },
    }
    await using host = await testHost(config)
    const client = await host.client({ user: { subject: 'bob' } })
    expect(await client.listTools()).to.deep.equal([])
  })
})

describe('auth-jwt: dpop mode "off"', () => {
  it('rejects bound tokens under every scheme, and ignores the DPoP scheme', async () => {
    const { guarded, open } = await start({ mode: 'off' })
    const asBearer = await callWith(guarded, bearer(bound))
    expect(asBearer.status).to.equal(401)
    expect(challengeHeader(asBearer)).to.match(/^Bearer error="invalid_token", .*are not accepted/)
    expect((await callWith(guarded, proven(guarded))).status).to.equal(401)
    // As every other scheme that is not the host's.
    expect(readUser(await callWith(open, proven(open)))).to.equal(null)
    expect((await callWith(guarded, bearer(unbound))).status).to.equal(200)
  })

  it('applies per route on one connection', async () => {
    const off = { toolsets: 'all', authorize: true, plugins: { 'auth-jwt': withDPoP({ mode: 'off' }) } } as const
    const { url } = await start(undefined, { routes: { '/on': { toolsets: 'all', authorize: true }, '/off': off } })
    for (let round = 0; round < 3; round++) {
      expect((await callWith(`${url}/on`, proven(`${url}/on`))).status).to.equal(200)
      expect((await callWith(`${url}/off`, proven(`${url}/off`))).status).to.equal(401)
    }
  })
})

describe('DPoP: proof URL (htu)', () => {
  it('must be under http.publicUrl, including a path prefix that the proxy strips', async () => {
    const publicUrl = 'https://mcp.acme.example/tools/'
    const { guarded } = await start(undefined, { http: { publicUrl } })
    const right = ['https://mcp.acme.example/tools/guarded', 'https://MCP.acme.example:443/tools/guarded/']
    const wrong = [guarded, 'https://mcp.acme.example/guarded', 'http://mcp.acme.example/tools/guarded']
    for (const url of right) expect((await callWith(guarded, proven(url))).status, url).to.equal(200)
    for (const url of wrong) expect((await callWith(guarded, proven(url))).status, url).to.equal(401)
  })

  it('without a public URL must be the request URL under an accepted host name', async () => {
    const { guarded } = await start()
    const byName = guarded.replace('127.0.0.1', 'localhost')
    expect((await callWith(byName, proven(byName))).status).to.equal(200)
    expect((await callWith(byName, proven(guarded))).status).to.equal(401)
  })
})

describe('DPoP: sessions', () => {
  const session = { 'MCP-Protocol-Version': '2025-11-25' }

  it('require a new proof for each request of the session, for every HTTP method', async () => {
    const { writers: _, open: url } = await start()
    const opened = await initialize(url, { headers: proven(url) })
    const id = String(opened.headers['mcp-session-id'])
    const own = { ...session, 'Mcp-Session-Id': id }
    const list = { id: 1, method: 'tools/list' }
    const used = proven(url)
    expect((await postMessage(url, list, { ...own, ...used })).status).to.equal(200)
    expect((await postMessage(url, list, { ...own, ...used })).status).to.equal(401)
    expect((await postMessage(url, list, { ...own, Authorization: `DPoP ${bound}` })).status).to.equal(401)
    expect((await postMessage(url, list, { ...own, ...bearer(bound) })).status).to.equal(401)
    const accept = { ...own, Accept: 'text/event-stream' }
    expect((await sendRequest(url, 'GET', { ...accept, ...proven(url) })).status).to.equal(401)
    const stream = await exchange(url, { method: 'GET', headers: { ...accept, ...proven(url, { method: 'GET' }) } })
    expect(stream.status).to.equal(200)
    stream.drop()
    expect((await sendRequest(url, 'DELETE', { ...own, ...proven(url) })).status).to.equal(401)
    const ended = await sendRequest(url, 'DELETE', { ...own, ...proven(url, { method: 'DELETE' }) })
    expect(ended.status).to.be.oneOf([200, 204])
  })

  it('of HTTP+SSE have separate proof URLs for stream and messages', async () => {
    const routes = { '/open': { toolsets: 'all' } }
    const { open } = await startProtected({ 'auth-jwt': withDPoP(), 'transport-sse': {} }, { routes })
    const at = (suffix: string, method = 'POST') => proven(`${open}${suffix}`, { method })
    const refused = await openSse(open, { headers: at('', 'GET') })
    expect(refused.status).to.equal(401)
    const stream = await openSse(open, { headers: at('/sse', 'GET') })
    const first = await stream.next()
    const endpoint = new URL(String(first?.data), `${open}/sse`).href
    const ping = { id: 1, method: 'ping' }
    expect((await postMessage(endpoint, ping, at('/sse'))).status).to.equal(401)
    expect((await postMessage(endpoint, ping, at('/message', 'GET'))).status).to.equal(401)
    expect((await postMessage(endpoint, ping, bearer(bound))).status).to.equal(401)
    expect((await postMessage(endpoint, ping, at('/message'))).status).to.equal(202)
    stream.drop()
  })
})

describe('DPoP: nonce challenge', () => {
  const nonceIn = ({ headers }: { headers: Headers }) => headers.get('dpop-nonce') ?? ''
  const withNonce = (url: string, nonce: unknown) => proven(url, { claims: { nonce } })

  it('returns use_dpop_nonce with a nonce that only hosts with the same secrets accept', async () => {
    const dpop = { nonce: true } as const
    const [one, two] = [await start(dpop), await start(dpop)]
    const other = await start(dpop, { secrets: ['another secret for tests, and long enough too'] })
    const rotated = await start(dpop, {
      secrets: ['another secret for tests, and long enough too', 'a secret for tests, long enough to be one'],
    })
    const asked = await callWith(one.guarded, proven(one.guarded))
    expect(asked.status).to.equal(401)
    expect(challengeHeader(asked)).to.match(/^DPoP error="use_dpop_nonce"/)
    const nonce = nonceIn(asked)
    expect(nonce).to.match(/^[\w-]{27}$/)
    for (const { guarded } of [one, two]) {
      expect((await callWith(guarded, withNonce(guarded, nonce))).status).to.equal(200)
    }
    expect((await callWith(other.guarded, withNonce(other.guarded, nonce))).status).to.equal(401)
    const renewed = await callWith(rotated.guarded, withNonce(rotated.guarded, nonce))
    expect(renewed.status).to.equal(200)
    // The first secret signs: the answer says what the next proofs should have.
    expect(nonceIn(renewed))
      .to.match(/^[\w-]{27}$/)
      .and.not.equal(nonce)
    const warnings = one.log.filter(({ level }) => level === 'warn').map(({ message }) => message)
    expect(warnings).to.not.include('refused a token')
  })

  it('rejects invalid nonces', async () => {
    const { guarded } = await start({ nonce: true })
    const nonce = nonceIn(await callWith(guarded, proven(guarded)))
    const flipped = `${nonce.slice(0, -2)}${nonce.at(-2) === 'A' ? 'B' : 'A'}${nonce.at(-1)}`
    const odd = [
      '',
      'x',
      nonce.slice(1),
      `${nonce}A`,
      flipped,
      `AAAAAA${nonce.slice(6)}`,
      [nonce],
      5,
      null,
      'A'.repeat(27),
    ]
    for (const one of [...odd, 'ä'.repeat(27)]) {
      const answer = await callWith(guarded, withNonce(guarded, one))
      expect(answer.status, JSON.stringify(one)).to.equal(401)
      expect(challengeHeader(answer)).to.contain('use_dpop_nonce')
    }
  })
})

describe('auth-jwt: dpop at startup', () => {
  const config = (dpop: DPoP, more: Partial<TestConfig> = {}) => ({
    toolsets: { none: [] },
    routes: { '/': { toolsets: 'none', stateless: true } },
    plugins: { 'transport-streamable': {}, 'auth-jwt': withDPoP(dpop) },
    ...more,
  })

  it('fails if the public URL is unknown', async () => {
    for (const mode of ['optional', 'required'] as const) {
      await expectStopped(config({ mode }, { http: { host: '0.0.0.0' } }), /auth-jwt'?\]?\.dpop: .*set http\.publicUrl/)
    }
  })

  it('fails if several processes would each accept the same proof', async () => {
    const full = (dpop: DPoP) => ({
      server: { name: 'x', version: '1.0.0' },
      ...config(dpop),
      secrets: ['x'.repeat(40)],
    })
    for (const mode of ['optional', 'required'] as const) {
      const error = await rejectionOf(createHost(full({ mode }), { processes: 2, purpose: 'inspect' }))
      expect(String(error)).to.match(/\.dpop: each of 2 processes would accept a DPoP proof/)
    }
    await createHost(full({}), { processes: 2, purpose: 'inspect' })
    await createHost(full({ mode: 'required' }), { processes: 1, purpose: 'inspect' })
  })

  it('fails for an invalid proof lifetime, algorithm or mode', async () => {
    await expectStopped(config({ maxAge: '11m' }), /dpop\.maxAge: .*1s to 10m/)
    await expectStopped(config({ maxAge: '500ms' }), /dpop\.maxAge: .*1s to 10m/)
    await expectStopped(config({ algorithms: ['HS256' as 'ES256'] }), /dpop\.algorithms/)
    await expectStopped(config({ mode: 'on' as 'off' }), /dpop\.mode/)
  })

  it('applies the configured algorithms and proof lifetime', async () => {
    const { guarded } = await start({ algorithms: ['RS256'], maxAge: '10m' })
    const refused = await callWith(guarded, proven(guarded))
    expect(challengeHeader(refused)).to.match(/algs="RS256"$/)
    const rsa = makeKey('rsa', 'RS256')
    const token = signToken({ ...claims, ...boundTo(rsa) }, issuerKey)
    const proof = createProof({ key: rsa, token, url: guarded })
    expect((await callWith(guarded, { Authorization: `DPoP ${token}`, DPoP: proof })).status).to.equal(200)
    expect((await callWith(guarded, { Authorization: `DPoP ${token}`, DPoP: proof })).status).to.equal(401)
  })
})
