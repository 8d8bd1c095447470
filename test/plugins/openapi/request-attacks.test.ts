// Arguments, responses and servers that attack the host through an OpenAPI operation. Prints the number of attacks per kind.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import type { Operation } from '../../../plugins/openapi/operation.ts'
import { createGate } from '../../support/gate.ts'
import { type Api, contextOf, operationAt, parameter, requesterOf, resultOf, sentBy, startApi, textOf } from './api.ts'
import { count, printCounts } from './attack-counts.ts'

const inPath = (given: Partial<Operation> = {}): Partial<Operation> => ({
  path: '/users/{id}/profile',
  parameters: [parameter({ name: 'id', in: 'path' })],
  ...given,
})

/** Path values that are, or that a lenient server decodes to, another path. */
const TRAVERSALS = [
  '.',
  '..',
  '../admin',
  '..%2fadmin',
  '../../etc/passwd',
  'x/../../admin',
  'x/..',
  './x',
  '/../admin',
  '%2e',
  '%2e%2e',
  '%2E%2e%2Fadmin',
  '.%2e/admin',
  '%2e./admin',
  '%252e%252e',
  '%252e%252e%252fadmin',
  '%25252e%25252e%25252fadmin',
  '..%255cadmin',
  '..\\admin',
  'a\\..\\..\\admin',
  '%5c..%5cadmin',
  '%255c',
  '..;/admin',
  '..;x=1/admin',
  '%2e%2e;/admin',
  '..%3b/admin',
  ' .. /admin',
  '..%20/admin',
  '..%09/admin',
  '..%00/admin',
  '..\u0000',
  '..%0d%0a',
  '．．/admin',
  '．．／admin',
  '\u2024\u2024/admin',
  '\u2025/admin',
  '..＼admin',
  '..／admin',
  '%ef%bc%8e%ef%bc%8e/admin',
  '%c0%ae%c0%ae/admin',
  '%c0%ae%c0%ae%c0%afadmin',
  '%e0%80%ae%e0%80%ae/admin',
  '%25%32%65%25%32%65',
  '%2525252525252e',
  '',
]

const SAFE: readonly (readonly [value: string, sent: string])[] = [
  ['a.b', 'a.b'],
  ['...', '...'],
  ['..a', '..a'],
  ['a..', 'a..'],
  ['v1.2.3', 'v1.2.3'],
  ['heads/main', 'heads%2Fmain'],
  ['100%', '100%25'],
  ['a?b#c', 'a%3Fb%23c'],
  ['a b', 'a%20b'],
  ['a%20b', 'a%2520b'],
  ["o'neil@example.com", 'o%27neil%40example.com'],
  ['蓝', '%E8%93%9D'],
]

const LINE_BREAKS = ['\r\n', '\n', '\r', '\u0000', '\u000b', '\u0085', '\u2028', '\u010d\u010a', '嘍嘊']

