// Tests the guarded fetch: checks of the connected address (DNS rebinding), and compatibility with fetch.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createNetPolicy } from '../../client/net-policy.ts'
import { createGuardedFetch } from '../../client/node/fetch.ts'
import { makeCertificate } from '../plugins/dev-auth-server/certificate.ts'
import { compiledFile } from '../support/compiled.ts'
import { startRawServer } from '../support/raw-server.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { testContext } from './support/context.ts'
import { type Handler, type RecordingServer, startRecordingServer, stopServers } from './support/recording-server.ts'

/** A name server of the test: each question takes the next answer, the last one for ever. */
function nameServer(...answers: (readonly string[])[]): LookupFunction & { asked: string[] } {
  const asked: string[] = []
  const lookup: LookupFunction = (hostname, options, callback) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? []
    asked.push(hostname)
    const found = addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
    if (options.all) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
  return Object.assign(lookup, { asked })
}

const LOCAL = nameServer(['127.0.0.1'])

let server: RecordingServer
let handler: Handler
let port: string

before(async () => {
  server = await startRecordingServer(incoming => handler(incoming))
  port = new URL(server.url).port
})
beforeEach(() => {
  server.requests.length = 0
  handler = ({ method, path, body }) => ({ status: 200, body: { method, path, body } })
})
after(stopServers)

/** At `mcp.test`, which is this machine and allowed. */
const openFetch = () => createGuardedFetch({ allowHosts: ['mcp.test'], lookup: LOCAL })
const at = (path: string) => `http://mcp.test:${port}${path}`

describe('R-93: check of the connected address', () => {
  it('blocks DNS rebinding from a public to a private address', async () => {
    const url = `http://rebind.example:${port}/secret`
    const lookup = nameServer(['127.0.0.1'])
    expect(createNetPolicy('https://mcp.example', {}).check(url.replace('http', 'https'), 'It').hostname).to.equal(
      'rebind.example',
    )
    const error = await authErrorOf(() => createGuardedFetch({ lookup })(url))
    expect(error).to.include({ code: 'blocked_address', retryable: false })
    expect(error.message).to.include('rebind.example').and.include('allowHosts')
    expect([server.count(), lookup.asked]).to.deep.equal([0, ['rebind.example']])
    // Without the guard the same name server leads into the network.
    const [reached] = await once(request(url, { lookup }).end(), 'response')
    reached.resume()
    expect(server.count('/secret')).to.equal(1)
  })

  it('checks each new connection', async () => {
    const lookup = nameServer(['127.0.0.1'], ['10.0.0.1'], ['169.254.169.254'])
    const guarded = createGuardedFetch({ lookup })
    for (let round = 0; round < 20; round++) {
      expect(await authErrorOf(() => guarded(`http://rebind.example:${port}/`))).to.include({ code: 'blocked_address' })
    }
    expect([lookup.asked.length, server.count()]).to.deep.equal([20, 0])
  })

  it('blocks a name if one of its addresses is private', async () => {
    for (const addresses of [['93.184.216.34', '127.0.0.1'], ['2606:4700::1', '::ffff:10.0.0.1'], ['not an address']]) {
      const guarded = createGuardedFetch({ lookup: nameServer(addresses) })
      expect(await authErrorOf(() => guarded('https://mixed.example/'))).to.include({ code: 'blocked_address' })
    }
  })

  for (const host of [
    '127.0.0.1',
    '2130706433',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    'localhost',
    '0.0.0.0',
  ]) {
    it(`blocks ${host}`, async () => {
      expect(await authErrorOf(() => createGuardedFetch()(`http://${host}:${port}/`))).to.include({
        code: 'blocked_address',
      })
      expect(server.count()).to.equal(0)
    })
  }

  it('applies to redirects', async () => {
    handler = () => ({ status: 302, headers: { Location: `http://127.0.0.1:${port}/secret` } })
    expect(await authErrorOf(() => openFetch()(at('/')))).to.include({ code: 'blocked_address' })
    expect(server.requests.map(({ path }) => path)).to.deep.equal(['/'])
  })

  it('passes its error through the client unchanged', async () => {
    const lookup = nameServer(['127.0.0.1'])
    const options = { serverUrl: 'https://mcp.example', networkPolicy: { blockPrivateNetworks: true } }
    const { http } = testContext({ ...options, fetch: createGuardedFetch({ lookup }) })
    expect(await authErrorOf(() => http.getJson('https://as.example/x', { label: 'The document' }))).to.include({
      code: 'blocked_address',
    })
  })

  it('allowHosts allows one host by name and port', async () => {
    const guarded = createGuardedFetch({ allowHosts: [`mcp.test:${port}`, '127.0.0.1'], lookup: LOCAL })
    for (const url of [at('/'), `http://127.0.0.1:${port}/`]) expect((await guarded(url)).status).to.equal(200)
    expect(await authErrorOf(() => guarded('http://mcp.test:4/'))).to.include({ code: 'blocked_address' })
  })
})

