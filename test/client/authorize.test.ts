// Tests the authorization request and the validation of the authorization response.

import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { readAuthorizationResponse, requestAuthorization, startAuthorization } from '../../client/authorize.ts'
import { AuthError, InteractionRequiredError } from '../../client/errors.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import {
  type ClientIdentity,
  createMemoryFlowStore,
  FLOW_LIFETIME_MS,
  type FlowRecord,
  type ServerInfo,
} from '../../client/stores.ts'
import { requestToken } from '../../client/token-endpoint.ts'
import { testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { authorize, startFakeServers, stopServers } from './support/fake-servers.ts'

const REDIRECT = 'http://127.0.0.1:8765/callback'
const ISSUER = 'https://as.example/tenant'
const { signal } = new AbortController()
afterEach(stopServers)

const SERVER: ServerInfo = {
  listed: ISSUER,
  issuer: ISSUER,
  authorizationEndpoint: `${ISSUER}/authorize?tenant=a%20b&keep=1`,
  tokenEndpoint: `${ISSUER}/token`,
  issParameterSupported: true,
  clientIdMetadataDocumentSupported: false,
  pkceS256: true,
  oidc: false,
  legacy: false,
  metadataUrl: undefined,
}
const CLIENT: ClientIdentity = { source: 'configured', issuer: ISSUER, clientId: 'client' }
const ABOUT = { client: CLIENT, resource: 'https://mcp.example/mcp', scope: 'read write', key: 'key-1' }

async function begin(
  options: Partial<ClientOAuthOptions> = {},
  server: Partial<ServerInfo> = {},
  about: Partial<Parameters<typeof startAuthorization>[1]> = {},
) {
  const ctx = testContext({ serverUrl: 'https://mcp.example/mcp', ...options }, { now: () => 5 })
  const flow = await startAuthorization(ctx, { ...ABOUT, server: { ...SERVER, ...server }, ...about })
  return { ctx, ...flow, query: Object.fromEntries(flow.url.searchParams) }
}

/** The code of an AuthError that a synchronous step throws. */
function codeOf(work: () => unknown): { code: string; message: string; shown: string } {
  try {
    work()
  } catch (thrown) {
    if (!AuthError.is(thrown)) throw thrown
    return { code: thrown.code, message: thrown.message, shown: inspect(thrown, { depth: 9 }) }
  }
  throw new Error('nothing was thrown')
}

describe('Authorization request', () => {
  it('R-50: always uses PKCE with S256 and 32 random bytes', async () => {
    const { query, record } = await begin()
    expect(Buffer.from(record.codeVerifier, 'base64url')).to.have.length(32)
    const challenge = createHash('sha256').update(record.codeVerifier).digest('base64url')
    expect(query).to.include({ response_type: 'code', code_challenge_method: 'S256', code_challenge: challenge })
    expect(inspect(query)).to.not.include(record.codeVerifier)
  })

  it('R-51: uses a new state and verifier each time', async () => {
    const flows = await Promise.all(Array.from({ length: 50 }, () => begin()))
    expect(new Set(flows.map(({ record }) => record.state))).to.have.property('size', 50)
    expect(new Set(flows.map(({ record }) => record.codeVerifier))).to.have.property('size', 50)
    for (const { query, record } of flows) expect(query['state']).to.equal(record.state)
  })

  it('R-52: sends the resource byte for byte, or omits it if there is none', async () => {
    for (const resource of ['https://mcp.example', 'https://MCP.example:443/a%2Fb', 'https://mcp.example/mcp/']) {
      const { query, record } = await begin({}, {}, { resource })
      expect([query['resource'], record.resource]).to.deep.equal([resource, resource])
    }
    expect((await begin({}, {}, { resource: undefined })).query).to.not.have.property('resource')
  })

  it('R-53: omits the scope parameter if no scope is requested', async () => {
    expect((await begin()).query['scope']).to.equal('read write')
    expect((await begin({}, {}, { scope: undefined })).query).to.not.have.property('scope')
  })

  it('R-54: adds prompt=consent for offline_access at an OpenID provider, unless set by the caller', async () => {
    const scope = 'read offline_access'
    expect((await begin({}, { oidc: true }, { scope })).query['prompt']).to.equal('consent')
    expect((await begin({}, { oidc: false }, { scope })).query).to.not.have.property('prompt')
    expect((await begin({}, { oidc: true }, { scope: 'read' })).query).to.not.have.property('prompt')
    const additionalAuthorizationParameters = { prompt: 'login' }
    expect((await begin({ additionalAuthorizationParameters }, { oidc: true }, { scope })).query['prompt']).to.equal(
      'login',
    )
  })

  it('R-55: stores all expected response values in one plain JSON record', async () => {
    const { record, url } = await begin(
      {},
      {},
      { resourceMetadataUrl: 'https://mcp.example/prm', requestedScope: 'read' },
    )
    expect(record).to.deep.include({
      v: 1,
      issuer: ISSUER,
      issParameterSupported: true,
      redirectUri: REDIRECT,
      resource: ABOUT.resource,
      scope: 'read write',
      requestedScope: 'read',
      resourceMetadataUrl: 'https://mcp.example/prm',
      client: CLIENT,
      key: 'key-1',
      createdAt: 5,
    })
    expect(record.server.tokenEndpoint).to.equal(SERVER.tokenEndpoint)
    expect(url.searchParams.get('state')).to.equal(record.state)
    const copy: FlowRecord = JSON.parse(JSON.stringify(record))
    expect(JSON.parse(JSON.stringify(copy))).to.deep.equal(copy)
    expect(Object.keys(copy)).to.include.members(['state', 'codeVerifier', 'server', 'client'])
  })

  it('R-56: keeps the query of the endpoint, appends extra parameters and rejects reserved names', async () => {
    const { url, query } = await begin({ additionalAuthorizationParameters: { audience: 'api', login_hint: 'a&b=c' } })
    expect(query).to.include({ tenant: 'a b', keep: '1', audience: 'api', login_hint: 'a&b=c', client_id: 'client' })
    expect([...url.searchParams.keys()].slice(-2)).to.deep.equal(['audience', 'login_hint'])
    expect([...url.searchParams.keys()].slice(0, 2)).to.deep.equal(['tenant', 'keep'])
    // What is ours is there once, whatever the endpoint's query says (RFC 6749 §3.1).
    const twice = await begin({}, { authorizationEndpoint: `${ISSUER}/authorize?client_id=old&state=old` })
    expect(twice.url.searchParams.getAll('client_id')).to.deep.equal(['client'])
    expect(twice.url.searchParams.getAll('state')).to.deep.equal([twice.record.state])
    const reserved = ['client_id', 'redirect_uri', 'response_type', 'code_challenge', 'code_challenge_method', 'state']
    for (const name of [...reserved, 'resource', 'scope']) {
      expect(() => testContext({ additionalAuthorizationParameters: { [name]: 'x' } }), name).to.throw(AuthError, name)
    }
  })

  it('R-35: opens only authorization URLs that the network policy allows', async () => {
    const refused = async (authorizationEndpoint: string | undefined) =>
      (await failure(begin({}, { authorizationEndpoint }))).code
    expect(await refused('http://as.example/authorize')).to.equal('insecure_endpoint')
    expect(await refused('http://127.0.0.1:6379/')).to.equal('blocked_address')
    expect(await refused('javascript:alert(1)')).to.equal('insecure_endpoint')
    expect(await refused(undefined)).to.equal('invalid_server_metadata')
  })
})

describe('Authorization response', () => {
  const respond = (record: FlowRecord, more: Record<string, string | undefined> = {}) => {
    const url = new URL(record.redirectUri)
    const parameters = { code: 'the-code-itself', state: record.state, iss: record.issuer, ...more }
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
    return url
  }

  it('R-57: accepts a URL, a string, parameters or separate values', async () => {
    const { ctx, record } = await begin()
    const url = respond(record)
    const parts = { code: 'the-code-itself', state: record.state, iss: ISSUER }
    for (const given of [url, url.href, url.searchParams, parts]) {
      expect(readAuthorizationResponse(ctx, record, given)).to.equal('the-code-itself')
      expect(ctx.events, 'checked').to.deep.equal([])
    }
  })

  it('R-57: checks state, issuer, error and code in order, and shows nothing before both match', async () => {
    const { ctx, record } = await begin()
    const error = { error: 'access_denied', error_description: 'EVIL WORDS', code: undefined }
    const evil = 'https://evil.example'
    const cases: [Record<string, string | undefined>, string][] = [
      [{ ...error, state: 'EVIL STATE', iss: evil }, 'state_mismatch'],
      [{ ...error, state: undefined }, 'state_mismatch'],
      [{ ...error, iss: evil }, 'issuer_mismatch'],
      [{ iss: evil }, 'issuer_mismatch'],
      [{ response: 'a.signed.one', code: undefined }, 'malformed_response'],
      [{ code: undefined }, 'malformed_response'],
      [{ code: '' }, 'malformed_response'],
    ]
    for (const [more, code] of cases) {
      const refused = codeOf(() => readAuthorizationResponse(ctx, record, respond(record, more)))
      expect(refused.code, JSON.stringify(more)).to.equal(code)
      expect(refused.shown).to.not.match(/EVIL|evil\.example|the-code-itself/)
    }
    const denied = codeOf(() => readAuthorizationResponse(ctx, record, respond(record, error)))
    expect(denied.code).to.equal('access_denied')
    expect(denied.message).to.include('EVIL WORDS').and.include('log in again')
    const twoErrors = { error: 'access_denied', code: 'the-code-itself' }
    expect(codeOf(() => readAuthorizationResponse(ctx, record, respond(record, twoErrors))).code).to.equal(
      'access_denied',
    )
  })

  it('R-57: shows error descriptions without control characters and secrets', async () => {
    const { ctx, record } = await begin()
    const description = `\u001b[2J\n${record.codeVerifier} ${'x'.repeat(2000)}`
    const more = { error: 'server_error', error_description: description, code: undefined }
    const { message } = codeOf(() => readAuthorizationResponse(ctx, record, respond(record, more)))
    expect(message).to.include('[redacted]').and.not.include(record.codeVerifier)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that they are gone is the point
    expect(message).to.not.match(/[\u0000-\u001f]/)
    expect(message.length).to.be.below(800)
  })

  it('R-58: compares iss exactly, in every combination with the metadata (mix-up)', async () => {
    const table: [advertised: boolean, iss: string | undefined, passes: boolean][] = [
      [true, ISSUER, true],
      [false, ISSUER, true],
      [false, undefined, true],
      [true, undefined, false],
      [true, 'https://evil.example', false],
      [false, 'https://evil.example', false],
      [true, `${ISSUER}/`, false],
      [true, 'https://as.example:443/tenant', false],
      [true, 'https://AS.example/tenant', false],
      [false, '', false],
    ]
    for (const [issParameterSupported, iss, passes] of table) {
      const { ctx, record } = await begin({}, { issParameterSupported })
      const read = () => readAuthorizationResponse(ctx, record, respond(record, { iss }))
      const given = new URL(respond(record))
      if (iss === undefined) given.searchParams.delete('iss')
      if (passes)
        expect(readAuthorizationResponse(ctx, record, iss === undefined ? given : respond(record, { iss }))).to.equal(
          'the-code-itself',
        )
      else
        expect(codeOf(iss === undefined ? () => readAuthorizationResponse(ctx, record, given) : read).code).to.equal(
          'issuer_mismatch',
        )
    }
  })

  it('R-59: rejects a duplicate parameter, even with equal values', async () => {
    const { ctx, record } = await begin()
    for (const name of ['code', 'state', 'iss', 'error', 'error_description']) {
      const url = respond(record, name.startsWith('error') ? { [name]: 'x' } : {})
      url.searchParams.append(name, url.searchParams.get(name) ?? '')
      expect(codeOf(() => readAuthorizationResponse(ctx, record, url)).code, name).to.equal('malformed_response')
      expect(codeOf(() => readAuthorizationResponse(ctx, record, url.href)).code, name).to.equal('malformed_response')
    }
    // Parameters of the redirect URI itself are nobody's business.
    const own = respond(record)
    own.searchParams.append('tab', '1')
    own.searchParams.append('tab', '2')
    expect(readAuthorizationResponse(ctx, record, own)).to.equal('the-code-itself')
  })

  it('R-57: accepts a bare code with an event, and rejects it with strictResponse', async () => {
    const { ctx, record } = await begin()
    expect(readAuthorizationResponse(ctx, record, '4/0AbCd-bare')).to.equal('4/0AbCd-bare')
    expect(ctx.events.map(({ type }) => type)).to.deep.equal(['unchecked-response'])
    expect(ctx.secrets.scrub('said 4/0AbCd-bare')).to.equal('said [redacted]')
    const strict = await begin({ strictResponse: true })
    const refused = codeOf(() => readAuthorizationResponse(strict.ctx, strict.record, '4/0AbCd-bare'))
    expect(refused.code).to.equal('malformed_response')
    expect(refused.shown).to.not.include('4/0AbCd-bare')
    // A whole URL is never a code: this one has no state.
    expect(codeOf(() => readAuthorizationResponse(ctx, record, `${REDIRECT}?code=c`)).code).to.equal('state_mismatch')
  })

  it('R-60: redeems a code with the verifier, redirect URI and server of its record', async () => {
    const { as, rs } = await startFakeServers()
    as.addClient({ client_id: 'client', redirect_uris: [REDIRECT] })
    const endpoints = { authorizationEndpoint: `${as.url}/authorize`, tokenEndpoint: `${as.url}/token` }
    const server = { ...SERVER, ...endpoints, issuer: as.issuer }
    const { ctx, url, record } = await begin({ serverUrl: rs.serverUrl }, server, { resource: rs.serverUrl })
    const code = readAuthorizationResponse(ctx, record, await authorize(url))
    const kept: FlowRecord = JSON.parse(JSON.stringify(record))
    const parameters = {
      code,
      code_verifier: kept.codeVerifier,
      redirect_uri: kept.redirectUri,
      resource: kept.resource,
    }
    const request = { server: kept.server, client: kept.client, grantType: 'authorization_code', parameters }
    expect(await requestToken(ctx, request, signal)).to.include({ tokenType: 'Bearer', scope: 'read write' })
    expect(as.to('/token')[0]?.form.get('resource')).to.equal(rs.serverUrl)
    expect((await failure(requestToken(ctx, request, signal))).code).to.equal('invalid_grant')
  })
})

describe('User interaction', () => {
  const ask = async (options: Partial<ClientOAuthOptions>, stop = signal) => {
    const { ctx, url, record } = await begin(options)
    return requestAuthorization(ctx, { url, record }, stop)
  }
  const answer = (url: URL) =>
    new URL(`${REDIRECT}?code=c0de&state=${url.searchParams.get('state')}&iss=${encodeURIComponent(ISSUER)}`)

  it('passes URL, redirect URI and signal to the delegate, and to the callback handler', async () => {
    let seen: unknown[] = []
    const delegate = await ask({
      async authorizationRedirectDelegate(url, redirectUri, context) {
        seen = [url.host, redirectUri, context.signal.aborted]
        return answer(url)
      },
    })
    expect([delegate, seen]).to.deep.equal(['c0de', ['as.example', REDIRECT, false]])
    const handler = await ask({
      async authorizationCallbackHandler({ authorizationUri, redirectUri }) {
        expect(redirectUri).to.equal(REDIRECT)
        return { code: 'c1', state: authorizationUri.searchParams.get('state') ?? '', iss: ISSUER }
      },
    })
    expect(handler).to.equal('c1')
  })

  it('reports separate error codes for no response, delegate errors, login timeout and abort', async () => {
    for (const nothing of [null, undefined, '']) {
      expect((await failure(ask({ authorizationRedirectDelegate: async () => nothing }))).code).to.equal(
        'access_denied',
      )
    }
    const cause = new TypeError('no display')
    const thrown = await failure(ask({ authorizationRedirectDelegate: () => Promise.reject(cause) }))
    expect([thrown.code, thrown.cause]).to.deep.equal(['login_failed', cause])
    const sync = () => {
      throw cause
    }
    expect((await failure(ask({ authorizationRedirectDelegate: sync }))).code).to.equal('login_failed')
    const own = new AuthError('mine', { code: 'login_timeout', fix: 'wait longer' })
    expect(await failure(ask({ authorizationRedirectDelegate: () => Promise.reject(own) }))).to.equal(own)
    let told: AbortSignal | undefined
    const never = (_url: URL, _redirectUri: string, context: { signal: AbortSignal }) => {
      told = context.signal
      return new Promise<null>(() => {})
    }
    const late = await failure(ask({ authorizationRedirectDelegate: never, loginTimeoutMs: 5 }))
    expect([late.code, told?.aborted]).to.deep.equal(['login_timeout', true])
    expect(late.message).to.include('loginTimeoutMs')
    const leaving = new AbortController()
    const shown = new Promise<void>(resolve => {
      const authorizationRedirectDelegate = () => {
        resolve()
        return new Promise<null>(() => {})
      }
      void ask({ authorizationRedirectDelegate }, leaving.signal).catch(error => left.push(error))
    })
    const left: AuthError[] = []
    await shown
    leaving.abort()
    await new Promise(setImmediate)
    expect(left.map(({ code }) => code)).to.deep.equal(['aborted'])
    expect((await failure(ask({ authorizationRedirectDelegate: never }, AbortSignal.abort()))).code).to.equal('aborted')
  })

  it('R-62: keeps the login and throws its URL if deferred or without a delegate', async () => {
    for (const options of [{}, { interactive: 'defer', authorizationRedirectDelegate: async () => 'c' }] as const) {
      const flowStore = createMemoryFlowStore()
      const required = await failure(ask({ ...options, flowStore }))
      if (!(required instanceof InteractionRequiredError)) throw required
      expect(required.code).to.equal('interaction_required')
      expect(new URL(required.authorizationUrl).searchParams.get('state')).to.equal(required.state)
      const record = await flowStore.take(required.state)
      expect(record).to.include({ state: required.state, issuer: ISSUER, key: 'key-1' })
      expect(inspect(required, { depth: 9 })).to.not.include(record?.codeVerifier)
      expect(await flowStore.take(required.state)).to.equal(undefined)
    }
    const cause = new TypeError('disk full')
    const flowStore = { save: () => Promise.reject(cause), take: () => undefined }
    expect(await failure(ask({ flowStore }))).to.include({ code: 'cache_failed', cause })
  })
})

describe('Flow store', () => {
  it('R-55: returns a record once, expires it after ten minutes and keeps a thousand', async () => {
    let time = 1
    const { record } = await begin()
    const store = createMemoryFlowStore(() => time)
    store.save('a', record)
    expect([store.take('a'), store.take('a'), store.take('b')]).to.deep.equal([record, undefined, undefined])
    store.save('a', record)
    time = FLOW_LIFETIME_MS
    store.save('b', record)
    time = FLOW_LIFETIME_MS + 2
    expect([store.take('a'), store.take('b')]).to.deep.equal([undefined, record])
    for (let n = 0; n <= 1000; n++) store.save(`s${n}`, record)
    expect([store.take('s0'), store.take('s1'), store.take('s1000')]).to.deep.equal([undefined, record, record])
  })
})