describe('Attacks through an OpenAPI operation', () => {
  let api: Api

  before(async () => {
    api = await startApi()
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
    printCounts()
  })
  afterEach(() => {
    api.answer = (_, res) => res.setHeader('Content-Type', 'application/json').end('{"ok":true}')
  })

  describe('with path arguments', () => {
    for (const style of ['simple', 'label', 'matrix'] as const) {
      for (const value of TRAVERSALS) {
        // `;id` is a segment without a value.
        if (value === '' && style === 'matrix') continue
        it(`refuse ${JSON.stringify(value)} in style ${style}`, async () => {
          count('path traversal')
          const operation = inPath({ parameters: [parameter({ name: 'id', in: 'path', style })] })
          const { sent, result } = await sentBy(api, operation, { id: value })
          expect(sent).to.equal(undefined)
          expect(result.isError).to.equal(true)
          expect(textOf(result)).to.match(/^The argument "id" /)
        })
      }
    }

    for (const [value, expected] of SAFE) {
      it(`send ${JSON.stringify(value)} as one segment`, async () => {
        const { sent } = await sentBy(api, inPath(), { id: value })
        expect(sent?.url).to.equal(`/users/${expected}/profile`)
      })
    }

    it('refuse attacks in items and keys', async () => {
      for (const value of [['a', '..'], ['../x'], { '..': 'a' }, { a: '..' }]) {
        count('path traversal')
        const { sent } = await sentBy(api, inPath(), { id: value })
        expect(sent, JSON.stringify(value)).to.equal(undefined)
      }
    })

    it('refuse parts that make a dot segment together', async () => {
      count('path traversal')
      const parameters = [parameter({ name: 'a', in: 'path' }), parameter({ name: 'b', in: 'path' })]
      const { sent } = await sentBy(api, { path: '/x/{a}.{b}/y', parameters }, { a: '.', b: '.' })
      expect(sent).to.equal(undefined)
      const { sent: label } = await sentBy(
        api,
        { path: '/x/{a}', parameters: [parameter({ name: 'a', in: 'path', style: 'label' })] },
        { a: '' },
      )
      expect(label).to.equal(undefined)
    })

    it('refuse templates of a document that leave the base path', async () => {
      for (const path of ['/../admin', '/a/%2e%2e/%2e%2e/admin', '/./x']) {
        count('path traversal')
        const { request } = requesterOf(api)
        const before = api.requests.length
        const result = await resultOf(request(operationAt(`${api.url}/base`, { path }), {}, contextOf()))
        await request.close()
        expect(result.isError).to.equal(true)
        expect(api.requests.length).to.equal(before)
      }
    })

    it('refuse missing, null and empty values', async () => {
      for (const value of [undefined, null, [], {}, [null]]) {
        count('path traversal')
        const { sent, result } = await sentBy(api, inPath(), { id: value })
        expect(sent, JSON.stringify(value)).to.equal(undefined)
        expect(textOf(result)).to.include('must not be empty')
      }
    })
  })

  describe('with line breaks', () => {
    for (const place of ['header', 'cookie', 'query', 'path'] as const) {
      for (const character of LINE_BREAKS) {
        it(`send no second line for ${JSON.stringify(character)} in ${place}`, async () => {
          count('line breaks')
          const value = `a${character}X-Injected: 1${character}${character}GET /admin HTTP/1.1`
          const path = place === 'path' ? '/x/{v}' : '/x'
          const operation = { path, parameters: [parameter({ name: 'v', in: place })] }
          const before = api.requests.length
          const { sent } = await sentBy(api, operation, { v: value })
          expect(api.requests.length - before).to.be.at.most(1)
          expect(sent?.headers['x-injected']).to.equal(undefined)
          if (place === 'header') expect(sent).to.equal(undefined)
          if (sent) expect(sent.rawHeaders.join('\n')).not.to.match(/[\r\n]X-Injected/)
        })
      }
    }

    it('keep names of multipart fields in one line', async () => {
      count('line breaks')
      const name = 'a"\r\nX-Injected: 1\r\n\r\nb'
      const body = {
        mediaType: 'multipart/form-data',
        kind: 'multipart',
        required: true,
        schema: {},
        from: { argument: ['body'] },
        encoding: new Map([[name, { contentType: 'text/plain\r\nX-Injected: 2' }]]),
        binary: new Set<string>(),
      } as const
      const { sent } = await sentBy(api, { method: 'post', body }, { body: { [name]: 'x' } })
      expect(sent?.body.toString()).not.to.match(/^X-Injected/m)
    })
  })

  describe('with headers of the connection', () => {
    for (const name of [
      'Host',
      'Content-Length',
      'Transfer-Encoding',
      'Connection',
      'Keep-Alive',
      'Upgrade',
      'Expect',
      'TE',
      'Trailer',
      'Cookie',
      'Authorization',
      'Proxy-Authorization',
      'Forwarded',
      'X-Forwarded-For',
      'X-Forwarded-Host',
      'X-Real-IP',
      'X-HTTP-Method-Override',
      'X-HTTP-Method',
      'X-Method-Override',
      'X-Original-URL',
      'X-Rewrite-URL',
      'Content-Type',
      'Content-Encoding',
      'Accept-Encoding',
      'DPoP',
      'Mcp-Session-Id',
      'bad name',
      'bad\r\nname',
      'bad:name',
    ]) {
      it(`never take ${JSON.stringify(name)} from an argument`, async () => {
        count('header smuggling')
        const { sent } = await sentBy(api, { parameters: [parameter({ name, in: 'header' })] }, { [name]: 'evil' })
        expect(JSON.stringify(sent?.rawHeaders)).not.to.include('evil')
        expect(sent?.headers.host).to.equal(api.host)
      })
    }

    it('let no argument replace a configured header or credential', async () => {
      const schemes = new Map([['key', { type: 'apiKey', name: 'X-Key', in: 'header' } as const]])
      const parameters = [parameter({ name: 'x-key', in: 'header' }), parameter({ name: 'X-Tenant', in: 'header' })]
      const { sent } = await sentBy(
        api,
        { parameters, security: [new Map([['key', []]])] },
        { 'x-key': 'evil', 'X-Tenant': 'evil' },
        { schemes, given: { key: 'the-real-key' }, headers: { 'x-tenant': 'ours' } },
      )
      count('header smuggling')
      expect(sent?.headers['x-key']).to.equal('the-real-key')
      expect(sent?.headers['x-tenant']).to.equal('ours')
    })

    it('let no query argument replace a key or add parameters', async () => {
      const schemes = new Map([['key', { type: 'apiKey', name: 'api_key', in: 'query' } as const]])
      const parameters = [
        parameter({ name: 'api_key', in: 'query' }),
        parameter({ name: 'q', in: 'query', allowReserved: true }),
      ]
      const { sent } = await sentBy(
        api,
        { parameters, security: [new Map([['key', []]])] },
        { api_key: 'evil', q: 'x&api_key=evil#y' },
        { schemes, given: { key: 'the-real-key' } },
      )
      count('header smuggling')
      expect(sent?.url).to.equal('/things?q=x%26api_key=evil%23y&api_key=the-real-key')
    })
  })

  describe('with keys of objects', () => {
    const open = { additionalProperties: true }
    const schemes = new Map([
      ['query', { type: 'apiKey', name: 'api_key', in: 'query' } as const],
      ['cookie', { type: 'apiKey', name: 'session', in: 'cookie' } as const],
    ])
    const options = { schemes, given: { query: 'the-real-key', cookie: 'the-real-key' } }
    const security = [new Map([...schemes.keys()].map(name => [name, []]))]
    const others = [
      parameter({ name: 'tenant', in: 'query' }),
      parameter({ name: 'o[status]', in: 'query' }),
      parameter({ name: 'more', in: 'query', schema: { properties: { role: {} } } }),
      parameter({ name: 'theme', in: 'cookie' }),
    ]
    const refs = { Known: { allOf: [{ properties: { a: {} } }, { anyOf: [{ properties: { b: {} } }] }] } }

    for (const [what, given, value, isSent] of [
      ['a query credential', { in: 'query', schema: open }, { api_key: 'evil' }],
      ['a query credential in upper case', { in: 'query', schema: open }, { API_KEY: 'evil' }],
      ['a query credential as an array', { in: 'query', schema: open }, { 'api_key[]': 'evil' }],
      ['a query credential that PHP normalizes', { in: 'query', schema: open }, { 'api.key': 'evil' }],
      ['another parameter', { in: 'query', schema: open }, { tenant: 'evil' }],
      ['a key of another parameter', { in: 'query', schema: open }, { role: 'evil' }],
      ['a parameter of the path template', { in: 'query', schema: open }, { mode: 'evil' }],
      ['another style', { in: 'query', style: 'pipeDelimited', explode: true, schema: open }, { tenant: 'evil' }],
      ['a part of a deep object', { in: 'query', style: 'deepObject', schema: open }, { status: 'evil' }],
      ['an unknown key', { in: 'query', schema: {} }, { admin: 'evil' }],
      ['an unknown key next to known ones', { in: 'query', schema: { $ref: '#/$defs/Known' } }, { admin: 'evil' }],
      ['a cookie credential', { in: 'cookie', schema: open }, { session: 'evil' }],
      ['another cookie', { in: 'cookie', schema: open }, { theme: 'evil' }],
      ['an unknown cookie', { in: 'cookie', schema: {} }, { admin: 'evil' }],
      ['known keys', { in: 'query', schema: { $ref: '#/$defs/Known' } }, { a: 'good', b: 'good' }, true],
      ['any key', { in: 'query', schema: open }, { any: 'good' }, true],
      ['a deep key', { in: 'query', style: 'deepObject' }, { any: 'good' }, true],
    ] as const) {
      it(`${isSent ? 'set' : 'never set'} ${what}`, async () => {
        count('parameters by keys of objects')
        const parameters = [parameter({ name: 'o', ...given }), ...others]
        const operation = { path: '/things?mode=safe', parameters, security, schemas: refs }
        const { sent, result } = await sentBy(api, operation, { o: value }, options)
        if (isSent) return expect(sent?.url).to.include('=good')
        expect(sent).to.equal(undefined)
        return expect(textOf(result)).to.match(/^The argument "o" (?:sets "|has the unknown key ")/)
      })
    }

    it('never set another property of a form', async () => {
      count('parameters by keys of objects')
      const body = {
        mediaType: 'application/x-www-form-urlencoded',
        kind: 'form',
        required: true,
        schema: { properties: { o: {}, amount: {} } },
        from: {
          properties: new Map([
            ['o', ['o'] as const],
            ['amount', ['amount'] as const],
          ]),
        },
        encoding: new Map([['o', { style: 'form', explode: true } as const]]),
        binary: new Set<string>(),
      } as const
      const { sent, result } = await sentBy(api, { method: 'post', body }, { o: { amount: 'evil' }, amount: 1 })
      expect(sent).to.equal(undefined)
      expect(textOf(result)).to.match(/^The argument "o" sets "amount", which is another parameter/)
    })
  })

  describe('with addresses', () => {
    const withoutHosts = { allowHosts: [] as string[] }

    for (const url of [
      'http://127.0.0.1:PORT',
      'http://localhost:PORT',
      'http://[::1]:PORT',
      'http://[::ffff:127.0.0.1]:PORT',
      'http://0.0.0.0:PORT',
      'http://2130706433:PORT',
      'http://0x7f000001:PORT',
      'http://127.1:PORT',
      'https://127.0.0.1:PORT',
      'https://localhost:PORT',
      'https://10.0.0.1',
      'https://192.168.1.1',
      'https://169.254.169.254',
      'http://169.254.169.254/latest/meta-data',
      'https://[fd00::1]',
      'https://[fe80::1]',
      'http://example.com',
      'https://100.64.0.1',
    ]) {
      it(`connect to ${url} only if allowHosts has it`, async () => {
        count('private addresses and plain http')
        const { request, lines } = requesterOf(api, withoutHosts)
        const before = api.requests.length
        const baseUrl = url.replace('PORT', api.host.split(':')[1] ?? '')
        const result = await resultOf(request(operationAt(baseUrl), {}, contextOf()))
        await request.close()
        expect(textOf(result)).to.match(/^The host blocked the request/)
        expect(textOf(result)).not.to.match(/\d+\.\d+\.\d+/)
        expect(lines.map(({ fields }) => Reflect.get(fields, 'code'))).to.deep.equal(['MH3451'])
        expect(api.requests.length).to.equal(before)
      })
    }

    it('report an address at startup', async () => {
      const { request } = requesterOf(api, withoutHosts)
      expect(await request.reasonAgainst(api.url)).to.include('plain http')
      expect(await request.reasonAgainst('https://10.0.0.1')).to.include('10.0.0.1')
      expect(await request.reasonAgainst('https://api.example.com')).to.equal(undefined)
      await request.close()
    })
  })

  describe('with redirects', () => {
    let other: Server
    let otherUrl: string
    const seen: string[] = []

    before(async () => {
      other = createServer((req, res) => {
        seen.push(JSON.stringify(req.headers))
        res.end('other')
      })
      await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
      otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    })
    after(() => {
      other.closeAllConnections()
      other.close()
    })

    const redirectTo =
      (location: string, status = 302): Api['answer'] =>
      (request, res) => {
        if (request.url.startsWith('/moved')) res.end('moved')
        else res.writeHead(status, { Location: location }).end()
      }

    for (const location of [
      'http://169.254.169.254/latest/meta-data',
      'http://OTHER/',
      '//OTHER/',
      'http://127.1:OTHERPORT/',
      'http://[::ffff:7f00:1]:OTHERPORT/',
      'https://10.1.2.3/',
      'http://user:password@HOST/moved',
      'file:///etc/passwd',
      'ftp://HOST/moved',
      'javascript:alert(1)',
      'gopher://HOST/',
      'http://',
    ]) {
      it(`do not follow to ${location}`, async () => {
        count('redirects')
        const port = otherUrl.split(':')[2] ?? ''
        api.answer = redirectTo(
          location.replace('OTHERPORT', port).replace('OTHER', `127.0.0.1:${port}`).replace('HOST', api.host),
        )
        const { result } = await sentBy(api, {}, {}, { retries: 0 })
        expect(result.isError).to.equal(true)
        expect(seen).to.deep.equal([])
      })
    }

    it('to schemes other than http and https end the call with the redirect response, without a retry', async () => {
      count('redirects')
      let requests = 0
      api.answer = (request, res) => {
        requests++
        redirectTo('file:///etc/passwd')(request, res)
      }
      const { result } = await sentBy(api, {}, {})
      expect([requests, result.isError]).to.deep.equal([1, true])
      expect(result.content[0]).to.have.property('text').that.includes('302')
    })

    it('send no credentials, cookies and arguments to another origin', async () => {
      count('redirects')
      api.answer = redirectTo(`${otherUrl}/elsewhere`)
      const schemes = new Map([['key', { type: 'http', scheme: 'bearer' } as const]])
      const { result } = await sentBy(
        api,
        {
          security: [new Map([['key', []]])],
          parameters: [parameter({ name: 'X-Case', in: 'header' }), parameter({ name: 'c', in: 'cookie' })],
        },
        { 'X-Case': 'case-4711', c: 'cookie-4711' },
        {
          schemes,
          given: { key: 'the-real-key' },
          headers: { 'x-tenant': 'tenant-4711' },
          allowHosts: [api.host, new URL(otherUrl).host],
        },
      )
      expect(textOf(result)).to.equal('other')
      expect(seen).to.have.length(1)
      expect(seen[0]).not.to.match(/the-real-key|4711/)
      seen.length = 0
    })

    it('follow within the origin with all headers, and not without end', async () => {
      api.answer = redirectTo('/moved?x=1', 307)
      const { result } = await sentBy(api, {}, {}, { headers: { 'x-tenant': 'ours' } })
      expect(textOf(result)).to.equal('moved')
      expect(api.requests.at(-1)).to.include({ url: '/moved?x=1' })
      expect(api.requests.at(-1)?.headers['x-tenant']).to.equal('ours')
      count('redirects')
      api.answer = redirectTo('/again')
      const before = api.requests.length
      const { result: endless } = await sentBy(api, {}, {})
      expect(textOf(endless)).to.match(/^HTTP 302: the API redirects to \/again/)
      expect(api.requests.length - before).to.equal(6)
    })

    for (const status of [301, 302, 303, 307, 308]) {
      it(`do not repeat a POST after ${status}`, async () => {
        count('redirects')
        api.answer = redirectTo('/moved', status)
        const before = api.requests.length
        const { result } = await sentBy(api, { method: 'post' }, {})
        expect(textOf(result)).to.include('The redirect was not followed')
        expect(api.requests.length - before).to.equal(1)
      })
    }
  })

  describe('with responses', () => {
    const bomb = Buffer.alloc(5_000_000, 'a')
    const limited = { maxResponse: 100_000 }
    const isTooLarge = /^The response is larger than 98 kB/

    for (const [encoding, bytes] of [
      ['gzip', gzipSync(bomb)],
      ['br', brotliCompressSync(bomb)],
      ['deflate', deflateRawSync(bomb)],
    ] as const) {
      it(`stop a bomb of ${encoding}`, async () => {
        count('response bombs')
        api.answer = (_, res) => res.writeHead(200, { 'Content-Encoding': encoding }).end(bytes)
        const { result } = await sentBy(api, {}, {}, limited)
        expect(textOf(result)).to.match(isTooLarge)
      })
      it(`stop an error that is a bomb of ${encoding}`, async () => {
        count('response bombs')
        api.answer = (_, res) => res.writeHead(500, { 'Content-Encoding': encoding }).end(bytes)
        const { result } = await sentBy(api, {}, {}, limited)
        expect(textOf(result)).to.equal('HTTP 500 Internal Server Error')
      })
    }

    it('refuse several encodings, unknown ones and broken data', async () => {
      for (const [encoding, body] of [
        ['gzip, gzip', gzipSync(gzipSync('x'))],
        ['zstd', Buffer.from('x')],
        ['gzip', Buffer.from('no gzip')],
        ['gzip', gzipSync('x'.repeat(1_000)).subarray(0, 15)],
        ['__proto__', Buffer.from('x')],
      ] as const) {
        count('response bombs')
        api.answer = (_, res) => res.writeHead(200, { 'Content-Encoding': encoding }).end(body)
        const { result } = await sentBy(api, {}, {}, limited)
        expect(textOf(result)).to.match(/^The API sent no usable response/)
      }
    })

    it('stop at the limit while reading, also without a declared size', async () => {
      count('response bombs')
      let written = 0
      const closed = createGate()
      api.answer = (_, res) => {
        res.once('close', closed.open)
        const chunk = Buffer.alloc(65_536, 'a')
        const write = () => {
          while (!res.destroyed && written < 500_000_000) {
            written += chunk.length
            if (!res.write(chunk)) return void res.once('drain', write)
          }
          res.end()
        }
        write()
      }
      const { request } = requesterOf(api, limited)
      expect(textOf(await resultOf(request(operationAt(api.url), {}, contextOf())))).to.match(isTooLarge)
      await closed.opened
      expect(written).to.be.below(50_000_000)
      await request.close()
    })

    it('name a declared size', async () => {
      count('response bombs')
      api.answer = (_, res) => res.writeHead(200, { 'Content-Length': 5_300_000 }).write('a')
      const { result } = await sentBy(api, {}, {}, limited)
      expect(textOf(result)).to.match(/^The response is larger than 98 kB \(5\.1 MB\) and was not read/)
    })

    it('end slow responses at the time limit', async () => {
      count('response bombs')
      const timers: NodeJS.Timeout[] = []
      api.answer = (_, res) => {
        res.writeHead(200)
        timers.push(setInterval(() => res.write('a'), 20))
      }
      const { result } = await sentBy(api, {}, {}, { timeout: 200 })
      for (const timer of timers) clearInterval(timer)
      expect(textOf(result)).to.equal('The API did not respond within 0.2 s.')
    })

    it('return deep JSON as text', async () => {
      for (const deep of ['['.repeat(100_000), '['.repeat(5_000) + ']'.repeat(5_000), '{"a":'.repeat(2_000)]) {
        count('response bombs')
        api.answer = (_, res) => res.setHeader('Content-Type', 'application/json').end(deep)
        const { result } = await sentBy(api, {}, {})
        expect(result.structuredContent).to.equal(undefined)
        expect(textOf(result)).to.include('nested too deeply')
      }
    })
  })

  describe('that make the API repeat secrets', () => {
    const key = 'sk-live "4711"/+='
    const echo: Api['answer'] = (request, res) => {
      const status = Number(/status=(\d+)/.exec(request.url)?.[1] ?? 200)
      const said = { headers: request.headers, url: request.url }
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(said))
    }
    const parameters = [parameter({ name: 'status', in: 'query' })]
    const kinds = {
      bearer: [{ type: 'http', scheme: 'bearer' }, key],
      basic: [
        { type: 'http', scheme: 'basic' },
        { username: 'me', password: key },
      ],
      header: [{ type: 'apiKey', in: 'header', name: 'x-key' }, key],
      query: [{ type: 'apiKey', in: 'query', name: 'key' }, key],
      cookie: [{ type: 'apiKey', in: 'cookie', name: 'key' }, key],
    } as const

    for (const [kind, [scheme, credential]] of Object.entries(kinds)) {
      for (const status of [200, 302, 400, 401, 403, 404, 429, 500]) {
        it(`show no secret of a ${kind} credential in a response with ${status}`, async () => {
          count('secrets in responses')
          api.answer = echo
          const { sent, result } = await sentBy(
            api,
            { parameters, security: [new Map([['s', []]])] },
            { status },
            { schemes: new Map([['s', scheme]]), given: { s: credential }, retries: 0 },
          )
          expect(sent).not.to.equal(undefined)
          const shown = JSON.stringify(result)
          for (const secret of [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key), btoa(`me:${key}`)]) {
            expect(shown).not.to.include(secret)
          }
          expect(shown).not.to.include('sk-live')
        })
      }
    }

    it('show no request data if the API cannot be reached', async () => {
      count('secrets in responses')
      const gone = await startApi()
      await gone[Symbol.asyncDispose]()
      const schemes = new Map([['s', kinds.query[0]]])
      const { result } = await sentBy(
        gone,
        { parameters, security: [new Map([['s', []]])] },
        { status: 'argument-4711' },
        { schemes, given: { s: key }, retries: 0 },
      )
      expect(textOf(result)).to.match(/^The API cannot be reached \(ECONNREFUSED\)/)
    })
  })
})
