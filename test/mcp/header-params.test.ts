// Tests x-mcp-header annotations and the validation of mirrored headers against arguments.
import { expect } from 'chai'
import fc from 'fast-check'
import * as z from 'zod'
import { compileSchema } from '../../core/mcp/schema/schema.ts'
import {
  checkHeaderParams,
  collectHeaderParams,
  decodeHeaderValue,
  type HeaderParam,
} from '../../core/mcp/wire/header-params.ts'
import type { JsonSchema } from '../../core/mcp/wire/protocol.ts'

const string = (name: unknown) => ({ type: 'string', 'x-mcp-header': name })
const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more })

/** As the specification asks clients to encode. */
function encode(value: string): string {
  const plain = /^[\t -~]*$/.test(value) && value.trim() === value && !/^=\?base64\?.*\?=$/.test(value)
  return plain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

describe('x-mcp-header annotations', () => {
  it('are collected at any depth, in order, with lower-case header names', () => {
    const schema = object({
      region: string('Region'),
      query: { type: 'string' },
      user: object({
        id: { type: 'integer', 'x-mcp-header': 'User-Id' },
        on: { type: 'boolean', 'x-mcp-header': 'On' },
      }),
    })
    expect(collectHeaderParams(schema)).to.deep.equal([
      { header: 'mcp-param-region', name: 'Region', path: ['region'], type: 'string' },
      { header: 'mcp-param-user-id', name: 'User-Id', path: ['user', 'id'], type: 'integer' },
      { header: 'mcp-param-on', name: 'On', path: ['user', 'on'], type: 'boolean' },
    ])
  })

  it('are read from Standard Schemas', () => {
    const schema = z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) })
    expect(collectHeaderParams(compileSchema(schema, 'input').json)).to.have.length(1)
  })

  it('are distinguished from properties and data with the same name', () => {
    const schema = object({ 'x-mcp-header': { type: 'string' }, properties: object({ a: string('A') }) })
    expect(collectHeaderParams({ ...schema, default: object({ b: string('B') }) })).to.deep.equal([
      { header: 'mcp-param-a', name: 'A', path: ['properties', 'a'], type: 'string' },
    ])
  })

  it('require valid header tokens', () => {
    for (const name of ['', 'My Region', 'Re\r\ngion', 'Region\n', 'Région', 'a:b', 'a/b', '(a)', 7, null, ['A']]) {
      expect(() => collectHeaderParams(object({ region: string(name) })), JSON.stringify(name)).to.throw(
        /at properties\.region/,
      )
    }
    const odd = "!#$%&'*+-.^_`|~09azAZ"
    expect(collectHeaderParams(object({ region: string(odd) }))).to.have.length(1)
  })

  it('must be unique, ignoring case', () => {
    const schema = object({ a: string('Region'), b: object({ c: string('REGION') }) })
    expect(() => collectHeaderParams(schema)).to.throw(/at properties\.b\.properties\.c.*used by property a/)
  })

  it('are allowed on strings, integers and booleans only', () => {
    for (const type of ['number', 'object', 'array', 'null', ['string', 'null'], undefined]) {
      const schema = object({ a: { type, 'x-mcp-header': 'A' } })
      expect(() => collectHeaderParams(schema)).to.throw(/at properties\.a.*`type`/)
    }
  })

  it('are allowed only on paths of plain properties', () => {
    const inner = object({ a: string('A') })
    const schemas: JsonSchema[] = [
      string('Root'),
      object({}, { $defs: { inner } }),
      object({}, { definitions: { inner } }),
      ...['anyOf', 'oneOf', 'allOf'].map(keyword => object({}, { [keyword]: [inner] })),
      ...['not', 'if', 'then', 'else', 'additionalProperties', 'propertyNames'].map(keyword =>
        object({}, { [keyword]: inner }),
      ),
      ...['unevaluatedProperties', 'unevaluatedItems'].map(keyword => object({}, { [keyword]: inner })),
      ...['patternProperties', 'dependentSchemas', 'dependencies'].map(keyword => object({}, { [keyword]: { inner } })),
      ...['items', 'contains', 'additionalItems'].map(keyword => object({ list: { [keyword]: inner } })),
      ...['items', 'prefixItems'].map(keyword => object({ list: { [keyword]: [inner] } })),
      object({ user: object({ x: { anyOf: [string('A')] } }) }),
    ]
    for (const schema of schemas) {
      expect(() => collectHeaderParams(schema), JSON.stringify(schema)).to.throw(/`properties`/)
    }
  })
})

