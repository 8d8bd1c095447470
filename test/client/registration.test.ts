// Tests dynamic client registration: request, response and errors.
import { inspect } from 'node:util'
import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import { AuthError, RegistrationRejectedError } from '../../client/errors.ts'
import { registerClient } from '../../client/identity.ts'
import type { ClientOAuthOptions, RegistrationResponse } from '../../client/options.ts'
import type { Registration } from '../../client/stores.ts'
import { type TestContext, testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { type FakeAuthorizationServer, startFakeServers, stopServers } from './support/fake-servers.ts'

const REDIRECT = 'http://127.0.0.1:8765/callback'
const { signal } = new AbortController()

let as: FakeAuthorizationServer
beforeEach(async () => {
  as = (await startFakeServers()).as
})
afterEach(stopServers)

async function register(
  options: Partial<ClientOAuthOptions> = {},
  scope?: string,
): Promise<{ made: Registration; sent: Record<string, unknown>; ctx: TestContext }> {
  const withToken = options.dynamicClientRegistration?.initialAccessToken !== undefined
  const ctx = testContext({ ...(withToken && { clientIssuer: as.issuer }), ...options })
  const server = await discoverServer(ctx, as.issuer, false, signal)
  const made = await registerClient(ctx, server, scope, signal)
  return { made, sent: JSON.parse(as.to('/register').at(-1)?.body ?? '{}'), ctx }
}

describe('Dynamic client registration', () => {
  it('R-42: sets application_type native for loopback and private-use redirect URIs, else web', async () => {
    const kinds = []
    const redirects = [
      REDIRECT,
      'http://localhost:1/a',
      'http://[::1]:1/a',
      'com.example.app:/back',
      'https://a.example/b',
    ]
    for (const redirectUri of redirects) kinds.push((await register({ redirectUri })).sent['application_type'])
    expect(kinds).to.deep.equal(['native', 'native', 'native', 'native', 'web'])
    const { sent } = await register({ dynamicClientRegistration: { applicationType: 'web' } })
    expect(sent['application_type']).to.equal('web')
  })

  it('R-43: sends grants including refresh_token, the scope, names and additional metadata', async () => {
    const { sent } = await register(
      {
        dynamicClientRegistration: {
          clientName: 'Desk',
          clientUri: 'https://desk.example',
          metadata: { client_uri: 'https://other.example', contacts: ['a@desk.example'] },
        },
      },
      'read write',
    )
    expect(sent).to.deep.equal({
      redirect_uris: [REDIRECT],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      client_name: 'Desk',
      client_uri: 'https://other.example',
      contacts: ['a@desk.example'],
      scope: 'read write',
    })
    const plain = await register()
    expect(plain.sent).to.not.have.any.keys('scope', 'client_uri')
    expect(plain.sent['client_name']).to.equal('MCP client (mcp-host)')
    const nameless = await register({ dynamicClientRegistration: { clientName: '' } })
    expect(nameless.sent).to.not.have.any.keys('client_name')
    const device = await register({ grant: { type: 'device', onUserCode: () => {} } })
    expect(device.sent).to.not.have.any.keys('redirect_uris', 'response_types')
    expect(device.sent['grant_types']).to.deep.equal(['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'])
  })

  it('R-44: sends the initial access token only with the registration', async () => {
    as.settings.initialAccessToken = 'initial-token-value'
    const { made } = await register({ dynamicClientRegistration: { initialAccessToken: 'initial-token-value' } })
    expect(made.clientId).to.match(/^client-/)
    const carrying = as.requests.filter(({ headers }) => headers.authorization !== undefined).map(({ path }) => path)
    expect(carrying).to.deep.equal(['/register'])
    const refused = await failure(register())
    expect(refused.message).to.include('initialAccessToken')
    const before = as.count('/register')
    const dynamicClientRegistration = { initialAccessToken: 'initial-token-value' }
    const elsewhere = await failure(register({ dynamicClientRegistration, clientIssuer: 'https://as.example' }))
    expect([elsewhere.code, as.count('/register')]).to.deep.equal(['issuer_changed', before])
    expect(elsewhere.message).to.include(as.issuer).and.include('https://as.example').and.not.include('initial-token')
  })

  it('R-45: prefers method none, then basic, then post; without a list depends on the redirect URI', async () => {
    const asked = []
    const lists = [
      ['client_secret_post', 'client_secret_basic', 'none'],
      ['client_secret_post', 'client_secret_basic'],
      ['client_secret_post', 'private_key_jwt'],
    ]
    for (const list of lists) {
      as.settings.tokenEndpointAuthMethods = list
      asked.push((await register()).sent['token_endpoint_auth_method'])
    }
    as.settings.tokenEndpointAuthMethods = undefined
    asked.push((await register()).sent['token_endpoint_auth_method'])
    asked.push((await register({ redirectUri: 'https://a.example/b' })).sent['token_endpoint_auth_method'])
    expect(asked).to.deep.equal(['none', 'client_secret_basic', 'client_secret_post', 'none', 'client_secret_basic'])
    const explicit = await register({ tokenEndpointAuthMethod: 'client_secret_post' })
    expect(explicit.sent['token_endpoint_auth_method']).to.equal('client_secret_post')
    as.settings.tokenEndpointAuthMethods = ['private_key_jwt', 'tls_client_auth']
    const count = as.count('/register')
    const unable = await failure(register())
    expect([unable.code, as.count('/register')]).to.deep.equal(['client_information_required', count])
    const privateKey = { kty: 'EC' }
    expect((await register({ privateKey })).sent['token_endpoint_auth_method']).to.equal('private_key_jwt')
  })

  it('R-46: accepts 200 and 201, with and without client_secret_expires_at', async () => {
    as.settings.registrationMethod = 'client_secret_basic'
    for (const status of [200, 201]) {
      as.settings.registrationStatus = status
      const { made } = await register()
      expect(made).to.include({
        issuer: as.issuer,
        tokenEndpointAuthMethod: 'client_secret_basic',
        redirectUri: REDIRECT,
      })
      expect(made.clientSecret).to.match(/^secret-/)
      expect(made).to.not.have.property('clientSecretExpiresAt')
    }
    as.settings.secretExpiresAt = 4_000_000_000
    expect((await register()).made.clientSecretExpiresAt).to.equal(4_000_000_000)
    as.settings.registration = {
      status: 201,
      body: { client_id: 'c', client_secret: null, client_secret_expires_at: '0' },
    }
    expect((await register()).made).to.deep.equal({
      issuer: as.issuer,
      clientId: 'c',
      redirectUri: REDIRECT,
      dynamic: true,
    })
  })

  it('refuses a client id or secret with characters outside of visible ASCII', async () => {
    for (const body of [
      { client_id: 'a\u001b[2J' },
      { client_id: 'a\nb' },
      { client_id: 'a', client_secret: 'caf\u00e9' },
    ]) {
      as.settings.registration = { status: 201, body }
      const refused = await failure(register())
      expect([refused.code, refused.retryable], JSON.stringify(body)).to.deep.equal(['malformed_response', false])
    }
  })

  it('R-47: awaits the delegate with issuer and credentials, and fails if it fails', async () => {
    as.settings.registrationMethod = 'client_secret_post'
    const order: string[] = []
    let response: RegistrationResponse | undefined
    let release = () => {}
    const gate = new Promise<void>(resolve => {
      release = resolve
    })
    const pending = register({
      dynamicClientRegistration: {
        async responseDelegate(given, context) {
          expect(context.signal).to.equal(signal)
          response = given
          order.push('told')
          await gate
          order.push('kept')
        },
      },
    })
    await as.reached('/register')
    release()
    const { made, ctx } = await pending
    order.push('done')
    expect(order).to.deep.equal(['told', 'kept', 'done'])
    expect(response).to.include({ issuer: as.issuer, clientId: made.clientId, clientSecret: made.clientSecret })
    expect(response?.tokenEndpointAuthMethod).to.equal('client_secret_post')
    expect(ctx.events.map(({ type }) => type)).to.deep.equal(['registered'])
    const cause = new Error('disk full')
    const responseDelegate = () => Promise.reject(cause)
    const failed = await failure(register({ dynamicClientRegistration: { responseDelegate } }))
    expect([failed.code, failed.cause]).to.deep.equal(['registration_callback_failed', cause])
  })

  it('R-49: reports status, error, description and request of a rejection, and allows another attempt', async () => {
    const body = { error: 'invalid_redirect_uri', error_description: 'no loopback\u001b[31m here' }
    as.settings.registration = { status: 400, body }
    const metadata = { software_statement: 'signed.by.someone' }
    const refused = await failure(register({ dynamicClientRegistration: { metadata } }))
    if (!(refused instanceof RegistrationRejectedError)) throw refused
    expect(refused).to.include({
      code: 'registration_rejected',
      status: 400,
      error: 'invalid_redirect_uri',
      retryable: false,
    })
    expect(refused.message).to.include(REDIRECT).and.include('native').and.include('applicationType')
    expect(refused.errorDescription).to.include('no loopback')
    expect(refused.message + refused.errorDescription).to.not.include('\u001b')
    expect(refused.submitted).to.deep.include({ redirect_uris: [REDIRECT], application_type: 'native' })
    expect(inspect(refused, { depth: 9 })).to.not.include('signed.by.someone')
    as.settings.registration = 'on'
    const { made } = await register({ redirectUri: 'https://desk.example/back' })
    expect(made.redirectUri).to.equal('https://desk.example/back')
  })

  it('R-49: rejects an invalid response without showing echoed secrets', async () => {
    const initialAccessToken = 'initial-token-value'
    const answers: [number, unknown][] = [
      [201, { client_name: 'no id' }],
      [201, 'plain text'],
      [204, undefined],
      [500, 'boom'],
      [401, { error: `Bearer ${initialAccessToken}` }],
    ]
    const seen = []
    for (const [status, body] of answers) {
      as.settings.registration = { status, body }
      const refused = await failure(register({ dynamicClientRegistration: { initialAccessToken } }))
      seen.push([refused.code, refused.retryable])
      expect(inspect(refused, { depth: 9 }) + JSON.stringify(refused)).to.not.include(initialAccessToken)
    }
    expect(seen.map(([code]) => code)).to.deep.equal(Array(5).fill('registration_rejected'))
    expect(seen.map(([, retryable]) => retryable)).to.deep.equal([false, false, false, true, false])
  })

  it('R-49: sends nothing without a registration endpoint', async () => {
    as.settings.registration = 'off'
    const none = await failure(register())
    expect(none).to.be.instanceOf(AuthError).and.include({ code: 'client_information_required' })
  })
})
