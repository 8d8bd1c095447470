// Tests token requests: parameters, response validation, retries and errors.

import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import type { ClientIdentity, ServerInfo } from '../../client/stores.ts'
import { requestToken, revokeToken, type TokenRequest } from '../../client/token-endpoint.ts'
import { selectCases } from '../support/thorough.ts'
import { type TestContext, testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { startFakeAuthorizationServer } from './support/fake-authorization-server.ts'
import { type FakeAuthorizationServer, type Fault, startFakeServers, stopServers } from './support/fake-servers.ts'

const { signal } = new AbortController()
const SECRET = 'service-secret-value'

let as: FakeAuthorizationServer
let server: ServerInfo
beforeEach(async () => {
  as = (await startFakeServers()).as
  as.addClient({ client_id: 'service', client_secret: SECRET })
  server = await discoverServer(testContext(), as.issuer, false, signal)
})
afterEach(stopServers)

const clientOf = (source: ClientIdentity['source'] = 'configured'): ClientIdentity => ({
  source,
  issuer: server.issuer,
  clientId: 'service',
  clientSecret: SECRET,
})

function ask(more: Partial<TokenRequest> = {}, ctx: TestContext = testContext(), stop = signal) {
  const request = { server, client: clientOf(), grantType: 'client_credentials', parameters: {}, ...more }
  return requestToken(ctx, request, stop)
}

const NEVER_ISSUED = 'never-issued-refresh-token'
const refreshing: Partial<TokenRequest> = {
  grantType: 'refresh_token',
  parameters: { refresh_token: NEVER_ISSUED },
}

/** The result of a first response: the error's code, whether it is temporary, and the number of requests sent. */
async function outcome(fault: Fault, more: Partial<TokenRequest> = {}) {
  // Each has its own server, so that the delays of retries run at the same time.
  const own = await startFakeAuthorizationServer()
  own.addClient({ client_id: 'service', client_secret: SECRET })
  own.failNext('/token', fault)
  const request = { ...more, server: { ...server, tokenEndpoint: `${own.url}/token` } }
  const result = await ask(request, testContext(), new AbortController().signal).then(
    () => 'token',
    (error: { code: string; retryable: boolean }) => `${error.code}${error.retryable ? ' (may pass)' : ''}`,
  )
  return `${result}, ${own.count('/token')} sent`
}

type Case = readonly [name: string, fault: Fault]
async function outcomes(cases: readonly Case[], more: Partial<TokenRequest> = {}): Promise<Record<string, string>> {
  const found = cases.map(async ([name, fault]) => [name, await outcome(fault, more)] as const)
  return Object.fromEntries(await Promise.all(found))
}
const sameFor = (cases: readonly Case[], expected: string) =>
  Object.fromEntries(cases.map(([name]) => [name, expected]))

describe('Token endpoint', () => {
  it('R-63: sends a form by POST that accepts JSON, without empty values or redirects', async () => {
    await ask({ parameters: { scope: 'read', resource: 'https://MCP.example:443/a', audience: undefined } })
    const { method, headers, form } = as.to('/token')[0] ?? expect.fail('no request')
    expect(method).to.equal('POST')
    expect(headers).to.include({ accept: 'application/json' })
    expect(headers['content-type']).to.match(/^application\/x-www-form-urlencoded/)
    expect(Object.fromEntries(form)).to.deep.equal({
      grant_type: 'client_credentials',
      scope: 'read',
      resource: 'https://MCP.example:443/a',
    })
    as.failNext('/token', { status: 307, headers: { location: `${as.url}/elsewhere` } })
    expect((await failure(ask())).code).to.equal('malformed_response')
    expect(as.count('/elsewhere')).to.equal(0)
    const { tokenEndpoint: _, ...without } = server
    expect((await failure(ask({ server: without }))).code).to.equal('invalid_server_metadata')
    const plain = { ...server, tokenEndpoint: 'http://as.example/token' }
    expect((await failure(ask({ server: plain }))).code).to.equal('insecure_endpoint')
  })

  it('R-67: requires token_type Bearer or DPoP, in any letter case', async () => {
    for (const token_type of ['Bearer', 'bearer', 'BEARER']) {
      as.settings.tokenAnswer = { token_type }
      expect((await ask()).tokenType).to.equal('Bearer')
    }
    for (const token_type of [undefined, null, '', 'mac', 'N_A', 7]) {
      as.settings.tokenAnswer = { token_type }
      expect((await failure(ask())).code, String(token_type)).to.equal('malformed_response')
    }
    as.settings.tokenAnswer = { access_token: undefined }
    expect((await failure(ask())).code).to.equal('malformed_response')
    as.settings.tokenAnswer = { access_token: { not: 'text' } }
    expect((await failure(ask())).code).to.equal('malformed_response')
  })

  it('R-68: tolerates nonstandard responses, and never stores an ID token', async () => {
    const table: [string, Record<string, unknown>, Record<string, unknown>][] = [
      ['expires_in as text', { expires_in: '3600' }, { expiresIn: 3600 }],
      ['expires_in null', { expires_in: null }, { expiresIn: undefined }],
      ['expires_in absent', { expires_in: undefined }, { expiresIn: undefined }],
      ['expires_in nonsense', { expires_in: 'soon' }, { expiresIn: undefined }],
      ['expires_in negative', { expires_in: -1 }, { expiresIn: undefined }],
      ['expires_in 0', { expires_in: 0 }, { expiresIn: 0 }],
      ['expires_in past every date', { expires_in: 1e20 }, { expiresIn: 1e10 }],
      ['expires_in of 400 digits', { expires_in: '9'.repeat(400) }, { expiresIn: 1e10 }],
      ['scope null', { scope: null }, { scope: undefined }],
      ['scope empty', { scope: '' }, { scope: undefined }],
      ['empty refresh_token', { refresh_token: '' }, { refreshToken: undefined }],
      ['null refresh_token', { refresh_token: null }, { refreshToken: undefined }],
      ['error null', { error: null, error_description: null }, { tokenType: 'Bearer' }],
      ['odd id_token', { id_token: 17 }, { tokenType: 'Bearer' }],
    ]
    for (const [name, answer, expected] of table) {
      as.settings.tokenAnswer = answer
      expect(await ask(), name).to.include(expected)
    }
    as.settings.tokenAnswer = { id_token: 'a.b.c' }
    as.settings.tokenStatus = 201
    expect(await ask()).to.have.all.keys('accessToken', 'tokenType', 'expiresIn', 'refreshToken', 'scope')
  })

  it('refuses tokens and scopes with characters outside of visible ASCII (RFC 6749, appendix A)', async () => {
    for (const name of ['access_token', 'refresh_token', 'scope'])
      for (const text of [
        'a\r\nSet-Cookie: b',
        'a\u001b]0;title\u0007',
        'a\u009b2J',
        'caf\u00e9',
        'a\u202eb',
        'a\tb',
      ]) {
        as.settings.tokenAnswer = { [name]: text }
        const refused = await failure(ask())
        expect(refused.code, `${name} ${JSON.stringify(text)}`).to.equal('malformed_response')
        expect(refused.message).to.include(`characters in ${name}`).and.not.include(text)
      }
    as.settings.tokenAnswer = { scope: 'read "all" \\ write' }
    expect((await ask()).scope).to.equal('read "all" \\ write')
  })

  it('R-69: treats 200 with an error as an error', async () => {
    const body = { error: 'bad_verification_code', error_description: 'The code passed is incorrect or expired.' }
    as.failNext('/token', { status: 200, body })
    const refused = await failure(ask())
    expect([refused.code, refused.retryable]).to.deep.equal(['bad_verification_code', false])
    expect(refused.message).to.include('incorrect or expired')
    expect(
      await outcome({ status: 200, body: { error: 'invalid_grant', access_token: 'x', token_type: 'Bearer' } }),
    ).to.equal('invalid_grant, 1 sent')
  })

  it('R-70: OAuth error codes are permanent; other statuses and lost connections are temporary', async () => {
    const json = (error: unknown) => ({ error, error_description: null })
    const permanent: Case[] = [
      ['invalid_grant', { status: 400, body: json('invalid_grant') }],
      ['invalid_client', { status: 401, body: json('invalid_client') }],
      ['tenant_suspended', { status: 400, body: json('tenant_suspended') }],
    ]
    for (const [code, fault] of permanent) expect(await outcome(fault)).to.equal(`${code}, 1 sent`)
    expect(await outcome({ status: 500, body: json('invalid_grant') })).to.equal('invalid_grant, 1 sent')
    const temporary: Case[] = [
      ['503', { status: 503, body: 'down' }],
      ['500 server_error', { status: 500, body: json('server_error') }],
      ['400 temporarily_unavailable', { status: 400, body: json('temporarily_unavailable') }],
      ['408', { status: 408 }],
      ['429 with a text', { status: 429, body: json('rate_limit_exceeded') }],
      ['403 of a gateway', { status: 403, body: '<html>blocked</html>' }],
      ['403 "Forbidden"', { status: 403, body: json('Forbidden') }],
      ['400 error is an object', { status: 400, body: json({ code: 1 }) }],
      ['200 of a captive portal', { status: 200, body: '<html>welcome</html>' }],
      ['reset before the body', { reset: 'before-body' }],
      ['reset after the body', { reset: 'after-body' }],
    ]
    expect(await outcomes(temporary)).to.deep.equal(sameFor(temporary, 'token, 2 sent'))
  })

  it('R-70: gives up after two retries, and retries a refresh after a refused connection', async () => {
    as.failNext('/token', { status: 503, body: 'down for maintenance' }, 3)
    let attempts = 0
    const own = await startFakeAuthorizationServer()
    const flaky: typeof fetch = (input, init) => {
      if (++attempts > 2) return fetch(input, init)
      return Promise.reject(
        new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }) }),
      )
    }
    own.addClient({ client_id: 'service', client_secret: SECRET })
    const request = { ...refreshing, server: { ...server, tokenEndpoint: `${own.url}/token` } }
    const [away, refused] = await Promise.all([failure(ask()), failure(ask(request, testContext({ fetch: flaky })))])
    expect([away.code, away.retryable, as.count('/token')]).to.deep.equal(['temporarily_unavailable', true, 3])
    expect(away.message).to.include('HTTP 503 (no content type, 20 bytes)').and.not.include('maintenance')
    expect([refused.code, attempts]).to.deep.equal(['invalid_grant', 3])
  })

  it('R-70: does not retry a refresh token, code or assertion after a lost connection', async () => {
    const lost = 'temporarily_unavailable (may pass), 1 sent'
    const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    for (const grantType of ['refresh_token', 'authorization_code', jwtBearer]) {
      const more = { grantType, parameters: { refresh_token: NEVER_ISSUED, code: 'c0de', assertion: 'a.b.c' } }
      for (const reset of ['after-body', 'after-processing'] as const) {
        expect(await outcome({ reset }, more), `${grantType} ${reset}`).to.equal(lost)
      }
    }
    expect(await outcome({ status: 503 }, { sendOnce: true })).to.equal(lost)
  })

  it('R-70: retries single-use credentials only if the server certainly did not process them', async () => {
    const json = (error: string) => ({ error })
    const cutOff = (response: ServerResponse) => {
      response.write('{"access_token":"half-a-tok')
      setImmediate(() => response.destroy())
    }
    const once: Case[] = [
      ['200, JSON cut off', { status: 200, body: '{"access_token":"half' }],
      ['200, empty', { status: 200 }],
      ['200, a page', { status: 200, body: '<html>' }],
      ['200, the connection breaks', { status: 200, stream: cutOff }],
      ['200, no token in it', { status: 200, body: {} }],
      ['200 with a nonce wanted', { status: 200, headers: { 'dpop-nonce': 'n' }, body: json('use_dpop_nonce') }],
      ['204', { status: 204 }],
      ['202', { status: 202, body: { access_token: 'x', token_type: 'Bearer' } }],
      ['500', { status: 500 }],
      ['500 server_error', { status: 500, body: json('server_error') }],
      ['502', { status: 502 }],
      ['503', { status: 503 }],
      ['504', { status: 504 }],
      ['502 with a time', { status: 502, headers: { 'retry-after': '0' } }],
    ]
    const again: Case[] = [
      ['429', { status: 429 }],
      ['408', { status: 408 }],
      ['403 of a gateway', { status: 403, body: '<html>' }],
      ['503 with a time', { status: 503, headers: { 'retry-after': '0' } }],
      ['503 temporarily_unavailable', { status: 503, body: json('temporarily_unavailable') }],
    ]
    const parameters = { refresh_token: NEVER_ISSUED, code: 'c0de', assertion: 'a.b.c', device_code: 'dev1ce' }
    const single = [
      'refresh_token',
      'authorization_code',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
      'urn:ietf:params:oauth:grant-type:device_code',
    ]
    await Promise.all(
      single.map(async (grantType, index) => {
        const isSampled = index > 0
        const [lost, rejected] = [once, again].map(cases => (isSampled ? selectCases(cases, 2) : cases)) as [
          Case[],
          Case[],
        ]
        const results = await outcomes([...lost, ...rejected], { grantType, parameters })
        const sent = Object.entries(results).map(([name, text]) => [name, text.match(/\d+ sent$/)?.[0]])
        const expected = { ...sameFor(lost, '1 sent'), ...sameFor(rejected, '2 sent') }
        expect(Object.fromEntries(sent), grantType).to.deep.equal(expected)
      }),
    )
    // Another token does no harm to a client that asks for itself.
    const names = ['200, JSON cut off', '200, empty', '204', '500', '502', '504']
    const repeatable = once.filter(([name]) => names.includes(name))
    expect(await outcomes(repeatable)).to.deep.equal(sameFor(repeatable, 'token, 2 sent'))
  })

  it('R-70: waits for Retry-After, and stops on abort', async () => {
    const leaving = new AbortController()
    as.failNext('/token', { status: 429, headers: { 'Retry-After': '3600' } })
    const left = failure(ask({}, testContext(), leaving.signal))
    await as.reached('/token')
    leaving.abort()
    expect((await left).code).to.equal('aborted')
    expect(as.count('/token')).to.equal(1)
    as.failNext('/token', { status: 503, headers: { 'Retry-After': '0' } })
    expect((await ask()).tokenType).to.equal('Bearer')
  })

  it('R-71: reads at most 64 KiB, and shows errors truncated without control characters', async () => {
    as.failNext('/token', { status: 200, body: `{"access_token":"x","padding":"${'y'.repeat(70_000)}"}` })
    expect((await failure(ask({ sendOnce: true }))).code).to.equal('malformed_response')
    const noise = `\u001b]0;owned\u0007\r\n\u202e${'z'.repeat(5_000)}`
    for (const fault of [
      { status: 400, body: { error: 'invalid_scope', error_description: noise } },
      { status: 502, body: { error: 'server_error', error_description: noise } },
    ]) {
      as.failNext('/token', fault)
      const { message } = await failure(ask({ sendOnce: true }))
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that they are gone is the point
      expect(message).to.not.match(/[\u0000-\u001f\u202e]/)
      expect(message).to.include('owned')
      expect(message.length).to.be.below(900)
    }
  })

  it('R-97: redacts secrets that the server echoes in errors', async () => {
    const secrets = ['the-code-1', 'the-verifier-2', 'the-refresh-3', 'the-assertion-4', SECRET]
    const parameters = { code: secrets[0], code_verifier: secrets[1], refresh_token: secrets[2], assertion: secrets[3] }
    const basic = btoa(`service:${SECRET}`)
    const echo = `${secrets.join(' & ')} ${basic} ${encodeURIComponent(SECRET)}`
    for (const fault of [
      { status: 400, body: { error: 'invalid_grant', error_description: echo } },
      { status: 400, body: { error: `x${secrets[2]}` } },
      { status: 400, body: { error: secrets[2] } },
      { status: 500, body: echo },
      { status: 200, body: { access_token: 'granted-5', echo } },
    ]) {
      as.failNext('/token', fault)
      const error = await failure(ask({ parameters, sendOnce: true }))
      const shown = [error.message, error.stack, inspect(error, { depth: 9 }), JSON.stringify(error), error.code].join()
      for (const secret of [...secrets, basic, 'granted-5']) {
        expect(shown).to.not.include(secret)
      }
    }
  })

  it('R-48: the advice for a rejected client depends on its origin', async () => {
    as.forgetClients()
    const fixes = []
    for (const source of ['configured', 'metadata-document', 'registered'] as const) {
      const refused = await failure(ask({ client: clientOf(source) }))
      expect(refused.code).to.equal('invalid_client')
      fixes.push(refused.fix)
    }
    expect(fixes[0]).to.include('check clientId')
    expect(fixes[1]).to.include('metadata document')
    expect(fixes[2]).to.include('register the client again')
  })

  it('R-52: names the option to change for a rejected resource', async () => {
    as.settings.resources = ['https://known.example']
    const refused = await failure(ask({ parameters: { resource: 'https://other.example' } }))
    expect(refused.code).to.equal('invalid_target')
    expect(refused.fix).to.include('resourceIndicator')
  })

  it('R-84: authenticates revocation, skips it if unsupported, and reports failures', async () => {
    as.settings.refreshTokens = 'rotating'
    const { accessToken } = await ask()
    const ctx = testContext()
    const revoke = (at: ServerInfo) => revokeToken(ctx, at, clientOf(), accessToken, 'access_token', signal)
    await revoke(server)
    const { form, headers } = as.to('/revoke')[0] ?? expect.fail('no request')
    expect(Object.fromEntries(form)).to.deep.equal({ token: accessToken, token_type_hint: 'access_token' })
    expect(headers.authorization).to.match(/^Basic /)
    const { revocationEndpoint: _, ...without } = server
    await revoke(without)
    expect(as.count('/revoke')).to.equal(1)
    as.failNext('/revoke', { status: 503, body: accessToken })
    const away = await failure(revoke(server))
    expect([away.code, away.retryable]).to.deep.equal(['temporarily_unavailable', true])
    as.failNext('/revoke', { status: 400, body: { error: 'unsupported_token_type' } })
    const refused = await failure(revoke(server))
    expect([refused.code, refused.retryable]).to.deep.equal(['unsupported_token_type', false])
    expect(inspect([away, refused], { depth: 9 })).to.not.include(accessToken)
  })

  it('clientAuthentication replaces every other method', async () => {
    const options: Partial<ClientOAuthOptions> = {
      clientAuthentication({ headers, client, body, server: at }) {
        expect([at.issuer, body.get('grant_type')]).to.deep.equal([as.issuer, 'client_credentials'])
        headers.set('authorization', `Basic ${btoa(`${client.clientId}:${SECRET}`)}`)
      },
    }
    const { clientSecret: _, ...client } = clientOf()
    expect((await ask({ client }, testContext(options))).tokenType).to.equal('Bearer')
  })
})
