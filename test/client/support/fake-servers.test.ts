// Tests the fake servers: they must reject what an incorrect client does.
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { expect } from 'chai'
import jwt from 'jsonwebtoken'
import { authorize, type FakeServers, REDIRECT_URI, startFakeServers, stopServers } from './fake-servers.ts'

const VERIFIER = 'a verifier of more than forty-three characters, as it must be'
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

type Answer = { status: number; body: Record<string, unknown>; headers: Headers }

async function post(url: string, form: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form), headers })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : JSON.parse(text), headers: response.headers }
}

function authorizationUrl({ as, rs }: FakeServers, more: Record<string, string> = {}): URL {
  const url = new URL(`${as.url}/authorize`)
  const parameters = { response_type: 'code', client_id: 'public', redirect_uri: REDIRECT_URI, state: 'a state' }
  const pkce = { code_challenge: CHALLENGE, code_challenge_method: 'S256' }
  url.search = new URLSearchParams({ ...parameters, ...pkce, resource: rs.serverUrl, ...more }).toString()
  return url
}

const codeForm = (location: URL, more: Record<string, string> = {}) => ({
  ...{ grant_type: 'authorization_code', client_id: 'public', redirect_uri: REDIRECT_URI, code_verifier: VERIFIER },
  code: location.searchParams.get('code') ?? '',
  ...more,
})

async function logIn(fake: FakeServers, more: Record<string, string> = {}): Promise<Record<string, string>> {
  const location = await authorize(authorizationUrl(fake, more))
  return (await post(`${fake.as.url}/token`, codeForm(location))).body as Record<string, string>
}

const refreshForm = (token: string | undefined) => ({
  ...{ grant_type: 'refresh_token', client_id: 'public', refresh_token: token ?? '' },
})

const callWith = (fake: FakeServers, token: string | undefined, init: RequestInit = {}) =>
  fetch(fake.serverUrl, { method: 'POST', ...init, headers: { Authorization: `Bearer ${token}`, ...init.headers } })

const errorOf = ({ body }: Answer) => body['error']

