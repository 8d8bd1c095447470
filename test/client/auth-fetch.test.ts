// Tests the request loop of `createAuthFetch`: sent tokens, logins, retries and the storm breaker.
import { expect } from 'chai'
import { type AuthFetch, createAuthFetch, createMemoryTokenCache } from '../../client/index.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { REDIRECT_URI, startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

it('R-1: works as fetch with a string, a URL and a Request, and has its type', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const asFetch: typeof fetch = authFetch
  const init = { method: 'POST', body: '{}' }
  const responses = [
    await asFetch(fake.serverUrl, init),
    await asFetch(new URL(fake.serverUrl), init),
    await asFetch(new Request(fake.serverUrl, init)),
  ]
  expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 200])
  const echo = (await responses.at(-1)?.json()) as { body: string } | undefined
  expect(echo?.body).to.equal('{}')
})

it('R-2: sends a token only to the origin of serverUrl', async () => {
  const fake = await startFakeServers()
  const other = await startFakeServers()
  const { authFetch, post } = startClient(fake)
  await post()
  const response = await authFetch(other.serverUrl, { method: 'POST', body: '{}' })
  expect(response.status).to.equal(401)
  const elsewhere = [...other.rs.requests, ...fake.as.requests]
  const withToken = elsewhere.filter(({ headers }) => /^(?:Bearer|DPoP) /.test(headers.authorization ?? ''))
  expect(elsewhere.length).to.be.greaterThan(3)
  expect(withToken).to.deep.equal([])
  expect(fake.rs.requests.filter(({ path }) => path.startsWith('/.well-known')).length).to.equal(1)
})

it('R-2: requests metadata from the MCP server without a token', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  await post()
  const metadata = fake.rs.requests.filter(({ path }) => path.startsWith('/.well-known'))
  expect(metadata.map(({ headers }) => headers.authorization)).to.deep.equal([undefined])
})

it('R-3: sends the token in the Authorization header of every request, never in the query', async () => {
  const fake = await startFakeServers()
  const { post, get, authFetch } = startClient(fake)
  await post()
  await (await get()).body?.cancel()
  await authFetch(fake.serverUrl, { method: 'DELETE' })
  const admitted = fake.rs.requests.filter(({ status }) => status === 200 || status === 204)
  const protectedOnes = admitted.filter(({ path }) => path === '/mcp')
  expect(protectedOnes.map(({ method }) => method)).to.deep.equal(['POST', 'GET', 'DELETE'])
  for (const { headers, query } of protectedOnes) {
    expect(headers.authorization).to.match(/^Bearer .+/)
    expect([...query.keys()]).to.deep.equal([])
  }
})

it('R-4: sends a valid token with the first request, without discovery', async () => {
  const fake = await startFakeServers()
  const tokenCache = createMemoryTokenCache()
  await startClient(fake, { tokenCache }).post()
  fake.rs.requests.length = 0
  fake.as.requests.length = 0
  const response = await startClient(fake, { tokenCache }).post()
  expect(response.status).to.equal(200)
  expect(fake.rs.requests.map(({ path }) => path)).to.deep.equal(['/mcp'])
  expect(fake.as.requests).to.deep.equal([])
})

it('R-5: passes through an Authorization header of the caller, and its 401 response', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  const response = await post(undefined, { headers: { authorization: 'Bearer my-api-key' } })
  expect(response.status).to.equal(401)
  expect(fake.rs.requests.map(({ headers }) => headers.authorization)).to.deep.equal(['Bearer my-api-key'])
  expect(fake.as.requests).to.deep.equal([])
})

it('R-6: returns a 403 without insufficient_scope unchanged', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  await post()
  fake.rs.requests.length = 0
  fake.rs.failNext('/mcp', { status: 403, headers: { 'WWW-Authenticate': 'Bearer error="access_denied"' }, body: 'no' })
  const response = await post()
  expect([response.status, await response.text()]).to.deep.equal([403, 'no'])
  expect(fake.rs.count('/mcp')).to.equal(1)
  expect(fake.logins.length).to.equal(1)
})

it('R-7: fails with a list of schemes if no challenge is Bearer or DPoP', async () => {
  const fake = await startFakeServers()
  fake.rs.settings.challenges = ['Basic realm="x"', 'Negotiate']
  const error = await authErrorOf(() => startClient(fake).post())
  expect(error.code).to.equal('unsupported_challenge')
  expect(error.message)
    .to.match(/basic/i)
    .and.to.match(/negotiate/i)
  expect(fake.as.requests).to.deep.equal([])
})

