// Tests the conversion of schemas of OpenAPI 3.0 and 3.1 to JSON Schema 2020-12, `$ref`s, and the size limit of tools.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import type { JsonSchema } from '../../../core/index.ts'
import { type Api, createApi } from '../../../plugins/openapi/api.ts'
import type { Documents } from '../../../plugins/openapi/document/load.ts'
import { rootPlace, withLocation } from '../../../plugins/openapi/document/place.ts'
import { fitSchema } from '../../../plugins/openapi/schema/fit-schema.ts'
import { count, printCounts } from './attack-counts.ts'

after(printCounts)

function apiOf(schemas: object, version: string): Api {
  const root = { openapi: version, info: {}, paths: {}, components: { schemas } }
  const main = { name: 'api.json', url: new URL('file:///api.json'), root, lineAt: () => undefined }
  const documents: Documents = { main, of: () => main, add: () => Promise.reject(new Error('no other documents')) }
  return createApi(documents)
}

const ajv = new Ajv2020({ strict: false, logger: false })

/** The schema with its definitions, and what was noted. */
function convert(
  schema: unknown,
  { version = '3.0.3', schemas = {}, direction = 'request' as 'request' | 'response' } = {},
) {
  const api = apiOf({ Under: schema, ...schemas }, version)
  const uses = new Set<string>()
  const definitions = api[direction]
  const place = rootPlace(api.documents.main)
  const converted = definitions.convert({ value: schema, place }, uses)
  const reached = definitions.reachedFrom(uses)
  const $defs = Object.fromEntries(reached.map(({ name, schema: one }) => [name, one]))
  const whole = typeof converted === 'boolean' ? {} : { ...converted, ...(uses.size > 0 && { $defs }) }
  ajv.compile(whole)
  ajv.removeSchema(whole)
  return {
    converted,
    $defs,
    reached,
    notes: [...api.notes.values()].map(({ place: at, text }) => withLocation(at, text)),
  }
}

const PET = { type: 'object', properties: { name: { type: 'string' } } }