describe('Fake servers', () => {
  let fake: FakeServers
  beforeEach(async () => {
    fake = await startFakeServers()
    fake.as.addClient({ client_id: 'public' })
  })
  afterEach(stopServers)

  it('allow a correct client: challenge, metadata, login and call', async () => {
    const refused = await fetch(fake.serverUrl, { method: 'POST', body: 'hello' })
    expect(refused.status).to.equal(401)
    const [, where = ''] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? []
    const metadata = (await (await fetch(where)).json()) as Record<string, unknown>
    expect(metadata).to.include({ resource: fake.serverUrl })
    expect(metadata['authorization_servers']).to.deep.equal([fake.as.issuer])
    const known = await fetch(`${fake.as.issuer}/.well-known/oauth-authorization-server`)
    expect(await known.json()).to.include({ issuer: fake.as.issuer, token_endpoint: `${fake.as.url}/token` })
    const { access_token } = await logIn(fake, { scope: 'read' })
    const answered = await callWith(fake, access_token, { body: 'hello' })
    expect(await answered.json()).to.include({ method: 'POST', path: '/mcp', body: 'hello', scope: 'read' })
    expect([fake.rs.count('/mcp'), fake.rs.admitted, fake.as.count('/token')]).to.deep.equal([2, 1, 1])
    expect(fake.as.to('/token')[0]?.form.get('code_verifier')).to.equal(VERIFIER)
    expect(fake.secrets()).to.include.members([VERIFIER, access_token])
  })

  it('verify PKCE, redirect URI, resource and one use of each code', async () => {
    const attempt = async (more: Record<string, string>) =>
      errorOf(await post(`${fake.as.url}/token`, codeForm(await authorize(authorizationUrl(fake)), more)))
    expect(await attempt({ code_verifier: 'another one' })).to.equal('invalid_grant')
    expect(await attempt({ redirect_uri: `${REDIRECT_URI}/` })).to.equal('invalid_grant')
    expect(await attempt({ resource: `${fake.serverUrl}/` })).to.equal('invalid_target')
    const location = await authorize(authorizationUrl(fake))
    const { body } = await post(`${fake.as.url}/token`, codeForm(location))
    expect(errorOf(await post(`${fake.as.url}/token`, codeForm(location)))).to.equal('invalid_grant')
    expect((await callWith(fake, String(body['access_token']))).status).to.equal(401)
    const plain = await authorize(authorizationUrl(fake, { code_challenge_method: 'plain' }))
    expect(plain.searchParams.get('error')).to.equal('invalid_request')
  })

  it('show an error page for an unknown client or redirect URI', async () => {
    fake.as.addClient({ client_id: 'strict', redirect_uris: [REDIRECT_URI] })
    for (const more of [{ client_id: 'nobody' }, { client_id: 'strict', redirect_uri: 'http://localhost:1/' }]) {
      const thrown = await authorize(authorizationUrl(fake, more)).catch((error: Error) => error.message)
      expect(thrown).to.include('shows a page: 400')
    }
  })

  it('rotate refresh tokens, and revoke the family on reuse', async () => {
    const first = await logIn(fake)
    const second = (await post(`${fake.as.url}/token`, refreshForm(first['refresh_token']))).body
    expect(second['refresh_token']).to.be.a('string').and.not.equal(first['refresh_token'])
    expect((await callWith(fake, String(second['access_token']))).status).to.equal(200)
    expect(errorOf(await post(`${fake.as.url}/token`, refreshForm(first['refresh_token'])))).to.equal('invalid_grant')
    expect(fake.as.tokens.reuses).to.equal(1)
    expect((await callWith(fake, String(second['access_token']))).status).to.equal(401)
    const late = await post(`${fake.as.url}/token`, refreshForm(String(second['refresh_token'])))
    expect(errorOf(late)).to.equal('invalid_grant')
  })

  it('can disable rotation or refresh tokens', async () => {
    fake.as.settings.refreshTokens = 'fixed'
    const { refresh_token } = await logIn(fake)
    const refreshed = (await post(`${fake.as.url}/token`, refreshForm(refresh_token))).body
    expect(refreshed).to.have.property('access_token')
    expect(refreshed).not.to.have.property('refresh_token')
    fake.as.settings.refreshTokens = 'none'
    expect(await logIn(fake)).not.to.have.property('refresh_token')
  })

  it('accept only valid tokens for this resource with the scope of the path', async () => {
    const elsewhere = await logIn(fake, { resource: 'https://other.example/mcp' })
    expect((await callWith(fake, elsewhere['access_token'])).status).to.equal(401)
    fake.rs.settings.scopes = { '/mcp': 'write', purge: 'admin' }
    const { access_token } = await logIn(fake, { scope: 'read' })
    const lacking = await callWith(fake, access_token)
    expect([lacking.status, lacking.headers.get('www-authenticate')]).to.deep.equal([
      403,
      `Bearer error="insufficient_scope", scope="write", resource_metadata="${fake.rs.url}/.well-known/oauth-protected-resource/mcp"`,
    ])
    const writer = await logIn(fake, { scope: 'read write' })
    expect((await callWith(fake, writer['access_token'])).status).to.equal(200)
    expect((await callWith(fake, writer['access_token'], { headers: { 'Mcp-Name': 'purge' } })).status).to.equal(403)
    fake.as.tokens.expireAll()
    expect((await callWith(fake, writer['access_token'])).status).to.equal(401)
  })

  it('register clients, and authenticate each by its own method only', async () => {
    const register = async () => {
      const body = JSON.stringify({ redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'client_secret_basic' })
      return (await fetch(`${fake.as.url}/register`, { method: 'POST', body })).json() as Promise<
        Record<string, string>
      >
    }
    const { client_id = '', client_secret = '' } = await register()
    const credentials = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
    const grant = { grant_type: 'client_credentials', resource: fake.serverUrl }
    const basic = await post(`${fake.as.url}/token`, grant, { Authorization: `Basic ${credentials}` })
    expect(basic.body).to.include({ token_type: 'Bearer' }).and.not.have.property('refresh_token')
    const posted = await post(`${fake.as.url}/token`, { ...grant, client_id, client_secret })
    expect([posted.status, errorOf(posted)]).to.deep.equal([401, 'invalid_client'])
    fake.as.settings.registrationMethod = 'none'
    expect(await register()).not.to.have.property('client_secret')
    fake.as.forgetClients()
    const forgotten = await post(`${fake.as.url}/token`, grant, { Authorization: `Basic ${credentials}` })
    expect(errorOf(forgotten)).to.equal('invalid_client')
  })

  it('verify private_key_jwt: key, audience and one use', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
    fake.as.addClient({ client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt', publicKey: pem })
    const assertion = (audience: string) =>
      jwt.sign({}, privateKey, {
        ...{ algorithm: 'ES256', issuer: 'signer', subject: 'signer', audience, expiresIn: 60, jwtid: randomUUID() },
      })
    const ask = (client_assertion: string) =>
      post(`${fake.as.url}/token`, { grant_type: 'client_credentials', client_assertion })
    const good = assertion(fake.as.issuer)
    expect((await ask(good)).status).to.equal(200)
    expect(errorOf(await ask(good))).to.equal('invalid_client')
    expect(errorOf(await ask(assertion(`${fake.as.url}/token`)))).to.equal('invalid_client')
  })

  it('can modify the authorization response', async () => {
    const answered = async () => (await authorize(authorizationUrl(fake))).searchParams
    expect((await answered()).get('iss')).to.equal(fake.as.issuer)
    Object.assign(fake.as.settings, { iss: `${fake.as.issuer}/`, state: null, duplicated: ['code'] })
    const bent = await answered()
    expect([bent.get('iss'), bent.has('state'), bent.getAll('code').length]).to.deep.equal([
      `${fake.as.issuer}/`,
      false,
      2,
    ])
    Object.assign(fake.as.settings, { iss: null, authorizationError: 'access_denied' })
    expect([(await answered()).get('error'), (await answered()).has('iss')]).to.deep.equal(['access_denied', false])
  })

  it('fail the next requests as configured, then recover', async () => {
    const ask = () => post(`${fake.as.url}/token`, refreshForm('x')).then(errorOf, () => 'reset')
    fake.as.failNext('/token', { status: 503, body: { error: 'busy' } }, 2)
    fake.as.failNext('/token', { reset: 'before-body' })
    fake.as.failNext('/token', { reset: 'after-body' })
    const met = [await ask(), await ask(), await ask(), await ask(), await ask()]
    expect(met).to.deep.equal(['busy', 'busy', 'reset', 'reset', 'invalid_grant'])
    const { refresh_token } = await logIn(fake)
    fake.as.failNext('/token', { reset: 'after-processing' })
    const lost = await post(`${fake.as.url}/token`, refreshForm(refresh_token)).catch(() => 'reset')
    expect(lost).to.equal('reset')
    await post(`${fake.as.url}/token`, refreshForm(refresh_token))
    expect(fake.as.tokens.reuses, 'the lost answer had rotated the token').to.equal(1)
  })

  it('verify DPoP proofs, with a nonce if configured', async () => {
    Object.assign(fake.as.settings, { dpop: 'required', dpopNonce: true })
    Object.assign(fake.rs.settings, { dpop: true })
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const prove = (htm: string, htu: string, more: object = {}) => {
      const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) }
      const claims = { htm, htu, iat: Math.floor(Date.now() / 1000), jti: randomUUID(), ...more }
      const text = [header, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
      return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
    }
    const form = codeForm(await authorize(authorizationUrl(fake)))
    const token = `${fake.as.url}/token`
    const first = await post(token, form, { DPoP: prove('POST', token) })
    expect(errorOf(first)).to.equal('use_dpop_nonce')
    const nonce = first.headers.get('dpop-nonce')
    const { body } = await post(token, form, { DPoP: prove('POST', token, { nonce }) })
    expect(body['token_type']).to.equal('DPoP')
    const access = String(body['access_token'])
    const ath = createHash('sha256').update(access).digest('base64url')
    const proof = prove('POST', fake.serverUrl, { ath })
    const headers = { Authorization: `DPoP ${access}`, DPoP: proof }
    expect((await callWith(fake, access, { headers })).status).to.equal(200)
    expect((await callWith(fake, access, { headers })).status, 'a proof is good once').to.equal(401)
    expect((await callWith(fake, access)).status, 'not a bearer token').to.equal(401)
  })

  it('exchange an ID token for an ID-JAG, and an ID-JAG for an access token', async () => {
    const { as, servers } = await startFakeServers({ authorizationServers: 2 })
    const idp = servers[1] ?? as
    as.settings.trusts = [idp]
    for (const server of servers) server.addClient({ client_id: 'app', client_secret: 'of the app' })
    const basic = { Authorization: `Basic ${Buffer.from('app:of+the+app').toString('base64')}` }
    idp.idTokens.add('an id token')
    const exchanged = await post(
      `${idp.url}/token`,
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
        subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
        ...{ subject_token: 'an id token', audience: as.issuer, resource: 'https://r.example' },
      },
      basic,
    )
    expect(exchanged.body).to.include({ token_type: 'N_A' })
    const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    const assertion = String(exchanged.body['access_token'])
    expect((await post(`${as.url}/token`, { grant_type, assertion }, basic)).status).to.equal(200)
    expect(as.tokens.issued[0]?.resource).to.equal('https://r.example')
    const wrong = idp.issueAssertion({ sub: 'ann', aud: idp.issuer })
    expect(errorOf(await post(`${as.url}/token`, { grant_type, assertion: wrong }, basic))).to.equal('invalid_grant')
  })

  it('log in a device after user approval', async () => {
    Object.assign(fake.as.settings, { device: true, deviceSlowDowns: 1 })
    const { body } = await post(`${fake.as.url}/device_authorization`, { client_id: 'public', scope: 'read' })
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
    const poll = () =>
      post(`${fake.as.url}/token`, { grant_type, client_id: 'public', device_code: String(body['device_code']) })
    expect([errorOf(await poll()), errorOf(await poll())]).to.deep.equal(['slow_down', 'authorization_pending'])
    fake.as.decideDevice(String(body['user_code']), 'approved')
    expect((await poll()).body)
      .to.include({ scope: 'read' })
      .and.have.property('refresh_token')
  })

  it('revoke tokens, stream and send false responses', async () => {
    const { access_token, refresh_token } = await logIn(fake)
    const stream = await callWith(fake, access_token, { method: 'GET', headers: { Accept: 'text/event-stream' } })
    fake.rs.sendEvent('hello')
    const { value } = (await stream.body?.getReader().read()) ?? {}
    expect(Buffer.from(value ?? []).toString()).to.equal('data: hello\n\n')
    fake.rs.endStreams()
    expect((await callWith(fake, access_token, { method: 'DELETE' })).status).to.equal(204)
    fake.rs.settings.mood = 'always-403'
    expect((await callWith(fake, access_token)).status).to.equal(403)
    Object.assign(fake.rs.settings, { mood: 'always-401', challenges: ['Basic realm="x"', 'Negotiate'] })
    const lie = await callWith(fake, access_token)
    expect([lie.status, lie.headers.get('www-authenticate')]).to.deep.equal([401, 'Basic realm="x", Negotiate'])
    fake.rs.settings.mood = 'honest'
    await post(`${fake.as.url}/revoke`, { client_id: 'public', token: refresh_token ?? '' })
    expect((await callWith(fake, access_token)).status).to.equal(401)
  })
})