it('R-7: uses well-known metadata after a 401 without a challenge', async () => {
  const fake = await startFakeServers()
  fake.rs.settings.challenges = []
  expect((await startClient(fake).post()).status).to.equal(200)
})

it('R-8: retries the same request with a new token', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const headers = { 'x-mine': 'yes', 'content-type': 'application/json', 'mcp-session-id': 's1' }
  await authFetch(`${fake.serverUrl}?a=1`, { method: 'POST', headers, body: '{"n":1}' })
  const [first, second] = fake.rs.to('/mcp')
  const strip = ({ authorization: _, ...rest }: Record<string, unknown>) => rest
  expect(first?.headers.authorization).to.equal(undefined)
  expect(second?.headers.authorization).to.match(/^Bearer /)
  expect(strip(second?.headers as never)).to.deep.equal(strip(first?.headers as never))
  expect([second?.method, second?.body, String(second?.query)]).to.deep.equal(['POST', '{"n":1}', 'a=1'])
})

for (const [name, body] of [
  ['URLSearchParams', () => new URLSearchParams({ a: '1' })],
  ['bytes', () => new TextEncoder().encode('a=1')],
  ['a Blob', () => new Blob(['a=1'])],
] as const) {
  it(`R-8: sends a body of type ${name} again`, async () => {
    const fake = await startFakeServers()
    const { post } = startClient(fake)
    expect((await post(undefined, { body: body() })).status).to.equal(200)
    expect(fake.rs.to('/mcp').map(request => request.body)).to.deep.equal(['a=1', 'a=1'])
  })
}

it('R-9: limits a permanently refused request to one login and two attempts', async () => {
  const fake = await startFakeServers()
  fake.rs.settings.mood = 'always-401'
  const { post } = startClient(fake)
  const response = await post()
  expect(response.status).to.equal(401)
  expect(await response.json()).to.deep.equal({ error: 'unauthorized' })
  expect([fake.logins.length, fake.as.count('/token'), fake.rs.count('/mcp')]).to.deep.equal([1, 1, 2])
})

it('R-9: limits a request to two step-ups if the server always requires more scopes', async () => {
  const fake = await startFakeServers()
  let asked = 0
  const { authFetch } = startClient(fake, {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      if (new URL(String(input)).pathname !== '/mcp' || response.status !== 200) return response
      const challenge = `Bearer error="insufficient_scope", scope="more${++asked}"`
      return new Response('no', { status: 403, headers: { 'www-authenticate': challenge } })
    },
  })
  const response = await authFetch(fake.serverUrl, { method: 'POST', body: '{}' })
  expect(response.status).to.equal(403)
  expect(await response.text()).to.equal('no')
  expect(fake.logins.length).to.equal(3)
})

it('R-10: neither refreshes nor logs in after a refused retry', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  await post()
  fake.rs.settings.mood = 'always-401'
  const before = fake.as.count('/token')
  expect((await post()).status).to.equal(401)
  expect(fake.as.count('/token') - before).to.equal(1)
  expect(fake.logins.length).to.equal(1)
})

it('R-11: opens the storm breaker after three refused tokens, then sends nothing', async () => {
  const fake = await startFakeServers()
  const { post, get, events } = startClient(fake, { interactive: 'any' })
  await post()
  fake.rs.settings.mood = 'always-401'
  for (let n = 0; n < 3; n++) expect((await get()).status).to.equal(401)
  const [requests, tokens] = [fake.rs.requests.length, fake.as.requests.length]
  for (const method of ['GET', 'POST', 'DELETE']) {
    const error = await authErrorOf(() => post(undefined, { method, body: null }))
    expect([error.code, error.retryable]).to.deep.equal(['auth_storm', true])
  }
  expect([fake.rs.requests.length, fake.as.requests.length]).to.deep.equal([requests, tokens])
  expect(events.filter(({ type }) => type === 'storm-breaker-open').length).to.equal(1)
})

it('R-11: does not count explicit logins with valid tokens for the storm breaker', async () => {
  const fake = await startFakeServers()
  const { authFetch, post } = startClient(fake)
  for (let n = 0; n < 6; n++) await authFetch.session.login()
  expect((await post()).status).to.equal(200)
})

