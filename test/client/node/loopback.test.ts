// Tests the loopback redirect listener: accepted requests, pages and shutdown.
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect } from 'chai'
import { AuthError } from '../../../client/errors.ts'
import { createLoopbackRedirect } from '../../../client/node/index.ts'
import type { LoopbackRedirectOptions } from '../../../client/node/loopback.ts'
import { type Answer, send } from './support/loopback-requests.ts'

type LoopbackRedirect = Awaited<ReturnType<typeof createLoopbackRedirect>>

const opened: LoopbackRedirect[] = []
async function open(options: LoopbackRedirectOptions = {}): Promise<LoopbackRedirect> {
  const redirect = await createLoopbackRedirect({ openBrowser: () => {}, ...options })
  opened.push(redirect)
  return redirect
}
afterEach(async () => {
  for (const redirect of opened.splice(0)) await redirect.close()
})

const authorizationUrl = (state: string) => new URL(`https://login.example/authorize?state=${state}`)

/** A login that the "browser" has been opened for; its page is up to the test. */
async function begin(
  redirect: LoopbackRedirect,
  shown: Promise<unknown>,
  state = 'right',
  abort = new AbortController(),
) {
  const result = redirect.delegate(authorizationUrl(state), redirect.redirectUri, { signal: abort.signal })
  result.catch(() => {})
  await shown
  return { result, abort }
}

/** A redirect whose browser tells the test that it was opened. */
async function openShown(options: LoopbackRedirectOptions = {}) {
  let told: (url: URL) => void = () => {}
  const shown = new Promise<URL>(resolve => {
    told = resolve
  })
  return { redirect: await open({ ...options, openBrowser: url => told(url) }), shown }
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  )

async function refusedConnection(url: string): Promise<boolean> {
  return (await send(url).catch(error => error.code)) === 'ECONNREFUSED'
}

