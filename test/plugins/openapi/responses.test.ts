// Tool results from the responses of an API.
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import type { CallToolResult } from '../../../core/index.ts'
import type { Operation } from '../../../plugins/openapi/operation.ts'
import { type Api, type Given, parameter, sentBy, startApi, textOf } from './api.ts'

type Headers = Readonly<Record<string, string | string[]>>

describe('The result of an OpenAPI operation', () => {
  let api: Api
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())

  async function resultFor(
    body: string | Buffer,
    headers: Headers | string = 'application/json',
    {
      status = 200,
      operation = {},
      args = {},
      options = {},
    }: { status?: number; operation?: Partial<Operation>; args?: object; options?: Given } = {},
  ): Promise<CallToolResult> {
    const all = typeof headers === 'string' ? { 'Content-Type': headers } : headers
    api.answer = (_, res) => res.writeHead(status, all).end(body)
    return (await sentBy(api, operation, args as Record<string, unknown>, { retries: 0, ...options })).result
  }

  describe('for JSON', () => {
    it('has the value as structured content and as text', async () => {
      expect(await resultFor('{"a":[1,"ü"]}')).to.deep.equal({
        content: [{ type: 'text', text: '{"a":[1,"ü"]}' }],
        structuredContent: { a: [1, 'ü'] },
      })
    })

    it('has compact text for indented JSON, and takes any JSON type', async () => {
      expect(await resultFor('{\n  "a": 1\n}\n', 'application/vnd.api+json; charset=utf-8')).to.deep.equal({
        content: [{ type: 'text', text: '{"a":1}' }],
        structuredContent: { a: 1 },
      })
      for (const json of ['[1]', '"a"', 'null', '0', 'true']) {
        expect((await resultFor(json)).structuredContent, json).to.deep.equal(JSON.parse(json))
      }
    })

    it('has JSON without a content type, with a byte order mark, and compressed', async () => {
      for (const [body, headers] of [
        ['{"a":1}', {}],
        ['\ufeff{"a":1}', { 'Content-Type': 'application/json' }],
        [gzipSync('{"a":1}'), { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }],
      ] as const) {
        expect((await resultFor(body, headers)).structuredContent).to.deep.equal({ a: 1 })
      }
    })

    it('keeps all digits of numbers', async () => {
      for (const exact of [
        '0.1',
        '1.50',
        '-0',
        '1e3',
        '9007199254740991',
        '1.7976931348623157e308',
        '0.30000000000000004',
        '1E-7',
        '12345678901234567000',
      ]) {
        const { structuredContent, content } = await resultFor(`{"n": ${exact}}`)
        expect(structuredContent, exact).to.deep.equal({ n: Number(exact) })
        expect(content).to.have.length(1)
      }
      for (const inexact of [
        '9007199254740993',
        '-12345678901234567890',
        '1e400',
        '0.1234567890123456789',
        '123456789012345678.25',
        '1e-400',
      ]) {
        const result = await resultFor(`{"n": ${inexact}, "s": "9007199254740993"}`)
        expect(result.structuredContent, inexact).to.deep.equal({ n: inexact, s: '9007199254740993' })
        expect(textOf(result)).to.equal(
          `{"n": ${inexact}, "s": "9007199254740993"}\n1 number of the response cannot be represented exactly. The structured content has strings in their place.`,
        )
      }
    })

    it('is not delayed by numbers with many digits', async () => {
      const zeros = '0'.repeat(900_000)
      for (const inexact of [
        `1${zeros}1`,
        `1e${'9'.repeat(900_000)}`,
        `0.${zeros}1`,
        `1e-123456`,
        `1${'0'.repeat(400)}`,
      ]) {
        const { structuredContent } = await resultFor(`{"n": ${inexact}}`)
        expect(structuredContent).to.deep.equal({ n: inexact })
      }
    })

    it('drops no member with a repeated key', async () => {
      for (const json of ['{"a":1,"b":2,"a":3}', '[{"x":{"a":1,"\\u0061":2}}]']) {
        const result = await resultFor(json)
        expect(result).not.to.have.property('structuredContent')
        expect(textOf(result)).to.equal(
          `${json}\nThe JSON response repeats the key "a", so there is no structured content.`,
        )
      }
      expect((await resultFor('[{"a":1},{"a":2,"b":{"a":"a"}}, "a", "a"]')).structuredContent).to.have.length(4)
    })

    it('is an error if the document promises JSON and the response is a page or invalid JSON', async () => {
      const page = await resultFor('<p>Maintenance</p>', 'text/html; charset=utf-8')
      expect(page.isError).to.equal(true)
      expect(textOf(page)).to.equal('The API returned text/html; its document promises application/json.\nMaintenance')
      const cut = await resultFor('{"a":')
      expect(cut.isError).to.equal(true)
      expect(textOf(cut)).to.equal('The API returned invalid JSON; its document promises application/json.\n{"a":')
    })

    it('is text if the document promises no JSON, or the declared type is wrong', async () => {
      for (const accepts of [[], ['text/html'], ['application/json', 'text/html'], ['*/*']]) {
        const operation = { accepts }
        const page = await resultFor('<p>Hi</p>', 'text/html', { operation })
        expect(page).to.deep.equal({ content: [{ type: 'text', text: '<p>Hi</p>' }] })
        const cut = await resultFor('{"a":', 'application/json', { operation })
        expect(cut.isError).to.equal(undefined)
        expect(textOf(cut)).to.match(/^\{"a":\nThe response is declared as JSON/)
      }
      for (const type of ['text/html', 'text/plain']) {
        expect(await resultFor('{"a":1}', type)).to.deep.equal({ content: [{ type: 'text', text: '{"a":1}' }] })
      }
      expect((await resultFor('<p>Hi</p>', 'text/plain')).isError).to.equal(undefined)
      const deep = '['.repeat(600) + ']'.repeat(600)
      expect((await resultFor(deep)).isError).to.equal(undefined)
    })
  })

  describe('for other content', () => {
    for (const [type, body, expected] of [
      ['text/plain', 'Grüße', { type: 'text', text: 'Grüße' }],
      ['text/plain; charset=ISO-8859-1', Buffer.from('Grüße', 'latin1'), { type: 'text', text: 'Grüße' }],
      ['application/xml', '<a/>', { type: 'text', text: '<a/>' }],
      ['application/atom+xml', '<a/>', { type: 'text', text: '<a/>' }],
      ['image/svg+xml', '<svg/>', { type: 'text', text: '<svg/>' }],
      ['application/x-ndjson', '{}\n{}\n', { type: 'text', text: '{}\n{}\n' }],
      ['image/png', Buffer.from([137, 80]), { type: 'image', data: 'iVA=', mimeType: 'image/png' }],
      ['Audio/MPEG', Buffer.from([255, 0]), { type: 'audio', data: '/wA=', mimeType: 'audio/mpeg' }],
      [
        'application/pdf',
        Buffer.from([255]),
        { type: 'resource', resource: { uri: 'URL', mimeType: 'application/pdf', blob: '/w==' } },
      ],
      [
        'text/plain',
        Buffer.from([255, 254]),
        { type: 'resource', resource: { uri: 'URL', mimeType: 'application/octet-stream', blob: '//4=' } },
      ],
      ['not a type', 'text', { type: 'text', text: 'text' }],
    ] as const) {
      it(`of type ${type} is ${expected.type}`, async () => {
        const { content, structuredContent } = await resultFor(body, type)
        expect(structuredContent).to.equal(undefined)
        expect(JSON.stringify(content).replace(`${api.url}/things`, 'URL')).to.equal(JSON.stringify([expected]))
      })
    }

    it('names the resource without its query', async () => {
      const schemes = new Map([['s', { type: 'apiKey', in: 'query', name: 'key' } as const]])
      const operation = { security: [new Map([['s', []]])], parameters: [parameter({ name: 'q', in: 'query' })] }
      const options = { schemes, given: { s: 'the-real-key' } }
      const result = await resultFor(Buffer.from([255]), 'application/pdf', { operation, args: { q: 'x' }, options })
      expect(JSON.stringify(result)).to.include(`"uri":"${api.url}/things"`)
    })

    it('is the status for an empty response, with the location of a new resource', async () => {
      expect(textOf(await resultFor('', {}, { status: 204 }))).to.equal('HTTP 204 No Content')
      const created = await resultFor('', { Location: '/things/7' }, { status: 201 })
      expect(created).to.deep.equal({ content: [{ type: 'text', text: 'HTTP 201 Created\nLocation: /things/7' }] })
      const head = await resultFor('', { 'Content-Length': '12' }, { operation: { method: 'head' } })
      expect(textOf(head)).to.equal('HTTP 200 OK')
      expect(await resultFor('', {}, { status: 304 })).not.to.have.property('isError')
    })
  })

  describe('for an error', () => {
    it('has the status and an excerpt', async () => {
      const result = await resultFor('{"error":"no such thing"}', 'application/json', { status: 404 })
      expect(result).to.deep.equal({
        content: [{ type: 'text', text: 'HTTP 404 Not Found\n{"error":"no such thing"}' }],
        isError: true,
      })
    })

    it('shows a problem document by its texts', async () => {
      const problem = { type: 'about:blank', title: 'Out of credit', detail: 'You need 30.', balance: 10 }
      const result = await resultFor(JSON.stringify(problem), 'application/problem+json', { status: 403 })
      expect(textOf(result)).to.equal(`HTTP 403 Forbidden\nOut of credit: You need 30.\n${JSON.stringify(problem)}`)
    })

    it('cuts the excerpt between characters', async () => {
      const result = await resultFor('ü'.repeat(5_000), 'text/plain; charset=utf-8', {
        status: 400,
        options: { errorExcerpt: 2_047 },
      })
      expect(textOf(result)).to.equal(`HTTP 400 Bad Request\n${'ü'.repeat(1_023)}… (cut after 2 kB)`)
    })

    it('names binary content, has no status text of the server, and a valid Retry-After only', async () => {
      expect(textOf(await resultFor(Buffer.from([1]), 'image/png', { status: 500 }))).to.equal(
        'HTTP 500 Internal Server Error\nThe body is image/png.',
      )
      const limited = await resultFor('', { 'Retry-After': '120' }, { status: 429 })
      expect(textOf(limited)).to.equal('HTTP 429 Too Many Requests\nRetry-After: 120')
      const odd = await resultFor('', { 'Retry-After': '<script>' }, { status: 599 })
      expect(textOf(odd)).to.equal('HTTP 599')
    })

    it('shows the text of an error page, at once for any markup', async () => {
      const page = '<html><style>p { color: red }</style><body><h1>Down</h1>\n<script>go()</script><p>for\nrepair</p>'
      expect(textOf(await resultFor(page, 'text/html', { status: 503 }))).to.equal(
        'HTTP 503 Service Unavailable\nDown for repair',
      )
      for (const markup of ['<', '<script', '<script>', '<style ', ' \n']) {
        const started = process.cpuUsage().user
        await resultFor(markup.repeat(65_000 / markup.length), 'text/html', { status: 503 })
        expect(process.cpuUsage().user - started, markup).to.be.below(1_000_000)
      }
    })

    it('names the credentials as the cause of a 401 response', async () => {
      const schemes = new Map([['key', { type: 'http', scheme: 'bearer' } as const]])
      const operation = { security: [new Map([['key', []]])] }
      const options = { schemes, given: { key: 'the-real-key' } }
      expect(textOf(await resultFor('', {}, { status: 401, operation, options }))).to.match(/refused the credentials/)
      expect(textOf(await resultFor('', {}, { status: 401 }))).to.match(/requires credentials/)
    })

    it('reads a part of a large error', async () => {
      const result = await resultFor('a'.repeat(1_000_000), 'text/plain', { status: 500, options: { maxResponse: 10 } })
      expect(textOf(result)).to.match(/^HTTP 500 Internal Server Error\na{2048}… \(cut after 2 kB\)$/)
    })
  })

  describe('for a page of a list', () => {
    const integer = (name: string) => parameter({ name, in: 'query', schema: { type: 'integer' } })
    const string = (name: string) => parameter({ name, in: 'query', schema: { type: 'string' } })

    for (const [what, headers, body, parameters, args, expected] of [
      [
        'a Link header',
        { Link: '</things?page=1>; rel="prev", </things?page=3&per_page=30>; rel="next"' },
        [],
        [integer('page'), integer('per_page')],
        { page: 2, per_page: 30 },
        '{"page":3}',
      ],
      [
        'several Link headers',
        { Link: ['<?page=9>; rel=last', '<?page=2>; rel=next'] },
        [],
        [integer('page')],
        {},
        '{"page":2}',
      ],
      [
        'a Link with a long cursor',
        { Link: '<?after=aXQ%3D>; title="a, b"; rel="next last"' },
        [],
        [string('after')],
        {},
        '{"after":"aXQ="}',
      ],
      ['next_page_token', {}, { next_page_token: 'x1' }, [string('page_token')], {}, '{"page_token":"x1"}'],
      ['nextPageToken', {}, { nextPageToken: 'x1' }, [string('pageToken')], {}, '{"pageToken":"x1"}'],
      [
        'next_cursor in metadata',
        {},
        { response_metadata: { next_cursor: 'x2' } },
        [string('cursor')],
        {},
        '{"cursor":"x2"}',
      ],
      ['endCursor', {}, { pageInfo: { hasNextPage: true, endCursor: 'x3' } }, [string('after')], {}, '{"after":"x3"}'],
      ['a next page number', {}, { meta: { next_page: 4 } }, [integer('page')], {}, '{"page":4}'],
      [
        'the last item',
        {},
        { has_more: true, data: [{ id: 'a' }, { id: 'b' }] },
        [string('starting_after')],
        {},
        '{"starting_after":"b"}',
      ],
      ['has_more false', {}, { has_more: false, next_cursor: 'x' }, [string('cursor')], {}, undefined],
      ['an empty cursor', {}, { next_cursor: '' }, [string('cursor')], {}, undefined],
      ['a cursor that no parameter takes', {}, { next_cursor: 'x' }, [string('q')], {}, undefined],
      ['a Link without next', { Link: '<?page=1>; rel="first"' }, [], [integer('page')], {}, undefined],
    ] as const) {
      it(`with ${what} ${expected === undefined ? 'has no hint' : `names ${expected}`}`, async () => {
        const all = { 'Content-Type': 'application/json', ...headers } as Headers
        const { content } = await resultFor(JSON.stringify(body), all, { operation: { parameters }, args })
        const hint = content[1]?.type === 'text' ? content[1].text : undefined
        expect(hint).to.equal(expected && `More results: repeat the call with ${expected}.`)
      })
    }
  })
})
