// Tests client identity: configured, metadata document or registered, and isolation between issuers.

import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import { AuthError } from '../../client/errors.ts'
import { type IdentityQuery, identifyClient, isClientRefused } from '../../client/identity.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import type { ClientIdentity, Registration } from '../../client/stores.ts'
import { testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { type FakeAuthorizationServer, startFakeServers, stopServers } from './support/fake-servers.ts'

const DOCUMENT = 'https://client.example/mcp.json'
const REDIRECT = 'http://127.0.0.1:8765/callback'
const { signal } = new AbortController()
const NOTHING: IdentityQuery = { scope: undefined, registration: undefined, previousIssuer: undefined }

let as: FakeAuthorizationServer
let second: FakeAuthorizationServer
beforeEach(async () => {
  const fake = await startFakeServers({ authorizationServers: 2 })
  as = fake.as
  second = fake.servers[1] ?? as
})
afterEach(stopServers)

async function identify(
  options: Partial<ClientOAuthOptions>,
  want: Partial<IdentityQuery> = {},
  { at = as, now = Date.now } = {},
): Promise<{ client: ClientIdentity; dropped: unknown[] }> {
  const ctx = testContext(
    { ...(options.clientSecret !== undefined && { clientIssuer: at.issuer }), ...options },
    { now },
  )
  const server = await discoverServer(ctx, at.issuer, false, signal)
  const client = await identifyClient(ctx, server, { ...NOTHING, ...want }, signal)
  const dropped = ctx.events.flatMap(event => (event.type === 'registration-dropped' ? [event.why] : []))
  return { client, dropped }
}

const registrationAt = (issuer: string, more: Partial<Registration> = {}): Registration => ({
  issuer,
  clientId: 'kept',
  clientSecret: 'kept-secret-value',
  tokenEndpointAuthMethod: 'client_secret_post',
  redirectUri: REDIRECT,
  dynamic: true,
  ...more,
})

describe('Client identity', () => {
  it('R-38: prefers a configured client, then a metadata document if supported, then registration', async () => {
    as.settings.clientMetadataDocuments = true
    const all = { clientId: 'configured', clientSecret: 'a secret', clientMetadataDocumentUri: DOCUMENT }
    expect((await identify(all)).client).to.deep.equal({
      source: 'configured',
      issuer: as.issuer,
      clientId: 'configured',
      clientSecret: 'a secret',
    })
    const document = await identify({ clientMetadataDocumentUri: DOCUMENT })
    expect(document.client).to.deep.equal({ source: 'metadata-document', issuer: as.issuer, clientId: DOCUMENT })
    expect(as.count('/register')).to.equal(0)
    as.settings.clientMetadataDocuments = false
    const { client } = await identify({ clientMetadataDocumentUri: DOCUMENT })
    expect(client.source).to.equal('registered')
    expect(client.clientId).to.match(/^client-/)
    expect(as.count('/register')).to.equal(1)
  })

  it('R-38: names the options to set if none is available', async () => {
    as.settings.registration = 'off'
    const none = await failure(identify({ clientMetadataDocumentUri: DOCUMENT }))
    expect(none.code).to.equal('client_information_required')
    expect(none.message).to.include('does not support client id metadata documents')
    expect(none.message).to.include('does not support dynamic registration').and.include('set clientId')
    as.settings.registration = 'on'
    const off = await failure(identify({ dynamicClientRegistration: { enabled: false } }))
    expect([off.code, as.count('/register')]).to.deep.equal(['client_information_required', 0])
    expect(off.message).to.include('turned off')
  })

  it('R-39: rejects an invalid client id metadata document URL at construction', () => {
    const bad = ['http://client.example/a', 'https://client.example', 'https://client.example/a#b', 'not a url']
    const more = ['https://me@client.example/a', 'https://client.example/a/../b', 'https://client.example/a/%2e%2e/b']
    for (const clientMetadataDocumentUri of [...bad, ...more]) {
      expect(() => testContext({ clientMetadataDocumentUri }), clientMetadataDocumentUri).to.throw(AuthError)
    }
    // Used as written: another spelling would be another client.
    const uri = 'https://CLIENT.example:443/a'
    expect(testContext({ clientMetadataDocumentUri: uri }).options.clientMetadataDocumentUri).to.equal(uri)
  })

  it('R-40: does not use a configured client at another issuer', async () => {
    const options = { clientId: 'mine', clientSecret: 'mine-secret' }
    const moved = await failure(identify({ clientId: 'mine' }, { previousIssuer: as.issuer }, { at: second }))
    expect(moved.code).to.equal('issuer_changed')
    expect(moved.message).to.include(as.issuer).and.include(second.issuer).and.include('clientIssuer')
    const pinned = await failure(identify({ ...options, clientIssuer: as.issuer }, {}, { at: second }))
    expect(pinned.code).to.equal('issuer_changed')
    // The pin says more than where earlier tokens were from.
    const want = { previousIssuer: as.issuer }
    const { client } = await identify({ ...options, clientIssuer: second.issuer }, want, { at: second })
    expect(client.issuer).to.equal(second.issuer)
    // One more slash is another issuer.
    expect((await failure(identify({ ...options, clientIssuer: `${as.issuer}/` }))).code).to.equal('issuer_changed')
  })

  it('R-40: registers again at another issuer, and reuses a metadata document', async () => {
    const kept = registrationAt(as.issuer)
    const { client, dropped } = await identify({}, { registration: kept, previousIssuer: as.issuer }, { at: second })
    expect(client).to.include({ source: 'registered', issuer: second.issuer })
    expect(client.clientId).to.not.equal('kept')
    expect(dropped).to.deep.equal(['it is for another authorization server'])
    const seen = second.requests.map(({ body, headers }) => `${body} ${JSON.stringify(headers)}`).join()
    expect(seen).to.not.match(/kept/)
    second.settings.clientMetadataDocuments = true
    const options = { clientMetadataDocumentUri: DOCUMENT }
    const document = await identify(options, { previousIssuer: as.issuer }, { at: second })
    expect(document.client).to.include({ source: 'metadata-document', issuer: second.issuer, clientId: DOCUMENT })
  })

  it('R-41: reuses a stored registration while redirect URI and secret are valid', async () => {
    const now = () => 1_000_000_000
    const { client } = await identify({}, { registration: registrationAt(as.issuer) }, { now })
    const kept = registrationAt(as.issuer)
    expect(client).to.deep.equal({
      source: 'registered',
      issuer: as.issuer,
      clientId: 'kept',
      clientSecret: 'kept-secret-value',
      tokenEndpointAuthMethod: 'client_secret_post',
      registration: kept,
    })
    const cases: [Partial<Registration>, string[]][] = [
      [{ clientSecretExpiresAt: 0 }, []],
      [{ clientSecretExpiresAt: 1_000_001 }, []],
      [{ clientSecretExpiresAt: 1_000_000 }, ['its secret expired']],
      [{ redirectUri: `${REDIRECT}/` }, ['it is for another redirect URI']],
    ]
    for (const [more, why] of cases) {
      const { dropped } = await identify({}, { registration: registrationAt(as.issuer, more) }, { now })
      expect(dropped).to.deep.equal(why)
    }
    expect(as.count('/register')).to.equal(2)
  })

  it('R-41: uses the registration of the options if the cache has none', async () => {
    const dynamicClientRegistration = { registration: registrationAt(as.issuer, { clientId: 'from-options' }) }
    const { client } = await identify({ dynamicClientRegistration })
    expect(client.clientId).to.equal('from-options')
    const cached = await identify({ dynamicClientRegistration }, { registration: registrationAt(as.issuer) })
    expect(cached.client.clientId).to.equal('kept')
    expect(as.count('/register')).to.equal(0)
  })

  it('R-48: replaces a rejected registration, but never a configured client', async () => {
    const registration = registrationAt(as.issuer)
    const want = { registration, refusedClientId: 'kept' }
    const { client, dropped } = await identify({ dynamicClientRegistration: { registration } }, want)
    expect(client.clientId).to.match(/^client-/)
    expect(dropped).to.have.length(2)
    expect((await identify({ clientId: 'kept' }, want)).client).to.include({ source: 'configured', clientId: 'kept' })
    expect(as.count('/register')).to.equal(1)
    expect(isClientRefused(new AuthError('no', { code: 'invalid_client' }))).to.equal(true)
    expect(isClientRefused(new AuthError('no', { code: 'unauthorized_client' }))).to.equal(true)
    expect(isClientRefused(new AuthError('no', { code: 'invalid_grant' }))).to.equal(false)
    expect(isClientRefused(new Error('no'))).to.equal(false)
  })

  it('R-100: never registers for grants that require a configured client', async () => {
    const ctx = testContext({ clientId: 'service', grant: { type: 'client_credentials' } })
    const server = await discoverServer(ctx, as.issuer, false, signal)
    const { clientId: _, ...options } = ctx.options
    const nobody = await failure(identifyClient({ ...ctx, options }, server, NOTHING, signal))
    expect([nobody.code, as.count('/register')]).to.deep.equal(['client_information_required', 0])
    expect(nobody.message).to.match(/client_credentials/)
  })
})