it('R-11: stops explicit logins with refused tokens, until a token is accepted', async () => {
  const fake = await startFakeServers()
  const { authFetch, post } = startClient(fake)
  const { session } = authFetch
  fake.rs.settings.mood = 'always-401'
  const codes: string[] = []
  for (let n = 0; n < 12; n++) {
    const note = (error: unknown) => codes.push((error as { code: string }).code)
    await session.login().catch(note)
    await post().catch(note)
  }
  expect(new Set(codes)).to.deep.equal(new Set(['auth_storm']))
  expect(fake.logins.length).to.be.at.most(4)
})

it('R-11: allows an explicit login while the storm breaker is open', async () => {
  const fake = await startFakeServers()
  const { authFetch, post } = startClient(fake)
  fake.rs.settings.mood = 'always-401'
  for (let n = 0; n < 4; n++) await post().catch(() => undefined)
  expect((await authErrorOf(() => post())).code).to.equal('auth_storm')
  fake.rs.settings.mood = 'honest'
  await authFetch.session.login()
  expect((await post()).status).to.equal(200)
})

it('R-11: reports unfinished logins in the error, and later calls succeed', async () => {
  const fake = await startFakeServers()
  let there = true
  let asked = 0
  const { authFetch, post } = startClient(fake, {
    authorizationRedirectDelegate: async (url, redirectUri, about) => {
      asked++
      return there ? fake.delegate(url, redirectUri, about) : null
    },
  })
  there = false
  const codes = []
  for (let n = 0; n < 4; n++) codes.push((await authErrorOf(() => post())).code)
  expect(codes).to.deep.equal(['access_denied', 'access_denied', 'access_denied', 'auth_storm'])
  const before = fake.rs.requests.length
  const storm = await authErrorOf(() => post())
  expect(storm.message).to.include('none was completed').and.not.include('refused')
  expect([fake.rs.requests.length, asked]).to.deep.equal([before, 3])
  there = true
  await authFetch.session.login()
  expect((await post()).status).to.equal(200)
  // A tool that needs more does not stop those that need no more.
  there = false
  fake.rs.settings.scopes = { admin: 'admin' }
  const admin = { headers: { 'mcp-method': 'tools/call', 'mcp-name': 'admin' } }
  for (let n = 0; n < 4; n++) await post(undefined, admin).catch(() => undefined)
  expect((await post()).status).to.equal(200)
})

it('R-11: resets the storm breaker after a successful response', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  for (let n = 0; n < 5; n++) {
    expect((await post()).status).to.equal(200)
    fake.as.tokens.expireAll()
  }
})

it('R-12: sends a stream body once, gets a token, and returns the 401 unread', async () => {
  const fake = await startFakeServers()
  const { authFetch, events } = startClient(fake)
  const body = new Blob(['{}']).stream()
  const response = await authFetch(fake.serverUrl, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect([response.status, response.bodyUsed]).to.deep.equal([401, false])
  expect(await response.json()).to.deep.equal({ error: 'unauthorized' })
  expect(events.map(({ type }) => type)).to.include('retry-skipped')
  expect((await authFetch(fake.serverUrl, { method: 'POST', body: '{}' })).status).to.equal(200)
  expect(fake.logins.length).to.equal(1)
})

it('R-13: returns responses and redirects as the objects of the underlying fetch', async () => {
  const fake = await startFakeServers()
  const given: Response[] = []
  const { post } = startClient(fake, {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      given.push(response)
      return response
    },
  })
  expect(await post()).to.equal(given.at(-1))
  fake.rs.failNext('/mcp', { status: 307, headers: { location: 'https://elsewhere.example/' } })
  const redirect = await post(undefined, { redirect: 'manual' })
  expect(redirect).to.equal(given.at(-1))
  expect(redirect.status).to.equal(307)
})

it('R-13: passes on an event stream without buffering', async () => {
  const fake = await startFakeServers()
  const { post, get } = startClient(fake)
  await post()
  const response = await get()
  const reader = response.body?.getReader()
  fake.rs.sendEvent('one')
  const { value } = (await reader?.read()) ?? {}
  expect(new TextDecoder().decode(value)).to.equal('data: one\n\n')
  await reader?.cancel()
})

