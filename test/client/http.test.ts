// Tests HTTP requests to authorization servers: limits, redirects, broken connections and secrets.
import { once } from 'node:events'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import fc from 'fast-check'
import { AuthError } from '../../client/errors.ts'
import { ConnectionError, readBody } from '../../client/http.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import { createSecrets, printable, showText } from '../../client/text.ts'
import { anyText } from '../support/any-text.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { testContext } from './support/context.ts'
import { type Handler, type RecordingServer, startRecordingServer, stopServers } from './support/recording-server.ts'
import { type Entry, tableFetch } from './support/static-fetch.ts'

const KIB = 1_024
const WHAT = 'The test document'

const httpTo = (options: Partial<ClientOAuthOptions> = {}, timeoutMs?: number) =>
  testContext(options, timeoutMs === undefined ? {} : { timeoutMs }).http

after(stopServers)

async function serve(handler: Handler): Promise<RecordingServer> {
  return startRecordingServer(handler)
}

describe('R-37: metadata request limits', () => {
  it('sends a GET that accepts JSON', async () => {
    const server = await serve(() => ({ status: 200, body: { a: 1 } }))
    const answer = await httpTo().getJson(`${server.url}/x?y`, { label: WHAT })
    expect(answer).to.include({ status: 200, url: `${server.url}/x?y`, length: 7 })
    expect(answer.json).to.deep.equal({ a: 1 })
    expect(server.requests[0]).to.include({ method: 'GET', body: '' })
    expect(server.requests[0]?.headers.accept).to.equal('application/json')
  })

  it('has a time limit and can be cancelled if the given fetch ignores its signal', async () => {
    const silent: (typeof globalThis.fetch)[] = [
      () => new Promise<never>(() => {}),
      async () => new Response(new ReadableStream({})),
    ]
    for (const fetch of silent) {
      const late = await authErrorOf(() => httpTo({ fetch }, 20).getJson('http://127.0.0.1:1', { label: WHAT }))
      expect(late.message).to.include('did not respond within 0.02 s')
      const stop = new AbortController()
      const { signal } = stop
      const cancelled = authErrorOf(() => httpTo({ fetch }).getJson('http://127.0.0.1:1', { label: WHAT, signal }))
      stop.abort()
      expect(await cancelled).to.include({ code: 'aborted' })
    }
  })

  const padded = (size: number) => JSON.stringify({ pad: 'x'.repeat(size - '{"pad":""}'.length) })

  it('accepts at most 256 KiB', async () => {
    const server = await serve(({ query }) => ({ status: 200, body: padded(Number(query.get('size'))) }))
    const { json } = await httpTo().getJson(`${server.url}/?size=${256 * KIB}`, { label: WHAT })
    expect(json)
      .to.have.property('pad')
      .with.length(256 * KIB - 10)
    const error = await authErrorOf(() => httpTo().getJson(`${server.url}/?size=${256 * KIB + 1}`, { label: WHAT }))
    expect(error).to.include({ code: 'malformed_response', retryable: false })
    expect(error.message).to.include('256 KiB')
  })

  it('aborts an endless body and closes the connection', async () => {
    const ends = new EventTarget()
    const closed = once(ends, 'close')
    const server = await serve(() => ({
      status: 200,
      stream(response) {
        const chunk = Buffer.alloc(16 * KIB, 'x')
        const push = () => {
          while (!response.destroyed) {
            if (!response.write(chunk)) break
          }
        }
        response.on('drain', push).on('close', () => ends.dispatchEvent(new Event('close')))
        push()
      },
    }))
    expect(await authErrorOf(() => httpTo().getJson(server.url, { label: WHAT }))).to.include({
      code: 'malformed_response',
    })
    await closed
  })

  it('applies the limit to decompressed data', async () => {
    const bomb = gzipSync(Buffer.alloc(5 * KIB * KIB, ' '))
    const server = await serve(() => ({
      status: 200,
      headers: { 'Content-Encoding': 'gzip' },
      stream: response => void response.end(bomb),
    }))
    expect(await authErrorOf(() => httpTo().getJson(server.url, { label: WHAT }))).to.include({
      code: 'malformed_response',
    })
  })

  for (const [name, stream] of [
    ['nothing', () => {}],
    ['headers and no end', (response: import('node:http').ServerResponse) => void response.write('{')],
  ] as const) {
    it(`applies a timeout to ${name}`, async () => {
      const server = await serve(() => ({ status: 200, stream }))
      const error = await authErrorOf(() => httpTo({}, 50).getJson(server.url, { label: WHAT }))
      expect(error).to.include({ code: 'temporarily_unavailable', retryable: true })
      expect(error).to.be.instanceOf(ConnectionError).and.to.include({ bodySent: true })
      expect(error.message).to.include('within 0.05 s')
    })
  }

  it('treats non-JSON and error responses as no document', async () => {
    const server = await serve(({ query }) => ({ status: Number(query.get('status')), body: query.get('body') }))
    const get = (status: number, body: string) =>
      httpTo().getJson(`${server.url}/?${new URLSearchParams({ status: `${status}`, body })}`, { label: WHAT })
    expect(await get(200, '<html>')).to.deep.include({ status: 200, json: undefined, length: 6 })
    expect(await get(200, '')).to.deep.include({ status: 200, json: undefined, length: 0 })
    expect((await get(404, '{"error":"x"}')).status).to.equal(404)
  })

  it('tolerates extremely nested JSON', async () => {
    const server = await serve(() => ({ status: 200, body: `${'['.repeat(60 * KIB)}${']'.repeat(60 * KIB)}` }))
    expect((await httpTo().getJson(server.url, { label: WHAT })).status).to.equal(200)
  })
})