const TABLE: ReadonlyArray<readonly [what: string, given: unknown, expected: unknown]> = [
  [
    'invisible characters in texts',
    { type: 'string', title: 'a\u200bb', description: 'x\u{e0041}y' },
    { type: 'string', title: 'a\\u{200b}b', description: 'x\\u{e0041}y' },
  ],
  ['nullable', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
  ['nullable: false', { type: 'string', nullable: false }, { type: 'string' }],
  [
    'nullable with enum',
    { type: 'string', nullable: true, enum: ['a'] },
    { type: ['string', 'null'], enum: ['a', null] },
  ],
  [
    'nullable with null in enum',
    { type: 'string', nullable: true, enum: ['a', null] },
    { type: ['string', 'null'], enum: ['a', null] },
  ],
  [
    'nullable without type',
    { nullable: true, allOf: [{ type: 'object' }] },
    { anyOf: [{ allOf: [{ type: 'object' }] }, { type: 'null' }] },
  ],
  [
    'nullable next to $ref',
    { $ref: '#/components/schemas/Pet', nullable: true },
    { anyOf: [{ $ref: '#/$defs/Pet' }, { type: 'null' }] },
  ],
  ['siblings of $ref', { $ref: '#/components/schemas/Pet', description: 'ignored' }, { $ref: '#/$defs/Pet' }],
  [
    'exclusiveMinimum: true',
    { type: 'number', minimum: 1, exclusiveMinimum: true },
    { type: 'number', exclusiveMinimum: 1 },
  ],
  ['exclusiveMaximum: false', { type: 'number', maximum: 1, exclusiveMaximum: false }, { type: 'number', maximum: 1 }],
  ['example', { type: 'string', example: 'Tea' }, { type: 'string', examples: ['Tea'] }],
  ['an example of another type', { type: 'integer', example: 'one' }, { type: 'integer' }],
  ['a default of another type', { type: 'integer', default: 'one' }, { type: 'integer' }],
  ['format: binary', { type: 'string', format: 'binary' }, { type: 'string', contentEncoding: 'base64' }],
  ['format: byte', { type: 'string', format: 'byte' }, { type: 'string', contentEncoding: 'base64' }],
  ['other formats', { type: 'string', format: 'date-time' }, { type: 'string', format: 'date-time' }],
  ['xml, externalDocs and extensions', { type: 'string', xml: {}, externalDocs: {}, 'x-go': 1 }, { type: 'string' }],
  [
    'discriminator',
    { oneOf: [{ $ref: '#/components/schemas/Pet' }], discriminator: { propertyName: 'kind' } },
    { oneOf: [{ $ref: '#/$defs/Pet' }], description: 'The property `kind` selects the schema that applies.' },
  ],
  [
    'readOnly properties of requests',
    {
      type: 'object',
      required: ['id', 'a'],
      properties: { id: { type: 'string', readOnly: true }, a: { type: 'string' } },
    },
    { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
  ],
  [
    'readOnly properties that a branch of allOf requires',
    { allOf: [{ properties: { id: { readOnly: true } } }, { required: ['id'] }] },
    { allOf: [{ properties: {} }, {}] },
  ],
  ['arrays without items', { type: 'array' }, { type: 'array', items: {} }],
  [
    'additionalProperties',
    { type: 'object', additionalProperties: { type: 'string' } },
    { type: 'object', additionalProperties: { type: 'string' } },
  ],
  [
    'names of keywords as properties',
    { properties: { nullable: { type: 'string' }, $ref: { type: 'string' } } },
    { properties: { nullable: { type: 'string' }, $ref: { type: 'string' } } },
  ],
]

const INVALID: ReadonlyArray<readonly [what: string, given: object, expected: object, note: RegExp]> = [
  ['a type that does not exist', { type: 'any' }, {}, /#\/type\): "any" is not a type/],
  ['required: true', { type: 'string', required: true }, { type: 'string' }, /#\/required\): must be a list/],
  ['an empty enum', { enum: [] }, {}, /#\/enum\): must be a list/],
  ['a pattern that is no regular expression', { pattern: '(' }, {}, /#\/pattern\): is not a regular expression/],
  ['a negative length', { minLength: -1 }, {}, /#\/minLength\): must be an integer/],
  ['text in place of a number', { maximum: '5' }, {}, /#\/maximum\): must be a number/],
  ['items as a list', { type: 'array', items: [{}] }, { type: 'array', items: {} }, /#\/items\): must be one schema/],
  ['properties as a list', { properties: [] }, {}, /#\/properties\): must be an object/],
  ['null as a schema', { properties: { a: null } }, { properties: { a: {} } }, /#\/properties\/a\): is null/],
]

describe('Conversion of schemas', () => {
  for (const [what, given, expected] of TABLE) {
    it(`of OpenAPI 3.0: ${what}`, () => {
      const { converted, notes } = convert(given, { schemas: { Pet: PET } })
      expect(converted).to.deep.equal(expected)
      expect(notes).to.deep.equal([])
    })
  }

  for (const [what, given, expected, note] of INVALID) {
    it(`leaves out ${what}, with a note`, () => {
      const { converted, notes } = convert(given)
      expect(converted).to.deep.equal(expected)
      expect(notes).to.have.length(1)
      expect(notes[0])
        .to.match(note)
        .and.match(/^api\.json/)
    })
  }

  it('of OpenAPI 3.1 keeps siblings of $ref, type lists and the keywords of 2020-12', () => {
    const schema = {
      properties: {
        a: { $ref: '#/components/schemas/Pet', description: 'kept' },
        b: { type: ['string', 'null'], const: 'x' },
        c: { prefixItems: [{ type: 'integer' }], unevaluatedItems: false },
        d: { contentMediaType: 'application/octet-stream' },
        e: { if: { required: ['x'] }, else: { required: ['y'] } },
      },
    }
    const { converted } = convert(schema, { version: '3.1.0', schemas: { Pet: PET } })
    expect(converted).to.deep.equal({
      properties: {
        ...schema.properties,
        a: { $ref: '#/$defs/Pet', description: 'kept' },
        d: { contentMediaType: 'application/octet-stream', type: 'string', contentEncoding: 'base64' },
      },
    })
  })

  it('of responses leaves out writeOnly properties and keeps readOnly ones', () => {
    const schema = {
      properties: { id: { readOnly: true }, password: { writeOnly: true } },
      required: ['id', 'password'],
    }
    const { converted } = convert(schema, { direction: 'response' })
    expect(converted).to.deep.equal({ properties: { id: {} }, required: ['id'] })
  })

  it('keeps recursive schemas under $defs, once each, and only those that are reached', () => {
    const Tree = {
      type: 'object',
      properties: { left: { $ref: '#/components/schemas/Tree' }, pet: { $ref: '#/components/schemas/Pet' } },
    }
    const { $defs } = convert({ $ref: '#/components/schemas/Tree' }, { schemas: { Tree, Pet: PET, Other: {} } })
    expect($defs).to.deep.equal({
      Tree: { type: 'object', properties: { left: { $ref: '#/$defs/Tree' }, pet: { $ref: '#/$defs/Pet' } } },
      Pet: PET,
    })
  })

  it('replaces schemas that lead back to themselves without a step into the value', () => {
    count('huge and deep documents', 2)
    const schemas = {
      A: { $ref: '#/components/schemas/A' },
      B: { allOf: [{ $ref: '#/components/schemas/C' }] },
      C: { anyOf: [{ $ref: '#/components/schemas/B' }, { type: 'string' }] },
    }
    const { $defs, notes } = convert(
      { properties: { a: { $ref: '#/components/schemas/A' }, b: { $ref: '#/components/schemas/B' } } },
      { schemas },
    )
    expect($defs).to.deep.include({ A: {}, B: {} })
    expect(notes.filter(note => note.includes('refers to itself'))).to.have.length(2)
  })

  it('visits each branch of `allOf` once, also of schemas that lead back to themselves', () => {
    count('huge and deep documents')
    const refs = Array.from({ length: 300 }, () => ({ $ref: '#/components/schemas/A' }))
    const secret = { properties: { at: { type: 'string', readOnly: true }, name: {} } }
    const deep = Array.from({ length: 8 }).reduce<object>(inner => ({ allOf: [inner] }), secret)
    const { converted } = convert(
      { allOf: [{ $ref: '#/components/schemas/A' }, deep], required: ['at', 'name'] },
      { schemas: { A: { allOf: refs } } },
    )
    expect(converted).to.deep.include({ required: ['name'] })
  })

  it('resolves escaped pointers, pointers into other parts, $anchor, $id and $dynamicRef', () => {
    const schemas = {
      'a/b~c d': { type: 'string' },
      Named: { $anchor: 'named', type: 'integer' },
      Node: { $dynamicAnchor: 'node', properties: { next: { $dynamicRef: '#node' } } },
      Owner: { $id: 'https://example.com/owner', properties: { pet: { $ref: 'pet' } } },
      Pet: { $id: 'https://example.com/pet', type: 'boolean' },
    }
    const refs = [
      '#/components/schemas/a~1b~0c%20d',
      '#named',
      '#/components/schemas/Node',
      '#/components/schemas/Owner',
      '#/components/schemas/Owner/properties/pet',
    ]
    const { $defs, converted } = convert({ anyOf: refs.map($ref => ({ $ref })) }, { version: '3.1.0', schemas })
    expect(converted).to.deep.equal({
      anyOf: ['a_b_c_d', 'Named', 'Node', 'Owner', 'Owner_properties_pet'].map(name => ({ $ref: `#/$defs/${name}` })),
    })
    expect($defs['Named']).to.deep.equal({ type: 'integer' })
    expect($defs['Node']).to.deep.equal({ properties: { next: { $ref: '#/$defs/Node' } } })
    expect($defs['Owner']).to.deep.equal({ properties: { pet: { $ref: '#/$defs/Pet' } } })
  })

  it('accepts any value below 40 levels', () => {
    count('huge and deep documents')
    let schema: object = { type: 'string' }
    for (let depth = 0; depth < 10_000; depth++) schema = { properties: { a: schema } }
    const { notes } = convert(schema)
    expect(notes[0]).to.match(/nested more than 40 levels/)
  })
})

describe('Size of schemas', () => {
  const fitWithin = (schemas: object, root: JsonSchema, limit: number) => {
    const { reached, converted } = convert(root, { schemas })
    return fitSchema(converted as JsonSchema, reached, limit)
  }
  const text = 'x'.repeat(400)
  const CHAIN = {
    One: { description: text, properties: { two: { $ref: '#/components/schemas/Two' } } },
    Two: { description: text, properties: { three: { $ref: '#/components/schemas/Three' } } },
    Three: { description: text, type: 'string' },
  }
  const root = { type: 'object', properties: { one: { $ref: '#/components/schemas/One' } } }

  it('is exact, and examples are left out first', () => {
    const whole = fitWithin(CHAIN, root, 10_000)
    expect(whole?.bytes).to.equal(Buffer.byteLength(JSON.stringify(whole?.schema)))
    expect(whole?.simplified).to.deep.equal([])
    const withExample = { type: 'string', description: 'short', example: 'e'.repeat(90) }
    const bare = fitWithin({ Pet: withExample }, { properties: { pet: { $ref: '#/components/schemas/Pet' } } }, 150)
    expect(bare).to.deep.include({ simplified: [] })
    expect(JSON.stringify(bare?.schema)).to.not.include('eee')
  })

  it('is reached by leaving out the deepest definitions', () => {
    const fitted = fitWithin(CHAIN, root, 1_100)
    expect(fitted?.simplified).to.deep.equal(['Three'])
    expect(fitted?.bytes)
      .to.equal(Buffer.byteLength(JSON.stringify(fitted?.schema)))
      .and.be.at.most(1_100)
    expect(fitWithin(CHAIN, root, 700)?.simplified).to.deep.equal(['Two'])
  })

  it('does not reject values that simplified alternatives accept', () => {
    const large = (name: string) => ({
      type: 'object',
      required: [name],
      properties: { [name]: { description: text } },
    })
    const schemas = { A: large('a'), B: large('b') }
    const either = {
      properties: {
        it: {
          oneOf: [{ $ref: '#/components/schemas/A' }, { $ref: '#/components/schemas/B' }],
          not: { $ref: '#/components/schemas/B' },
        },
      },
    }
    const fitted = fitWithin(schemas, either, 500)
    const validate = new Ajv2020({ strict: false }).compile(fitted?.schema as object)
    expect(validate({ it: { a: 1 } })).to.equal(true)
  })

  it('is reached without definitions, too; only too many names are too much', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [
        `p${index}`,
        { type: 'object', description: text, properties: { a: { description: text } } },
      ]),
    )
    const fitted = fitWithin({}, { type: 'object', properties }, 2_000)
    expect(fitted?.bytes).to.be.at.most(2_000)
    expect(Object.keys(fitted?.schema['properties'] as object)).to.have.length(20)
    expect(fitWithin({}, { type: 'object', properties }, 100)).to.equal(undefined)
  })
})