it('R-14: keeps a shared login running for other callers after one aborts', async () => {
  const fake = await startFakeServers()
  let agree = () => {}
  const asked = new Promise<void>(resolve => {
    agree = resolve
  })
  const controller = new AbortController()
  const { post } = startClient(fake, {
    authorizationRedirectDelegate: async (url, redirectUri, about) => {
      controller.abort(new Error('I gave up'))
      await asked
      return fake.delegate(url, redirectUri, about)
    },
  })
  const impatient = post(undefined, { signal: controller.signal }).catch((error: Error) => error.message)
  expect(await impatient).to.equal('I gave up')
  const patient = post()
  agree()
  expect((await patient).status).to.equal(200)
  expect(fake.logins.length).to.equal(1)
})

it('login ends with its signal if the given fetch ignores the signal', async () => {
  const controller = new AbortController()
  const reason = new Error('I gave up')
  const fetch: typeof globalThis.fetch = () => {
    controller.abort(reason)
    return new Promise<never>(() => {})
  }
  const { session } = createAuthFetch({ serverUrl: 'http://127.0.0.1:1/mcp', redirectUri: REDIRECT_URI, fetch })
  expect(await session.login({ signal: controller.signal }).catch((error: Error) => error.message)).to.equal(
    'I gave up',
  )
})

it('R-15: throws UnauthorizedError with a code, recognised by the official client', async () => {
  const fake = await startFakeServers()
  fake.as.settings.authorizationError = 'access_denied'
  const error = await authErrorOf(() => startClient(fake).post())
  expect(error.name).to.equal('UnauthorizedError')
  expect(error).to.include({ code: 'access_denied', retryable: false })
  expect((error as unknown as Record<symbol, unknown>)[Symbol.for('mcp.authSeamEscape')]).to.equal(true)
})

it('R-15: does not report a TypeError of a delegate as a network error', async () => {
  const fake = await startFakeServers()
  const error = await authErrorOf(() =>
    startClient(fake, {
      authorizationRedirectDelegate: () => {
        throw new TypeError('oops')
      },
    }).post(),
  )
  expect(error.code).to.equal('login_failed')
  expect((error.cause as Error).message).to.equal('oops')
})

it('wraps an error of scopeSelector with its cause', async () => {
  const fake = await startFakeServers()
  const scopeSelector = () => {
    throw new TypeError('oops')
  }
  const error = await authErrorOf(() => startClient(fake, { scopeSelector }).post())
  expect([error.code, (error.cause as Error).message]).to.deep.equal(['login_failed', 'oops'])
})

it('returns the 401 of a GET unread, without user interaction', async () => {
  const fake = await startFakeServers()
  const { get } = startClient(fake)
  const response = await get()
  expect([response.status, response.bodyUsed]).to.deep.equal([401, false])
  await response.body?.cancel()
  expect(fake.logins.length).to.equal(0)
})

it('allows user interaction for a GET with interactive "any"', async () => {
  const fake = await startFakeServers()
  const response = await startClient(fake, { interactive: 'any' }).get()
  expect(response.status).to.equal(200)
  await response.body?.cancel()
})

it('fails a POST with interactive "never" if login is required', async () => {
  const fake = await startFakeServers()
  const error = await authErrorOf(() => startClient(fake, { interactive: 'never' }).post())
  expect(error.code).to.equal('interaction_required')
  expect(error.setting).to.include({ method: 'login', url: fake.serverUrl })
  expect(fake.logins.length).to.equal(0)
})

it('passes through network errors of the MCP server', async () => {
  const fake = await startFakeServers()
  const { post } = startClient(fake)
  await fake.rs.close()
  const thrown = await post().catch((error: unknown) => error)
  expect(thrown).to.be.instanceOf(TypeError)
})

it('fails for an invalid URL like fetch', async () => {
  const authFetch: AuthFetch = createAuthFetch({ serverUrl: 'https://mcp.example', redirectUri: REDIRECT_URI })
  const thrown = await authFetch('no address').catch((error: unknown) => error)
  expect(thrown).to.be.instanceOf(TypeError)
})

it('R-91: sends no token to a server with plain http', async () => {
  const asked: string[] = []
  const authFetch = createAuthFetch({
    serverUrl: 'http://mcp.example/mcp',
    redirectUri: REDIRECT_URI,
    fetch: async input => {
      asked.push(String(input))
      return new Response('', { status: 401, headers: { 'www-authenticate': 'Bearer' } })
    },
  })
  const error = await authErrorOf(() => authFetch('http://mcp.example/mcp', { method: 'POST', body: '{}' }))
  expect([error.code, asked]).to.deep.equal(['insecure_endpoint', ['http://mcp.example/mcp']])
})
