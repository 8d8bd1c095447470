// Tests when JSON Schemas of tools are compiled: lazily if compilation is certain to succeed, otherwise at startup.
import Module from 'node:module'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool, type JsonSchema } from '../../core/index.ts'
import { compileSchema } from '../../core/mcp/schema/schema.ts'
import { testHost } from '../../core/testing.ts'
import { caseCount } from '../support/thorough.ts'

/** How many schemas of this file `work` had ajv compile; in the sources the host's own are compiled too. */
async function compilationsOf(work: () => unknown): Promise<number> {
  const { compile } = Ajv2020.prototype
  let count = 0
  Ajv2020.prototype.compile = function counting(this: Ajv2020, ...given: Parameters<typeof compile>) {
    if (Object.hasOwn(Object(Reflect.get(Object(given[0]), 'properties')), 'a')) count += 1
    return compile.apply(this, given)
  } as typeof compile
  try {
    await work()
    return count
  } finally {
    Reflect.deleteProperty(Ajv2020.prototype, 'compile')
  }
}

const object = (a: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties: { a }, ...more })
const many = (count: number, schema: JsonSchema) => Array.from({ length: count }, () => schema)
const nested = (levels: number): JsonSchema => (levels === 0 ? {} : object(nested(levels - 1)))

/** What ajv finds only when it compiles: each stops a start, as it did when all were compiled there. */
const MISTAKES: Readonly<Record<string, readonly [schema: JsonSchema, says: RegExp]>> = {
  'an invalid pattern': [object({ pattern: '(' }), /Invalid regular expression/],
  'a pattern that is invalid in unicode mode': [object({ pattern: '\\-' }), /Invalid regular expression/],
  'an invalid patternProperties pattern': [object({ patternProperties: { '[': {} } }), /Invalid regular expression/],
  'a $ref to elsewhere': [object({ $ref: 'https://a.example/b.json' }), /refers to/],
  'a $ref to a definition that is absent': [object({ $ref: '#/$defs/b' }, { $defs: { a: {} } }), /refers to/],
  'a $ref into a keyword that is unknown': [
    object({ $ref: '#/components/b' }, { components: { b: { type: 'text' } } }),
    /cannot be compiled/,
  ],
  'a $ref to an anchor that is absent': [object({ $ref: '#there' }), /refers to/],
  'two schemas of one $id': [
    object({ anyOf: [{ $id: '/x', type: 'string' }, { $id: '/x' }] }),
    /resolves to more than one/,
  ],
  'an anchor that is there twice': [object({ anyOf: [{ $anchor: 'x', type: 'null' }, { $anchor: 'x' }] }), /more than/],
  'an $id below an annotation': [
    object({ anyOf: [{ $id: '/x', type: 'string' }], 'x-more': { $id: '/x' } }),
    /resolves to more than one/,
  ],
  'an enum without values': [object({ enum: [] }), /enum must have non-empty array/],
  'a dependency that is no list': [object({}, { dependencies: 7 }), /./],
  'a $ref that leads back to itself': [
    object({ $ref: '#/$defs/b' }, { $defs: { b: { $ref: '#/$defs/b' } } }),
    /never end: #\/\$defs\/b -> #\/\$defs\/b$/,
  ],
  'a $ref that leads back to itself by others': [
    object(
      { $ref: '#/$defs/b' },
      { $defs: { b: { allOf: [true, { $ref: '#/$defs/c~1d' }] }, 'c/d': { $ref: '#/$defs/b' } } },
    ),
    /never end: #\/\$defs\/b -> #\/\$defs\/b\/allOf\/1 -> #\/\$defs\/c~1d -> #\/\$defs\/b$/,
  ],
  'a root that is a part of itself': [object({}, { allOf: [{ $ref: '#' }] }), /never end: # -> #\/allOf\/0 -> #$/],
  'a schema that negates itself': [
    object({ $ref: '#/$defs/b' }, { $defs: { b: { not: { $ref: '#/$defs/b' } } } }),
    /never end/,
  ],
  'more properties that nothing fits than ajv can compile': [
    object({ properties: Object.fromEntries(many(6_000, {}).map((_, index) => [`p${index}`, false])) }),
    /cannot be compiled/,
  ],
  'an asynchronous schema': [object({}, { $async: true }), /\$async/],
}

const LAZY: Readonly<Record<string, JsonSchema>> = {
  'an object of texts': object({ type: 'string', minLength: 1, description: 'a text', default: '' }),
  'a closed object': object({ type: 'integer' }, { required: ['a'], additionalProperties: false }),
  'a pattern and a format': object({ pattern: '^\\p{L}+$', format: 'date-time' }),
  'a definition': object({ $ref: '#/$defs/a' }, { $defs: { a: { type: 'string' } } }),
  'a recursive schema': object({ $ref: '#' }),
  'definitions that refer to each other': object(
    { $ref: '#/$defs/a' },
    { $defs: { a: { $ref: '#/$defs/b' }, b: object({ $ref: '#/$defs/a' }) } },
  ),
  'alternatives of constants': object({ anyOf: many(100, { const: 1 }), oneOf: [{ enum: ['x', null] }, true] }),
  'a header parameter': object({ type: 'string', 'x-mcp-header': 'Region' }),
  'many properties': {
    type: 'object',
    properties: {
      a: {},
      ...Object.fromEntries(many(190, { type: 'string' }).map((schema, index) => [`p${index}`, schema])),
    },
  },
  'as many levels as there may be': nested(63),
}

const VALUES = fc.oneof(
  fc.constantFrom<unknown>('string', 'object', '(', '^a$', '#', '#/$defs/a', '#/definitions/a', '/x', 'date', 'x y', 1),
  fc.constantFrom<unknown>(
    0,
    -1,
    1.5,
    true,
    false,
    null,
    [],
    ['a'],
    ['string', 'null'],
    {},
    [{}, true],
    [1, 'a', null],
  ),
)
const KEYWORDS = fc.constantFrom(
  ...['type', 'pattern', 'format', 'enum', 'const', 'required', 'minimum', 'multipleOf', 'maxLength', 'uniqueItems'],
  ...['$ref', '$id', '$anchor', '$dynamicRef', 'id', '$comment', 'default', 'examples', 'nullable', '$async', 'x-a'],
  ...['dependencies', 'dependentRequired', 'minContains', 'contains', 'items', 'prefixItems', 'additionalProperties'],
  ...['unevaluatedProperties', 'discriminator', 'readOnly', 'contentEncoding', 'propertyNames', 'if', 'not', 'then'],
)
const schemasOf = (levels: number): fc.Arbitrary<JsonSchema> => {
  if (levels === 0) return fc.dictionary(KEYWORDS, VALUES, { maxKeys: 2 })
  const below = schemasOf(levels - 1)
  const named = fc.dictionary(fc.constantFrom('a', 'b', 'toString'), below, { maxKeys: 2 })
  const list = fc.array(below, { minLength: 1, maxLength: 2 })
  return fc
    .tuple(
      fc.dictionary(KEYWORDS, fc.oneof(VALUES, VALUES, below), { maxKeys: 3 }),
      fc.dictionary(fc.constantFrom('properties', '$defs', 'definitions'), named, { maxKeys: 2 }),
      fc.dictionary(fc.constantFrom('anyOf', 'allOf', 'oneOf'), list, { maxKeys: 1 }),
    )
    .map(parts => Object.assign({}, ...parts))
}

describe('JSON Schema compilation', () => {
  for (const [title, [schema, says]] of Object.entries(MISTAKES)) {
    it(`rejects an invalid schema at startup: ${title}`, () => {
      expect(() => compileSchema(schema, 'input')).to.throw(says)
    })
  }

  for (const [title, schema] of Object.entries(LAZY)) {
    it(`compiles lazily and once: ${title}`, async () => {
      let compiled: ReturnType<typeof compileSchema> | undefined
      const use = () => expect(compiled?.validate({ a: undefined })).to.have.property('ok')
      const start = () => {
        compiled = compileSchema(schema, 'input')
      }
      const counts = [await compilationsOf(start), await compilationsOf(use), await compilationsOf(use)]
      // A second one, with all errors, for a value that was refused: that too is kept.
      const { ok } = (await compiled?.validate({ a: undefined })) ?? { ok: true }
      expect(counts).to.deep.equal([0, ok ? 1 : 2, 0])
    })
  }

  it('compiles large schemas at startup to keep the first call fast', async () => {
    const names = Array.from({ length: 199 }, (_, index) => `q${index}`)
    const wide = Object.fromEntries(names.map(name => [name, { type: 'object', required: names.slice(0, 9) }]))
    const schemas = [object({ properties: wide }), object({ anyOf: many(3_000, {}).map(() => false) })]
    for (const schema of schemas) expect(await compilationsOf(() => compileSchema(schema, 'input'))).to.equal(1)
  })

  it('retries after the compiler failed to load', () => {
    const { validate } = compileSchema(object({ type: 'string' }), 'input')
    const loader = Module as unknown as { _load: (name: string, ...more: unknown[]) => unknown }
    const load = loader._load
    loader._load = function (name, ...more) {
      if (name.startsWith('ajv-formats')) throw new Error('its files are away')
      return load.call(this, name, ...more)
    }
    try {
      expect(() => validate({ a: 1 })).to.throw('its files are away')
    } finally {
      loader._load = load
    }
    expect(validate({ a: 1 })).to.have.property('ok', false)
    expect(validate({ a: 'x' })).to.have.property('ok', true)
  })

  it('reports a pattern that V8 rejects at first use as a validation error', () => {
    const { validate } = compileSchema(object({ type: 'string', pattern: '(?:a|b)'.repeat(20_000) }), 'input')
    const result = validate({ a: 'x' }) as { ok: boolean; problems?: readonly object[] }
    expect(result.ok).to.equal(false)
    expect(JSON.stringify(result)).to.match(/pattern/)
  })

  it('never fails at first use for any accepted schema', () => {
    let taken = 0
    fc.assert(
      fc.property(
        schemasOf(3),
        fc.constantFrom(undefined, 'http://json-schema.org/draft-07/schema#'),
        (parts, $schema) => {
          const schema = { ...parts, type: 'object', ...($schema !== undefined && { $schema }) }
          let compiled: ReturnType<typeof compileSchema>
          try {
            compiled = compileSchema(schema, 'input')
          } catch {
            return
          }
          taken += 1
          expect(compiled.validate({ a: 'x', b: [1] })).to.have.property('ok')
        },
      ),
      { numRuns: caseCount(600, 100) },
    )
    expect(taken).to.be.greaterThan(0)
  })

  it('compiles only the called tool of many', async () => {
    const input = object({ type: 'string' }, { required: ['a'] })
    const tools = Array.from({ length: 50 }, (_, index) =>
      defineTool({ name: `tool-${index}`, input: { ...input }, output: { ...input }, handler: () => ({ a: 'x' }) }),
    )
    const config = {
      server: { name: 'many', version: '1.0.0' },
      toolsets: { all: tools },
      routes: { '/mcp': { toolsets: 'all' } },
    }
    let host: Awaited<ReturnType<typeof testHost>> | undefined
    const start = await compilationsOf(async () => {
      host = await testHost(config)
    })
    if (!host) throw new Error('no host')
    await using client = await host.client()
    const call = () =>
      compilationsOf(async () => expect((await client.callTool('tool-7', { a: 'x' })).isError).to.equal(false))
    const list = await compilationsOf(() => client.listTools())
    const counts = { start, list, first: await call(), second: await call() }
    await host.close()
    // Of the tool that is called: its input and its output.
    expect(counts).to.deep.equal({ start: 0, list: 0, first: 2, second: 0 })
  })
})