describe('R-94: redirects', () => {
  const redirecting = (to: (hop: number) => string) =>
    serve(({ path }) => {
      const hop = Number(path.slice(1))
      return hop === 0 ? { status: 200, body: { done: true } } : { status: 302, headers: { Location: to(hop - 1) } }
    })

  it('follows 3 redirects at most', async () => {
    const server = await redirecting(hop => `/${hop}`)
    const answer = await httpTo().getJson(`${server.url}/3`, { label: WHAT })
    expect(answer).to.deep.include({ json: { done: true }, url: `${server.url}/0` })
    const error = await authErrorOf(() => httpTo().getJson(`${server.url}/4`, { label: WHAT }))
    expect(error.code).to.equal('malformed_response')
    expect(server.requests.map(({ path }) => path)).to.deep.equal(['/3', '/2', '/1', '/0', '/4', '/3', '/2', '/1'])
  })

  const hops: [to: string, code: string][] = [
    ['http://as.example/', 'insecure_endpoint'],
    ['https://169.254.169.254/latest/', 'blocked_address'],
    ['http://localhost:6379/', 'blocked_address'],
    ['https://10.0.0.1/', 'blocked_address'],
    ['file:///etc/passwd', 'insecure_endpoint'],
    ['https://u:p@as.example/', 'insecure_endpoint'],
  ]
  for (const [to, code] of hops) {
    it(`checks each redirect target: ${to}`, async () => {
      const table: Record<string, Entry> = {
        'https://as.example/1': () => new Response(null, { status: 307, headers: { Location: to } }),
      }
      const { fetch, asked } = tableFetch(table)
      const http = httpTo({ fetch, serverUrl: 'https://mcp.example' })
      expect(await authErrorOf(() => http.getJson('https://as.example/1', { label: WHAT }))).to.include({ code })
      expect(asked).to.deep.equal(['https://as.example/1'])
    })
  }

  it('treats a redirect without a valid target as no document', async () => {
    const server = await serve(({ path }) => ({
      status: 302,
      headers: path === '/none' ? {} : { Location: 'http://[' },
    }))
    for (const path of ['/none', '/bad']) {
      expect(await httpTo().getJson(server.url + path, { label: WHAT })).to.include({ status: 302, json: undefined })
    }
  })

  it('treats an opaque browser redirect as no document', async () => {
    const opaque = () =>
      Object.defineProperties(new Response(null), { type: { value: 'opaqueredirect' }, status: { value: 0 } })
    const { fetch } = tableFetch({ 'https://as.example/': opaque })
    const http = httpTo({ fetch, serverUrl: 'https://mcp.example' })
    expect((await http.getJson('https://as.example/', { label: WHAT })).status).to.equal(0)
  })

  for (const status of [301, 302, 303, 307, 308]) {
    it(`never follows a ${status} after a POST`, async () => {
      const server = await serve(({ path }) =>
        path === '/' ? { status, headers: { Location: '/stolen' } } : { status: 200, body: {} },
      )
      const error = await authErrorOf(() =>
        httpTo().post(server.url, { label: WHAT, body: new URLSearchParams({ a: 'b' }) }),
      )
      expect(error).to.include({ code: 'malformed_response', retryable: false })
      expect(server.count('/stolen')).to.equal(0)
    })
  }
})

