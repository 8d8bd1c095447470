// Tests DPoP proofs of the client: claims, nonces and the persisted key.

import { createHash, createPublicKey, verify } from 'node:crypto'
import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import { createDPoPSigner } from '../../client/dpop.ts'
import type { ClientIdentity } from '../../client/stores.ts'
import { requestToken } from '../../client/token-endpoint.ts'
import { testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'

const { signal } = new AbortController()
afterEach(stopServers)

const URL_ = 'https://mcp.example/mcp'

/** The parts of a proof whose signature is good. */
function readProof(proof: string): { header: Record<string, unknown>; payload: Record<string, unknown> } {
  const [head = '', body = '', signature = ''] = proof.split('.')
  const [header, payload] = [head, body].map(part => JSON.parse(Buffer.from(part, 'base64url').toString()))
  const key = createPublicKey({ key: header.jwk, format: 'jwk' })
  const raw = { key, dsaEncoding: 'ieee-p1363' } as const
  expect(verify('sha256', Buffer.from(`${head}.${body}`), raw, Buffer.from(signature, 'base64url'))).to.equal(true)
  return { header, payload }
}

describe('DPoP', () => {
  it('R-104: a proof contains method, URL without query, token hash, time and only the public key', async () => {
    const signer = await createDPoPSigner(undefined, () => 1_700_000_000_999)
    const { header, payload } = readProof(await signer.proof('post', `${URL_}?a=1#b`, 'the-token'))
    const { kty, crv, x, y } = signer.jwk
    expect(header).to.deep.equal({ typ: 'dpop+jwt', alg: 'ES256', jwk: { kty, crv, x, y } })
    const { jti, ...rest } = payload
    expect(rest).to.deep.equal({
      htm: 'POST',
      htu: URL_,
      iat: 1_700_000_000,
      ath: createHash('sha256').update('the-token').digest('base64url'),
    })
    expect(jti).to.be.a('string').with.length.of.at.least(16)
    expect(readProof(await signer.proof('GET', URL_)).payload).to.not.have.any.keys('ath', 'nonce')
  })

  it('R-104: every proof has a unique jti', async () => {
    const signer = await createDPoPSigner()
    const proofs = await Promise.all(Array.from({ length: 50 }, () => signer.proof('GET', URL_)))
    expect(new Set(proofs.map(proof => readProof(proof).payload['jti']))).to.have.property('size', 50)
  })

  it('R-104: nonces are stored per origin, the newest of each, for at most a hundred origins', async () => {
    const signer = await createDPoPSigner()
    const nonceOf = async (url: string) => readProof(await signer.proof('GET', url)).payload['nonce']
    signer.rememberNonce('https://mcp.example', 'first')
    signer.rememberNonce('https://mcp.example', 'second')
    signer.rememberNonce('https://as.example', 'other')
    expect(await nonceOf(`${URL_}/a`)).to.equal('second')
    expect(await nonceOf('https://as.example/token')).to.equal('other')
    expect(await nonceOf('https://mcp.example:8443/')).to.equal(undefined)
    for (let n = 0; n < 99; n++) signer.rememberNonce(`https://h${n}.example`, `${n}`)
    expect([await nonceOf(URL_), await nonceOf('https://as.example')]).to.deep.equal([undefined, 'other'])
  })

  it('R-105: reuses the stored key, and reports a damaged key without showing it', async () => {
    const { jwk } = await createDPoPSigner()
    const again = await createDPoPSigner(JSON.parse(JSON.stringify(jwk)))
    const { header } = readProof(await again.proof('GET', URL_))
    expect(header['jwk']).to.include({ x: jwk.x, y: jwk.y })
    const broken = await failure(createDPoPSigner({ ...jwk, x: 'AAAA' }))
    expect([broken.code, broken.cause]).to.deep.equal(['cache_failed', undefined])
    expect(broken.message).to.not.include(String(jwk.d))
  })

  it('R-104: sends a proof to the token endpoint, and retries once with the requested nonce', async () => {
    const { as } = await startFakeServers()
    as.settings.dpop = 'required'
    as.settings.dpopNonce = true
    as.addClient({ client_id: 'service', client_secret: 'service-secret' })
    const ctx = testContext({ dpop: true })
    const server = await discoverServer(ctx, as.issuer, false, signal)
    const client: ClientIdentity = {
      source: 'configured',
      issuer: server.issuer,
      clientId: 'service',
      clientSecret: 'service-secret',
    }
    const dpop = await createDPoPSigner()
    const request = { server, client, grantType: 'client_credentials', parameters: {}, dpop }
    expect((await requestToken(ctx, request, signal)).tokenType).to.equal('DPoP')
    expect(as.to('/token').map(({ status }) => status)).to.deep.equal([400, 200])
    const asked = await requestToken(ctx, request, signal)
    expect(asked.tokenType).to.equal('DPoP')
    expect(as.count('/token'), 'the nonce is known now').to.equal(3)
    as.newNonce()
    await requestToken(ctx, { ...request, sendOnce: true }, signal)
    expect(as.count('/token')).to.equal(5)
    const htu = as.to('/token').map(({ headers }) => readProof(String(headers['dpop'])).payload['htu'])
    expect(new Set(htu)).to.deep.equal(new Set([server.tokenEndpoint]))
    // A server that is never content is not asked for ever.
    const body = { error: 'use_dpop_nonce' }
    as.failNext('/token', { status: 400, headers: { 'DPoP-Nonce': 'again' }, body }, 5)
    expect((await failure(requestToken(ctx, request, signal))).code).to.equal('use_dpop_nonce')
    expect(as.count('/token')).to.equal(7)
  })

  it('R-67: rejects a token with the wrong token_type, unless dpop is auto', async () => {
    const { as } = await startFakeServers()
    as.addClient({ client_id: 'service', client_secret: 'service-secret' })
    const ask = async (setting: 'auto' | boolean, proof: boolean) => {
      const ctx = testContext({ dpop: setting })
      const server = await discoverServer(ctx, as.issuer, false, signal)
      const identity = { source: 'configured', issuer: server.issuer, clientId: 'service' } as const
      const client = { ...identity, clientSecret: 'service-secret' }
      const dpop = proof ? await createDPoPSigner() : undefined
      return requestToken(ctx, { server, client, grantType: 'client_credentials', parameters: {}, dpop }, signal)
    }
    expect((await failure(ask(true, true))).code).to.equal('unsupported_token_type')
    expect((await ask('auto', true)).tokenType).to.equal('Bearer')
    as.settings.tokenAnswer = { token_type: 'dpop' }
    expect((await failure(ask('auto', false))).code).to.equal('unsupported_token_type')
    expect((await ask(true, true)).tokenType).to.equal('DPoP')
  })
})