describe('Guarded fetch compatibility', () => {
  it('supports TLS and verifies the certificate host name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'guarded-'))
    const { key, cert, file } = makeCertificate(folder)
    const secure = createHttpsServer({ key, cert }, (_, response) => response.end('over TLS')).listen(0, '127.0.0.1')
    try {
      await once(secure, 'listening')
      const address = `https://localhost:${(secure.address() as AddressInfo).port}/`
      const module = compiledFile('client/node/fetch.ts')
      const script = `
        const { createGuardedFetch } = await import(${JSON.stringify(module)})
        const lookup = (_, { all }, done) => all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)
        const guarded = createGuardedFetch({ allowHosts: ['localhost', 'other.test'], lookup })
        const answer = await guarded('${address}')
        const refused = await guarded('${address.replace('localhost', 'other.test')}').catch(error => error.cause.code)
        console.log(answer.status, await answer.text(), refused)
        process.exit()`
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: file, NODE_V8_COVERAGE: '' }
      const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
        env,
      })
      expect((await run).stdout.trim()).to.equal('200 over TLS ERR_TLS_CERT_ALTNAME_INVALID')
    } finally {
      secure.close()
      rmSync(folder, { recursive: true })
    }
  })

  const bodies: [name: string, body: () => RequestInit['body'], sent: string][] = [
    ['a text', () => 'text €', 'text €'],
    ['a form', () => new URLSearchParams({ a: 'b c' }), 'a=b+c'],
    ['bytes', () => new TextEncoder().encode('bytes'), 'bytes'],
    ['a blob', () => new Blob(['blob']), 'blob'],
    ['a stream', () => new Blob(['streamed']).stream(), 'streamed'],
  ]
  for (const [name, body, sent] of bodies) {
    it(`sends ${name}`, async () => {
      const init = { method: 'POST', body: body(), duplex: 'half' } as RequestInit
      expect(await (await openFetch()(at('/x'), init)).json()).to.deep.equal({ method: 'POST', path: '/x', body: sent })
      expect(server.requests[0]?.headers['content-length']).to.equal(String(Buffer.byteLength(sent)))
    })
  }

  it('accepts a string, a URL or a Request with headers', async () => {
    const guarded = openFetch()
    await guarded(at('/1'))
    await guarded(new URL(at('/2')), { headers: { 'X-A': '1' } })
    await guarded(new Request(at('/3'), { method: 'DELETE', headers: { 'X-A': '2' } }))
    await guarded(new Request(at('/4'), { method: 'PUT', body: 'x' }), { method: 'PATCH' })
    expect(server.requests.map(({ method, path, headers }) => [method, path, headers['x-a']])).to.deep.equal([
      ['GET', '/1', undefined],
      ['GET', '/2', '1'],
      ['DELETE', '/3', '2'],
      ['PATCH', '/4', undefined],
    ])
  })

  it('returns url, status, headers and an empty body', async () => {
    handler = ({ path }) => ({ status: Number(path.slice(1)), headers: { 'X-A': 'b', 'Set-Cookie': ['a=1', 'b=2'] } })
    for (const status of [200, 204, 304, 401, 500]) {
      const response = await openFetch()(at(`/${status}`))
      expect(response).to.include({ status, url: at(`/${status}`), redirected: false, ok: status < 300 })
      expect(response.headers.getSetCookie()).to.deep.equal(['a=1', 'b=2'])
      expect(await response.text()).to.equal('')
    }
    expect((await openFetch()(at('/200'), { method: 'HEAD' })).body).to.equal(null)
  })

  it('streams the response', async () => {
    let finish = () => {}
    handler = () => ({
      status: 200,
      stream(response) {
        response.write('data: 1\n\n')
        finish = () => void response.end('data: 2\n\n')
      },
    })
    const reader = (await openFetch()(at('/'))).body?.getReader()
    const decode = async () => new TextDecoder().decode((await reader?.read())?.value)
    expect(await decode()).to.equal('data: 1\n\n')
    finish()
    expect(await decode()).to.equal('data: 2\n\n')
    expect(await reader?.read()).to.include({ done: true })
  })

  it('closes the connection when the response is cancelled', async () => {
    const ends = new EventTarget()
    const closed = once(ends, 'close')
    handler = () => ({
      status: 200,
      stream(response) {
        response.write('x')
        response.on('close', () => ends.dispatchEvent(new Event('close')))
      },
    })
    await (await openFetch()(at('/'))).body?.cancel()
    await closed
  })

  for (const [encoding, encode] of [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ] as const) {
    it(`decodes ${encoding}`, async () => {
      handler = () => ({
        status: 200,
        headers: { 'Content-Encoding': encoding },
        stream: response => void response.end(encode('small')),
      })
      expect(await (await openFetch()(at('/'))).text()).to.equal('small')
    })
  }

  it('rejects a response with more than one content encoding', async () => {
    handler = () => ({
      status: 200,
      headers: { 'Content-Encoding': 'gzip, gzip' },
      stream: response => void response.end(gzipSync(gzipSync('small'))),
    })
    expect(await openFetch()(at('/')).catch((error: Error) => error)).to.be.instanceOf(TypeError)
  })

  it('fails for corrupt compressed data', async () => {
    handler = () => ({ status: 200, headers: { 'Content-Encoding': 'gzip' }, body: 'no gzip' })
    const failure = await (await openFetch()(at('/'))).text().catch((error: Error) => error)
    expect(failure).to.be.instanceOf(Error)
  })

  it('follows, returns or rejects redirects as requested', async () => {
    handler = ({ path, method, body }) =>
      /^\/30\d$/.test(path)
        ? { status: Number(path.slice(1)), headers: { Location: '/end' } }
        : { status: 200, body: { method, body } }
    const guarded = openFetch()
    for (const [status, method, body] of [
      [301, 'GET', ''],
      [302, 'GET', ''],
      [303, 'GET', ''],
      [307, 'POST', 'x'],
      [308, 'POST', 'x'],
    ] as const) {
      const response = await guarded(at(`/${status}`), { method: 'POST', body: 'x' })
      expect(response).to.include({ url: at('/end'), redirected: true })
      expect(await response.json()).to.deep.equal({ method, body })
    }
    const manual = await guarded(at('/302'), { redirect: 'manual' })
    expect([manual.status, manual.headers.get('location')]).to.deep.equal([302, '/end'])
    expect(await guarded(at('/302'), { redirect: 'error' }).catch((error: Error) => error)).to.be.instanceOf(TypeError)
    handler = () => ({ status: 302, headers: { Location: '/' } })
    server.requests.length = 0
    expect(await guarded(at('/')).catch((error: Error) => error)).to.be.instanceOf(TypeError)
    expect(server.count()).to.equal(21)
  })

  it('removes credentials on a redirect to another origin', async () => {
    handler = ({ path }) =>
      path === '/' ? { status: 307, headers: { Location: `http://other.test:${port}/end` } } : { status: 200 }
    const guarded = createGuardedFetch({ allowHosts: ['mcp.test', 'other.test'], lookup: LOCAL })
    await guarded(at('/'), { headers: { Authorization: 'Bearer x', DPoP: 'y', Cookie: 'z', 'X-A': 'kept' } })
    const [first, second] = server.requests.map(({ headers }) => headers)
    expect(first).to.include({ authorization: 'Bearer x', dpop: 'y', cookie: 'z', 'x-a': 'kept' })
    expect(second).to.include({ 'x-a': 'kept' })
    expect(second).to.not.have.any.keys('authorization', 'dpop', 'cookie')
  })

  it('rejects with the abort reason before, during and after the headers', async () => {
    handler = ({ path }) => ({ status: 200, stream: response => void (path === '/body' && response.write('x')) })
    const reason = new Error('enough')
    expect(await openFetch()(at('/'), { signal: AbortSignal.abort(reason) }).catch(error => error)).to.equal(reason)
    const stop = new AbortController()
    const waiting = openFetch()(at('/wait'), { signal: stop.signal }).catch(error => error)
    await server.reached('/wait')
    stop.abort(reason)
    expect(await waiting).to.equal(reason)
    const late = new AbortController()
    const response = await openFetch()(at('/body'), { signal: late.signal })
    const text = response.text().catch((error: Error) => error)
    late.abort(reason)
    expect(await text).to.be.instanceOf(Error)
  })

  it('ends a body at the time limit, also if the signal has no other reference', async () => {
    handler = () => ({ status: 200, stream: response => void response.write('x') })
    setFlagsFromString('--expose_gc')
    const collect = runInNewContext('gc') as () => void
    const collecting = setInterval(collect, 10)
    try {
      // On a busy machine the limit can end the wait for the headers already, with the same error.
      const text = async () => (await openFetch()(at('/'), { signal: AbortSignal.timeout(1_000) })).text()
      const failure = await text().catch((error: Error) => error)
      expect((failure as Error).name).to.equal('TimeoutError')
    } finally {
      clearInterval(collecting)
    }
  })

  it('rejects with a TypeError and its cause if the connection fails', async () => {
    server.failNext('/', { reset: 'after-body' })
    const failure = await openFetch()(at('/'), { method: 'POST', body: 'x' }).catch((error: Error) => error)
    expect(failure).to.be.instanceOf(TypeError)
    expect((failure as { cause?: { code?: string } }).cause?.code).to.equal('UND_ERR_SOCKET')
    const unknown: LookupFunction = (hostname, _, callback) =>
      callback(Object.assign(new Error(`no ${hostname}`), { code: 'ENOTFOUND' }), [])
    const lost = await createGuardedFetch({ lookup: unknown })('https://nowhere.example').catch((error: Error) => error)
    expect((lost as { cause?: { code?: string } }).cause?.code).to.equal('ENOTFOUND')
    expect(await openFetch()('data:text/plain,x').catch((error: Error) => error)).to.be.instanceOf(TypeError)
  })

  const refused: readonly (readonly [what: string, head: string])[] = [
    ['a protocol upgrade', '101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo'],
    ['status 101 without an upgrade', '101 Switching Protocols'],
    ['a redirect to an invalid URL', '302 Found\r\nLocation: http://[\r\nContent-Length: 5'],
  ]
  for (const [what, head] of refused) {
    it(`rejects ${what}, and closes the connection`, async () => {
      const raw = await startRawServer(`HTTP/1.1 ${head}\r\n\r\n`)
      try {
        const failure = await createGuardedFetch({ allowHosts: ['127.0.0.1'] })(raw.url).catch((error: Error) => error)
        expect(failure).to.be.instanceOf(TypeError)
        await raw.closed()
      } finally {
        await raw.stop()
      }
    })
  }

  it('closes the connection of a status 205 with a body', async () => {
    const raw = await startRawServer('HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\n')
    try {
      const response = await createGuardedFetch({ allowHosts: ['127.0.0.1'] })(raw.url)
      expect([response.status, response.body]).to.deep.equal([205, null])
      await raw.closed()
    } finally {
      await raw.stop()
    }
  })

  it('rejects with ENOTFOUND if the lookup returns no address', async () => {
    const later: LookupFunction = (_hostname, _options, callback) => void setImmediate(callback, null, [])
    for (const lookup of [later, nameServer([])])
      for (const allowHosts of [[], ['nowhere.example']]) {
        const failure = await createGuardedFetch({ lookup, allowHosts })('http://nowhere.example/').catch(
          error => error,
        )
        expect(failure).to.be.instanceOf(TypeError)
        expect(failure.cause.code).to.equal('ENOTFOUND')
      }
  })
})