describe('R-96: no ambient credentials', () => {
  it('sends no cookies and only the required headers', async () => {
    const server = await serve(({ path }) => ({
      status: path === '/1' ? 302 : 200,
      headers: { Location: '/2', 'Set-Cookie': 'a=b' },
      body: {},
    }))
    const http = httpTo()
    await http.getJson(`${server.url}/1`, { label: WHAT })
    await http.post(`${server.url}/3`, {
      label: WHAT,
      body: new URLSearchParams({ a: 'b c' }),
      headers: { authorization: 'Basic x' },
    })
    await http.post(`${server.url}/4`, { label: WHAT, body: { a: ['b'] } })
    const ours = ['accept', 'authorization', 'content-type', 'content-length']
    const fetchs = [
      'host',
      'connection',
      'user-agent',
      'accept-language',
      'accept-encoding',
      'sec-fetch-mode',
      'cache-control',
      'pragma',
    ]
    for (const { headers } of server.requests) expect(ours.concat(fetchs)).to.include.members(Object.keys(headers))
    expect(server.requests.map(({ path, headers }) => [path, headers.authorization])).to.deep.equal([
      ['/1', undefined],
      ['/2', undefined],
      ['/3', 'Basic x'],
      ['/4', undefined],
    ])
    expect(server.to('/3')[0]).to.deep.include({ method: 'POST', body: 'a=b+c' })
    expect(server.to('/3')[0]?.headers['content-type']).to.equal('application/x-www-form-urlencoded')
    expect(server.to('/4')[0]).to.deep.include({ body: '{"a":["b"]}' })
  })

  it('disables credentials, caches and referrers in fetch', async () => {
    const inits: RequestInit[] = []
    const fetch: typeof globalThis.fetch = async (_, init) => {
      inits.push(init ?? {})
      return Response.json({})
    }
    const http = httpTo({ fetch, serverUrl: 'https://mcp.example' })
    await http.getJson('https://as.example', { label: WHAT })
    await http.post('https://as.example', { label: WHAT, body: {} })
    for (const init of inits) {
      expect(init).to.include({
        redirect: 'manual',
        credentials: 'omit',
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
      })
    }
  })

  it('checks a URL before sending anything', async () => {
    const { fetch, asked } = tableFetch({})
    const http = httpTo({ fetch, serverUrl: 'https://mcp.example' })
    for (const url of ['http://as.example', 'https://127.0.0.1', 'https://metadata.internal']) {
      await authErrorOf(() => http.getJson(url, { label: WHAT }))
      await authErrorOf(() => http.post(url, { label: WHAT, body: {} }))
    }
    expect(asked).to.deep.equal([])
    expect(http.check('https://as.example/x', WHAT).href).to.equal('https://as.example/x')
  })
})