describe('Mirrored header encoding', () => {
  it('round-trips values', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constantFrom('=?base64?x?=', ' a ', '')),
        value => {
          expect(decodeHeaderValue(encode(value))).to.equal(value)
        },
      ),
    )
  })

  const decodes: [raw: string, value: string | undefined][] = [
    ['us-west1', 'us-west1'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?base64??=', ''],
    ['=?base64?77u/YQ==?=', '\ufeffa'],
    ['=?BASE64?SGVsbG8=?=', '=?BASE64?SGVsbG8=?='],
    ['SGVsbG8=', 'SGVsbG8='],
    ['=?base64?SGVsbG8=', '=?base64?SGVsbG8='],
    ['=?base64?SGVsbG8?=', undefined],
    ['=?base64?SGVs!!!bG8=?=', undefined],
    ['=?base64?SGVs bG8=?=', undefined],
    ['=?base64?SGVsbG9=?=', undefined],
    ['=?base64?-_-_?=', undefined],
    ['=?base64?/w==?=', undefined],
    ['=?base64?7aCA?=', undefined],
    ['=?base64?=', undefined],
    ['caf\u00e9', undefined],
    ['a\u0000b', undefined],
    ['a\u007fb', undefined],
    ['a\tb c', 'a\tb c'],
  ]
  for (const [raw, value] of decodes) {
    it(`${value === undefined ? 'rejects' : `decodes ${JSON.stringify(value)} from`} ${JSON.stringify(raw)}`, () => {
      expect(decodeHeaderValue(raw)).to.equal(value)
    })
  }
})

describe('Mirrored header validation', () => {
  const one = (type: HeaderParam['type']): HeaderParam[] => [{ header: 'mcp-param-a', name: 'A', path: ['a'], type }]
  const check = (type: HeaderParam['type'], header: string | string[] | undefined, args: unknown) =>
    checkHeaderParams(one(type), header === undefined ? {} : { 'mcp-param-a': header }, args)

  it('accepts matching values after decoding', () => {
    expect(check('string', 'x', { a: 'x' })).to.equal(undefined)
    expect(check('string', '=?base64?eA==?=', { a: 'x' })).to.equal(undefined)
    expect(check('string', '', { a: '' })).to.equal(undefined)
    expect(check('boolean', 'true', { a: true })).to.equal(undefined)
    expect(check('integer', '-7', { a: -7 })).to.equal(undefined)
  })

  it('accepts absence of both header and value, and ignores unrelated headers', () => {
    for (const args of [{}, { a: null }, { a: undefined }, undefined, null, 'text', []]) {
      expect(check('string', undefined, args)).to.equal(undefined)
    }
    expect(checkHeaderParams([], { 'mcp-param-b': 'x' }, {})).to.equal(undefined)
  })

  it('rejects missing, different and unexpected headers with a reason', () => {
    expect(check('string', undefined, { a: 'x' })).to.match(/^Mcp-Param-A is missing/)
    expect(check('string', 'y', { a: 'x' })).to.match(/^Mcp-Param-A .*argument a$/)
    expect(check('string', 'X', { a: 'x' })).to.match(/^Mcp-Param-A .*argument a$/)
    expect(check('boolean', 'True', { a: true })).to.match(/^Mcp-Param-A .*argument a$/)
    expect(check('string', 'x', {})).to.match(/^Mcp-Param-A .*argument a /)
    expect(check('string', '', { a: null })).to.match(/^Mcp-Param-A .*null$/)
    expect(check('string', 'caf\u00e9', { a: 'caf\u00e9' })).to.match(/invalid characters/)
  })

  it('compares integers numerically within the safe range', () => {
    for (const text of ['42', '42.0', '42.000', '042'])
      expect(check('integer', text, { a: 42 }), text).to.equal(undefined)
    for (const text of ['42.5', '4.2e1', '0x2a', '', ' 42', '+42', '42.00000000000000000001']) {
      expect(check('integer', text, { a: 42 }), text).to.match(/^Mcp-Param-A .*argument a$/)
    }
    expect(check('integer', '9007199254740991', { a: Number.MAX_SAFE_INTEGER })).to.equal(undefined)
    expect(check('integer', '9007199254740992', { a: 2 ** 53 })).to.match(/safe integer/)
    expect(check('integer', '1.5', { a: 1.5 })).to.match(/safe integer/)
  })

  it('rejects repeated headers', () => {
    expect(check('string', ['x', 'x'], { a: 'x' })).to.match(/^Mcp-Param-A/)
    expect(check('string', ['x', 'y'], {})).to.match(/^Mcp-Param-A/)
    expect(check('string', ['x'], { a: 'x' })).to.equal(undefined)
  })

  it('leaves type errors to schema validation, and rejects values without text form', () => {
    expect(check('integer', 'many', { a: 'many' })).to.equal(undefined)
    expect(check('string', '7', { a: 7 })).to.equal(undefined)
    expect(check('string', '[object Object]', { a: {} })).to.match(/argument a: .*string/)
  })

  it('reads own properties only, along the exact path', () => {
    const deep: HeaderParam[] = [{ header: 'mcp-param-a', name: 'A', path: ['user', 'constructor'], type: 'string' }]
    expect(checkHeaderParams(deep, {}, { user: {} })).to.equal(undefined)
    expect(checkHeaderParams(deep, {}, { 'user.constructor': 'x' })).to.equal(undefined)
    expect(checkHeaderParams(deep, {}, { user: ['x'] })).to.equal(undefined)
    expect(checkHeaderParams(deep, {}, { user: { constructor: 'x' } })).to.match(
      /argument user\.constructor is present/,
    )
  })
})
