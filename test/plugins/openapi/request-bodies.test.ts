// Request bodies of an OpenAPI operation, as the API receives them.
import { expect } from 'chai'
import type { BodyKind, PropertyEncoding, RequestBody } from '../../../plugins/openapi/operation.ts'
import { type Api, sentBy, startApi, textOf } from './api.ts'

const MEDIA_TYPES: Readonly<Record<BodyKind, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  binary: 'application/octet-stream',
  text: 'text/plain',
}

const bodyOf = (
  kind: BodyKind,
  {
    encoding = {},
    binary = [],
    ...rest
  }: Partial<Omit<RequestBody, 'encoding' | 'binary'>> & {
    readonly encoding?: Readonly<Record<string, PropertyEncoding>>
    readonly binary?: readonly string[]
  } = {},
): RequestBody => ({
  mediaType: MEDIA_TYPES[kind],
  kind,
  required: true,
  schema: {},
  from: { argument: ['body'] },
  ...rest,
  encoding: new Map(Object.entries(encoding)),
  binary: new Set(binary),
})

describe('The request body of an OpenAPI operation', () => {
  let api: Api
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())

  async function send(body: RequestBody, args: Readonly<Record<string, unknown>>) {
    const { sent, result } = await sentBy(api, { method: 'post', body }, args)
    return { type: sent?.headers['content-type'], text: sent?.body.toString(), sent, result }
  }

  describe('as JSON', () => {
    it('is the argument', async () => {
      const { type, text } = await send(bodyOf('json'), { body: { a: ['ü', null, 1.5], b: {} } })
      expect({ type, text }).to.deep.equal({ type: 'application/json', text: '{"a":["ü",null,1.5],"b":{}}' })
    })

    it('has the media type of the document', async () => {
      const { type, text } = await send(bodyOf('json', { mediaType: 'application/merge-patch+json' }), { body: [] })
      expect({ type, text }).to.deep.equal({ type: 'application/merge-patch+json', text: '[]' })
    })

    const properties = new Map([
      ['id', ['id_body'] as const],
      ['__proto__', ['proto'] as const],
    ])

    it('is made of properties, by their names in the body', async () => {
      const { text } = await send(bodyOf('json', { from: { properties } }), { id_body: 1, proto: { x: 1 }, other: 2 })
      expect(text).to.equal('{"id":1,"__proto__":{"x":1}}')
    })

    it('is an empty object without properties if it is required, otherwise absent', async () => {
      expect((await send(bodyOf('json', { from: { properties } }), {})).text).to.equal('{}')
      const { sent } = await send(bodyOf('json', { from: { properties }, required: false }), {})
      expect(sent?.headers).not.to.have.property('content-type')
      expect(sent?.body.length).to.equal(0)
    })

    it('has no integers that lost digits', async () => {
      const { sent, result } = await send(bodyOf('json'), { body: { ids: [1, Number('12345678901234567890')] } })
      expect(sent).to.equal(undefined)
      expect(textOf(result)).to.match(/^The argument "body" is 12345678901234567000, which is beyond 2\^53/)
    })
  })

  describe('as a form', () => {
    // OpenAPI 3.0.3, "Support for x-www-form-urlencoded Request Bodies".
    it('is the example of the specification', async () => {
      const body = {
        id: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
        address: { streetAddress: '123 Example Dr.', city: 'Somewhere' },
      }
      const { type, sent } = await send(bodyOf('form'), { body })
      expect(type).to.equal('application/x-www-form-urlencoded')
      const form = new URLSearchParams(sent?.body.toString())
      expect([...form]).to.deep.equal([
        ['id', body.id],
        ['address', '{"streetAddress":"123 Example Dr.","city":"Somewhere"}'],
      ])
      expect(sent?.body.toString()).to.include('123+Example+Dr.')
    })

    for (const [what, value, encoding, expected] of [
      ['arrays as repeated names', ['x', 'y z'], {}, 'v=x&v=y+z'],
      ['arrays of objects as JSON', [{ a: 1 }], {}, 'v=%7B%22a%22%3A1%7D'],
      ['arrays with a style', ['x', 'y'], { style: 'form', explode: false }, 'v=x,y'],
      ['arrays as pipeDelimited', ['x', 'y'], { style: 'pipeDelimited', explode: false }, 'v=x%7Cy'],
      ['objects as deepObject', { a: { b: 'c' } }, { style: 'deepObject', explode: true }, 'v%5Ba%5D%5Bb%5D=c'],
      ['objects with explode', { a: 1, b: 2 }, { style: 'form', explode: true }, 'a=1&b=2'],
      ['arrays as JSON', [1, 2], { contentType: 'application/json' }, 'v=%5B1%2C2%5D'],
      ['plus signs and ampersands', 'a+b&c=d', {}, 'v=a%2Bb%26c%3Dd'],
      ['reserved characters', 'a/b&c', { allowReserved: true }, 'v=a/b%26c'],
      ['null, left out', null, {}, ''],
      ['booleans', false, {}, 'v=false'],
    ] as const) {
      it(`sends ${what}`, async () => {
        const { text } = await send(bodyOf('form', { encoding: { v: encoding } }), { body: { v: value } })
        expect(text).to.equal(expected)
      })
    }
  })

  describe('as multipart', () => {
    const parsed = async (body: RequestBody, value: Readonly<Record<string, unknown>>): Promise<FormData> => {
      const { type = '', sent } = await send(body, { body: value })
      return new Response(new Uint8Array(sent?.body ?? []), { headers: { 'content-type': type } }).formData()
    }

    it('has text, JSON and files, each with its type', async () => {
      const png = Buffer.from([0x89, 0x50, 0, 0xff])
      const body = bodyOf('multipart', {
        binary: ['image'],
        encoding: { image: { contentType: 'image/png, image/jpeg' } },
      })
      const form = await parsed(body, { id: 7, meta: { a: 'ü' }, image: png.toString('base64'), gone: null })
      expect([...form.keys()]).to.deep.equal(['id', 'meta', 'image'])
      expect(form.get('id')).to.equal('7')
      const image = form.get('image') as File
      expect(image.type).to.equal('image/png')
      expect(image.name).to.equal('image')
      expect(Buffer.from(await image.arrayBuffer())).to.deep.equal(png)
    })

    it('has one part for each item', async () => {
      const form = await parsed(bodyOf('multipart', { binary: ['files'] }), {
        files: [btoa('one'), btoa('two')],
        tags: ['a', 'b'],
      })
      expect(await Promise.all(form.getAll('files').map(file => (file as File).text()))).to.deep.equal(['one', 'two'])
      expect(form.getAll('tags')).to.deep.equal(['a', 'b'])
    })

    it('declares JSON parts and no type for a range', async () => {
      const body = bodyOf('multipart', { binary: ['f'], encoding: { f: { contentType: 'image/*' } } })
      const { text } = await send(body, { body: { o: { a: 1 }, f: btoa('x') } })
      expect(text).to.include('name="o"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n')
      expect(text).to.include('filename="f"\r\nContent-Type: application/octet-stream\r\n\r\nx\r\n')
    })
  })

  describe('as bytes or text', () => {
    it('is decoded from base64, base64url and data URLs', async () => {
      const bytes = Buffer.from([0xfb, 0xff, 0xbf, 0, 1])
      for (const value of [
        bytes.toString('base64'),
        bytes.toString('base64url'),
        `data:application/octet-stream;base64,${bytes.toString('base64')}`,
        bytes.toString('base64').replace('/', '\n/'),
      ]) {
        const { sent, type } = await send(bodyOf('binary'), { body: value })
        expect(type).to.equal('application/octet-stream')
        expect(sent?.body, value).to.deep.equal(bytes)
      }
    })

    it('is refused if it is no base64 or too large', async () => {
      for (const value of ['not base64!', 'a', '+-aa', 5, {}]) {
        const { sent, result } = await send(bodyOf('binary'), { body: value })
        expect(sent, String(value)).to.equal(undefined)
        expect(textOf(result)).to.match(/^The argument "body" (?:is not|must be) base64/)
      }
      const { result } = await send(bodyOf('binary'), { body: 'A'.repeat(23_000_000) })
      expect(textOf(result)).to.equal('The argument "body" is larger than 16 MiB.')
    })

    it('is text with its charset', async () => {
      const { type, text } = await send(bodyOf('text'), { body: 'Grüße\n' })
      expect({ type, text }).to.deep.equal({ type: 'text/plain; charset=utf-8', text: 'Grüße\n' })
      const xml = await send(bodyOf('text', { mediaType: 'application/xml' }), { body: '<a/>' })
      expect(xml.type).to.equal('application/xml')
    })
  })
})