describe('R-71: responses to a POST', () => {
  const post = (server: RecordingServer) => httpTo().post(server.url, { label: WHAT, body: new URLSearchParams() })

  it('limits a success response to 64 KiB', async () => {
    let size = 64 * KIB
    const server = await serve(() => ({ status: 200, body: 'x'.repeat(size) }))
    expect((await post(server)).length).to.equal(size)
    size++
    expect(await authErrorOf(() => post(server))).to.include({ code: 'malformed_response' })
  })

  it('cancels a body at the limit', async () => {
    let isCancelled = false
    const body = new ReadableStream({
      pull: stream => stream.enqueue(new Uint8Array(KIB)),
      cancel() {
        isCancelled = true
      },
    })
    expect(await readBody(new Response(body), 10)).to.deep.equal({ bytes: new Uint8Array(10), cut: true })
    expect(isCancelled).to.equal(true)
  })

  it('keeps the status of a huge error page, truncated', async () => {
    const server = await serve(() => ({ status: 403, body: `{"error":"x"}${' '.repeat(200 * KIB)}` }))
    const { status, json, length } = await post(server)
    expect([status, json, length]).to.deep.equal([403, undefined, 64 * KIB])
  })

  it('escapes control characters in displayed text (property)', () => {
    const raw = 'a\u0000\u001b[2J\r\n\u007f\u009b\u202e\u2066\u2028\ufeffé€😀'
    expect(printable(raw)).to.equal('a\\u0000\\u001b[2J\\u000d\\u000a\\u007f\\u009b\\u202e\\u2066\\u2028\\ufeffé€😀')
    fc.assert(
      fc.property(anyText(60), fc.nat(40), (any, length) => {
        expect(printable(any, length)).not.to.match(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u)
        if (/^[\x20-\x7e]*$/.test(any)) expect(printable(any)).to.equal(any)
      }),
      { numRuns: caseCount(200, 10) },
    )
  })
})

describe('Connection failures', () => {
  it('before sending: connection refused', async () => {
    const server = await serve(() => ({ status: 200 }))
    await server.close()
    const error = await authErrorOf(() => httpTo().post(`${server.url}/token?secret=x`, { label: WHAT, body: {} }))
    expect(error).to.include({ code: 'temporarily_unavailable', retryable: true, bodySent: false })
    expect(error.message).to.include('ECONNREFUSED').and.include(`${server.url}/token`).and.not.include('secret')
    expect((error.cause as { code?: string }).code).to.equal('ECONNREFUSED')
  })

  it('after sending the body: outcome unknown', async () => {
    const server = await serve(() => ({ status: 200 }))
    server.failNext('/', { reset: 'after-body' })
    const error = await authErrorOf(() => httpTo().post(server.url, { label: WHAT, body: {} }))
    expect(error).to.include({ code: 'temporarily_unavailable', retryable: true, bodySent: true })
    expect(server.count()).to.equal(1)
  })

  it('during the response', async () => {
    const server = await serve(() => ({
      status: 200,
      headers: { 'Content-Length': '100' },
      stream: response => void response.write('{"a', () => response.destroy()),
    }))
    expect(await authErrorOf(() => httpTo().getJson(server.url, { label: WHAT }))).to.include({
      code: 'temporarily_unavailable',
      bodySent: true,
    })
  })

  for (const [code, bodySent] of [
    ['ENOTFOUND', false],
    ['EAI_AGAIN', false],
    ['CERT_HAS_EXPIRED', false],
    ['ECONNRESET', true],
    ['UND_ERR_SOCKET', true],
  ] as const) {
    it(`${code}: request ${bodySent ? 'possibly sent' : 'not sent'}`, async () => {
      const { fetch } = tableFetch({ 'https://as.example/': Object.assign(new Error('x'), { code }) })
      const http = httpTo({ fetch, serverUrl: 'https://mcp.example' })
      expect(await authErrorOf(() => http.post('https://as.example/', { label: WHAT, body: {} }))).to.include({
        bodySent,
      })
    })
  }

  it('abort: throws its own error, or the reason of the caller', async () => {
    const server = await serve(() => ({ status: 200, stream: () => {} }))
    const stop = new AbortController()
    const waiting = authErrorOf(() => httpTo().getJson(`${server.url}/a`, { label: WHAT, signal: stop.signal }))
    await server.reached('/a')
    stop.abort()
    expect(await waiting).to.include({ code: 'aborted', retryable: false })
    const reason = new AuthError('too late', { code: 'login_timeout' })
    expect(
      await authErrorOf(() => httpTo().getJson(`${server.url}/b`, { label: WHAT, signal: AbortSignal.abort(reason) })),
    ).to.equal(reason)
  })
})