describe('Loopback redirect', () => {
  it('R-61: opens the browser and returns the complete callback URL', async () => {
    const { redirect, shown } = await openShown()
    expect(redirect.redirectUri).to.match(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    const { result } = await begin(redirect, shown)
    expect((await shown).href).to.equal('https://login.example/authorize?state=right')
    const page = await send(`${redirect.redirectUri}?code=c%20d&state=right&iss=https%3A%2F%2Flogin.example`)
    expect(page.status).to.equal(200)
    expect(page.text).to.include('Response received').and.include('close this window').and.not.include('logged in')
    const callback = await result
    expect(callback.href).to.equal(`${redirect.redirectUri}?code=c%20d&state=right&iss=https%3A%2F%2Flogin.example`)
  })

  it('R-61: serves a page without caching, external resources or referrer', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    const { headers, text } = await send(`${redirect.redirectUri}?code=the-code&state=right`)
    expect(headers).to.include({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' })
    expect(headers['content-security-policy']).to.match(/^default-src 'none'; style-src 'sha256-/)
    expect(headers).to.include({ 'x-content-type-options': 'nosniff', 'content-type': 'text/html; charset=utf-8' })
    expect(text).to.not.match(/the-code|right|https?:/)
    await result
  })

  it('R-61, R-57: passes on an error without showing it on the page', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    const script = encodeURIComponent('<script>alert(1)</script>')
    const page = await send(`${redirect.redirectUri}?error=access_denied&error_description=${script}&state=right`)
    expect(page.text).to.include('You are not logged in')
    expect(page.text).to.not.match(/script|access_denied/)
    expect((await result).searchParams.get('error')).to.equal('access_denied')
  })

  it('R-61: ignores a wrong, missing or duplicate state and keeps waiting', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    for (const query of ['?code=evil&state=wrong', '?code=evil', '', '?state=', '?code=evil&state=right&state=wrong']) {
      const page = await send(redirect.redirectUri + query)
      expect(page.status, query).to.equal(400)
      expect(page.headers['cache-control']).to.equal('no-store')
    }
    await send(`${redirect.redirectUri}?code=ours&state=right`)
    expect((await result).searchParams.get('code')).to.equal('ours')
  })

  it('R-61: serves one path, for GET only', async () => {
    const { redirect, shown } = await openShown({ path: '/cb' })
    const { result } = await begin(redirect, shown)
    const { origin } = new URL(redirect.redirectUri)
    for (const path of ['/', '/callback', '/cb/', '/favicon.ico', '//cb']) {
      expect((await send(`${origin}${path}?code=c&state=right`)).status, path).to.equal(404)
    }
    for (const method of ['POST', 'HEAD', 'PUT', 'OPTIONS']) {
      const page = await send(`${redirect.redirectUri}?code=c&state=right`, { method })
      expect(page.status, method).to.equal(405)
      expect(page.headers.allow).to.equal('GET')
    }
    await send(`${redirect.redirectUri}?code=c&state=right`)
    await result
  })

  it('R-61: accepts only its own Host header', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    const { port } = new URL(redirect.redirectUri)
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1', `localhost:${port}`, '127.0.0.1:1']) {
      expect((await send(`${redirect.redirectUri}?code=c&state=right`, { host })).status, host).to.equal(421)
    }
    await send(`${redirect.redirectUri}?code=c&state=right`)
    await result
  })

  it('R-61: listens on loopback only', async function () {
    const { networkInterfaces } = await import('node:os')
    const outside = Object.values(networkInterfaces()).flatMap(addresses =>
      (addresses ?? []).filter(({ internal, family }) => !internal && family === 'IPv4'),
    )
    const { redirect, shown } = await openShown()
    await begin(redirect, shown)
    const { port } = new URL(redirect.redirectUri)
    expect((await send(redirect.redirectUri)).status).to.equal(400)
    const [first] = outside
    if (!first) return this.skip()
    expect(await refusedConnection(`http://${first.address}:${port}/callback`)).to.equal(true)
  })

  it('R-61: stops listening after the result', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    // A browser opens connections that it may need later.
    const { port } = new URL(redirect.redirectUri)
    const idle = connect({ host: '127.0.0.1', port: Number(port) })
    const ended = new Promise(resolve => idle.once('close', resolve))
    await new Promise(resolve => idle.once('connect', resolve))
    idle.on('error', () => {})
    await send(`${redirect.redirectUri}?code=c&state=right`)
    await result
    await ended
    expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
  })

  it('R-61: stops on abort, with the reason', async () => {
    const { redirect, shown } = await openShown()
    const { result, abort } = await begin(redirect, shown)
    const reason = new Error('the login took too long')
    abort.abort(reason)
    expect(await failure(result)).to.equal(reason)
    expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
    const late = redirect.delegate(authorizationUrl('x'), redirect.redirectUri, { signal: abort.signal })
    expect(await failure(late)).to.equal(reason)
  })

  it('close() ends waiting logins', async () => {
    const { redirect, shown } = await openShown()
    const { result } = await begin(redirect, shown)
    await redirect.close()
    expect(await failure(result)).to.have.property('code', 'aborted')
    expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
  })

  it('serves consecutive logins on one port', async () => {
    const { signal } = new AbortController()
    const pages: Promise<Answer>[] = []
    const redirect = await open({
      openBrowser(url) {
        const state = url.searchParams.get('state')
        pages.push(send(`${redirect.redirectUri}?code=${state}&state=${state}`))
      },
    })
    for (const state of ['a', 'b', 'c']) {
      const callback = await redirect.delegate(authorizationUrl(state), redirect.redirectUri, { signal })
      expect(callback.searchParams.get('code')).to.equal(state)
      expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
    }
    expect((await Promise.all(pages)).map(({ status }) => status)).to.deep.equal([200, 200, 200])
  })

  it('serves concurrent logins, matched by state', async () => {
    const { redirect, shown } = await openShown()
    const first = await begin(redirect, shown, 'd')
    const second = await begin(redirect, shown, 'e')
    await send(`${redirect.redirectUri}?code=e&state=e`)
    expect((await second.result).searchParams.get('code')).to.equal('e')
    await send(`${redirect.redirectUri}?code=d&state=d`)
    expect((await first.result).searchParams.get('code')).to.equal('d')
    expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
  })

  for (const [host, addresses] of [
    ['localhost', ['127.0.0.1', '::1']],
    ['::1', ['::1']],
  ] as const) {
    it(`R-61: ${host} listens on ${addresses.join(' and ')}`, async function () {
      const has6 = await canBind('::1')
      if (host === '::1' && !has6) this.skip()
      const { redirect, shown } = await openShown({ host })
      const { result } = await begin(redirect, shown)
      const url = new URL(redirect.redirectUri)
      for (const address of addresses.filter(each => has6 || each !== '::1')) {
        const written = address === '::1' ? '[::1]' : address
        const page = await send(`http://${written}:${url.port}/callback?state=wrong`, { host: url.host })
        expect(page.status, address).to.equal(400)
      }
      const last = has6 ? '[::1]' : '127.0.0.1'
      await send(`http://${last}:${url.port}/callback?code=c&state=right`, { host: url.host })
      await result
    })
  }

  it('reports a port in use when it is needed, with advice', async () => {
    const other = await listen('127.0.0.1')
    const { port } = other.address() as AddressInfo
    const { redirect, shown } = await openShown({ port })
    const { signal } = new AbortController()
    const error = (await failure(
      redirect.delegate(authorizationUrl('s'), redirect.redirectUri, { signal }),
    )) as AuthError
    expect(AuthError.is(error)).to.equal(true)
    expect(error).to.include({ code: 'temporarily_unavailable', retryable: true })
    expect(error.message).to.include(`port ${port}`).and.include('choose another port')
    await new Promise(resolve => other.close(resolve))
    const { result } = await begin(redirect, shown)
    await send(`${redirect.redirectUri}?code=c&state=right`)
    expect((await result).searchParams.get('code')).to.equal('c')
  })

  it('ends the login if the browser cannot be opened', async () => {
    const thrown = new AuthError('no browser', { code: 'interaction_required' })
    for (const openBrowser of [() => Promise.reject(thrown), () => fail(thrown)]) {
      const redirect = await open({ openBrowser })
      const { signal } = new AbortController()
      expect(await failure(redirect.delegate(authorizationUrl('s'), redirect.redirectUri, { signal }))).to.equal(thrown)
      expect(await refusedConnection(redirect.redirectUri)).to.equal(true)
    }
  })

  it('rejects options without a loopback redirect URI, and a login for another one', async () => {
    for (const options of [
      { host: '0.0.0.0' as '::1' },
      { port: -1 },
      { port: 65_536 },
      { path: 'callback' },
      { path: '/a?b' },
      { path: '/a/../b' },
    ]) {
      expect(await failure(createLoopbackRedirect(options))).to.have.property('code', 'invalid_options')
    }
    const redirect = await open()
    const { signal } = new AbortController()
    const other = redirect.delegate(authorizationUrl('s'), 'http://127.0.0.1:1/callback', { signal })
    expect(await failure(other)).to.have.property('code', 'invalid_options')
    const stateless = redirect.delegate(new URL('https://login.example/'), redirect.redirectUri, { signal })
    expect(await failure(stateless)).to.have.property('code', 'invalid_options')
  })
})

function fail(error: unknown): never {
  throw error
}

function listen(host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject).listen(0, host, () => resolve(server))
  })
}

async function canBind(host: string): Promise<boolean> {
  const server = await listen(host).catch(() => undefined)
  server?.close()
  return server !== undefined
}