describe('R-97: redaction of secrets', () => {
  const SECRETS = ['s3cret/+=& "quoted"\\', 'another-secret-of-somebody', 'ünïcode-secret', 'a b+c%2F']

  it('redacts echoed secrets in every encoding', async () => {
    let body: unknown
    const server = await serve(() => ({ status: 400, body }))
    const { http, secrets } = testContext()
    secrets.add(...SECRETS, undefined, '')
    for (const secret of SECRETS) {
      const json = JSON.stringify(secret).slice(1, -1)
      for (body of [
        `you sent ${secret}!`,
        { error: 'invalid_client', error_description: `client ${secret} is wrong` },
        `{"error":"x","d":"${json.replaceAll('/', '\\/')}"}`,
        `{"error":"x","d":"${[...secret].map(c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"}`,
        new URLSearchParams({ secret }).toString(),
        encodeURIComponent(secret),
      ]) {
        const { json } = await http.post(server.url, { label: WHAT, body: new URLSearchParams({ secret }) })
        const text = showText(secrets, json === undefined ? String(body) : JSON.stringify(json))
        expect(text).to.include('[redacted]')
        for (const shown of [text, decodeURIComponent(text.replaceAll('+', ' '))]) expect(shown).not.to.include(secret)
      }
    }
  })

  it('redacts secrets with escaped slashes', () => {
    const secrets = createSecrets()
    secrets.add('ab/cd/ef')
    expect(secrets.scrub('not JSON: "ab\\/cd\\/ef"')).to.equal('not JSON: "[redacted]"')
  })

  it('redacts secrets in errors of a failing fetch', async () => {
    const fetch: typeof globalThis.fetch = async (_, init) => {
      throw Object.assign(new Error(`could not send ${String(init?.body)}`), { config: init })
    }
    const { http, secrets } = testContext({ fetch, serverUrl: 'https://mcp.example' })
    secrets.add('hunter2hunter2')
    const error = await authErrorOf(() =>
      http.post('https://as.example', { label: WHAT, body: new URLSearchParams({ p: 'hunter2hunter2' }) }),
    )
    for (const shown of [
      error.message,
      error.stack,
      inspect(error, { depth: 10 }),
      JSON.stringify(error),
      String(error.cause),
    ]) {
      expect(shown).not.to.include('hunter2')
    }
  })

  it('shows no secret when the secret store is inspected', () => {
    const secrets = createSecrets()
    secrets.add('hunter2')
    for (const shown of [inspect(secrets, { depth: 10, showHidden: true }), JSON.stringify(secrets), String(secrets)]) {
      expect(shown).not.to.include('hunter2')
    }
  })

  it('leaves no complete secret, whatever the other secrets are (property)', () => {
    const some = fc.array(fc.string({ minLength: 4, maxLength: 20 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(some, fc.array(fc.string(), { maxLength: 5 }), (values, between) => {
        const secrets = createSecrets()
        secrets.add(...values)
        const scrubbed = secrets.scrub(values.flatMap((value, index) => [between[index] ?? ' ', value]).join(' '))
        for (const value of values) expect(scrubbed.replaceAll('[redacted]', '\u0000')).not.to.include(value)
      }),
      { numRuns: caseCount(500, 30) },
    )
  })

  it('keeps the 500 most recently used secrets', () => {
    const secrets = createSecrets()
    secrets.add('client-secret')
    for (let index = 0; index < 400; index++) secrets.add(`token-${index}-end`)
    secrets.add('client-secret')
    for (let index = 400; index < 899; index++) secrets.add(`token-${index}-end`)
    expect(secrets.scrub('client-secret token-398-end token-400-end')).to.equal('[redacted] token-398-end [redacted]')
  })
})
