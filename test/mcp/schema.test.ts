// Tests schemas of definitions: dialects, compilation, validation messages and Standard Schema.
import { type } from 'arktype'
import { expect } from 'chai'
import fc from 'fast-check'
import * as v from 'valibot'
import * as z from 'zod'
import { compileDefinition } from '../../core/mcp/definitions/catalog-item.ts'
import { defineTool } from '../../core/mcp/definitions/define.ts'
import type { StandardSchema } from '../../core/mcp/definitions/infer.ts'
import type { Checked } from '../../core/mcp/schema/explain-errors.ts'
import { advertisedSchema, compileSchema } from '../../core/mcp/schema/schema.ts'
import type { JsonSchema } from '../../core/mcp/wire/protocol.ts'
import { caseCount } from '../support/thorough.ts'

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more })
const nested = (levels: number): JsonSchema => {
  let schema: JsonSchema = { type: 'object' }
  for (let level = 1; level < levels; level++) schema = object({ a: schema })
  return schema
}

function problemsOf(schema: JsonSchema | StandardSchema, value: unknown, role: 'input' | 'output' = 'input'): string {
  const checked = compileSchema(schema, role).validate(value)
  if (checked instanceof Promise || checked.ok) throw new Error('expected a synchronous refusal')
  return checked.problems
}
const accepts = (schema: JsonSchema | StandardSchema, value: unknown, role: 'input' | 'output' = 'input') => {
  const checked = compileSchema(schema, role).validate(value)
  if (checked instanceof Promise) throw new Error('expected a synchronous answer')
  return checked.ok
}
const draft07 = (id: string) => object({ pair: { items: [{ type: 'string' }, { type: 'number' }] } }, { $schema: id })

describe('Schema dialects', () => {
  for (const dialect of [{}, { $schema: 'http://json-schema.org/draft-07/schema#' }]) {
    it(`ignore keywords that only ajv and OpenAPI have: ${JSON.stringify(dialect)}`, () => {
      const choice = { nullable: true, anyOf: [{ type: 'string' }, { type: 'null' }] }
      const known = { type: 'string', nullable: true, id: 'a', discriminator: { propertyName: 'b' } }
      const schema = object(
        { choice, known, odd: { nullable: 'yes' }, nothing: { type: 'null', nullable: false } },
        dialect,
      )
      expect(accepts(schema, { choice: null, known: 'a', odd: 1, nothing: null })).to.equal(true)
      expect(accepts(schema, { known: null })).to.equal(false)
      expect(compileSchema(schema, 'input').json).to.deep.equal(schema)
    })
  }

  it('defaults to draft 2020-12 without $schema', () => {
    const schema = object({ pair: { prefixItems: [{ type: 'string' }] } })
    expect(accepts(schema, { pair: ['a'] })).to.equal(true)
    expect(accepts(schema, { pair: [1] })).to.equal(false)
  })

  for (const id of ['http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft-07/schema']) {
    it(`treats ${id} as draft-07, where items can be a list`, () => {
      expect(accepts(draft07(id), { pair: ['a', 1] })).to.equal(true)
      expect(accepts(draft07(id), { pair: [1, 'a'] })).to.equal(false)
    })
  }

  it('rejects other dialects and lists the supported ones', () => {
    for (const $schema of [
      'http://json-schema.org/draft-04/schema#',
      'https://json-schema.org/draft/2019-09/schema',
      7,
    ]) {
      expect(() => compileSchema(object({}, { $schema }), 'input')).to.throw(/supported: draft 2020-12 .* draft-07/)
    }
  })

  it('rejects subschemas with a different dialect than the root', () => {
    const part = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }
    expect(() => compileSchema(object({ part }), 'input')).to.throw(/mixes dialects/)
  })

  it('rejects a schema that violates its dialect, with the location', () => {
    expect(() => compileSchema(object({ a: { type: 'text' } }), 'input')).to.throw(
      /not valid draft 2020-12: #\/properties\/a/,
    )
    expect(() => compileSchema(draft07('https://json-schema.org/draft/2020-12/schema'), 'input')).to.throw(/items/)
  })
})

describe('JSON Schema compilation', () => {
  it('requires an object as the root of input schemas only', () => {
    expect(() => compileSchema({}, 'input')).to.throw(/`type`.*"object"/)
    expect(() => compileSchema({ type: ['object', 'null'] }, 'input')).to.throw(/`type`.*"object"/)
    expect(accepts({ type: 'array' }, [], 'output')).to.equal(true)
  })

  it('never fetches: an external $ref throws an error with its name', () => {
    const away = object({ a: { $ref: 'http://127.0.0.1:9/a.json' } })
    expect(() => compileSchema(away, 'input')).to.throw(/refers to "http:\/\/127.0.0.1:9\/a.json".*\$defs/)
    expect(() => compileSchema(object({ a: { $ref: '#/$defs/absent' } }), 'input')).to.throw(/#\/\$defs\/absent/)
  })

  it('resolves internal references and references to bundled meta-schemas', () => {
    const tree = object(
      { next: { $ref: '#' }, name: { $ref: '#/$defs/name' } },
      { $defs: { name: { type: 'string' } } },
    )
    expect(accepts(tree, { next: { next: { name: 'leaf' } } })).to.equal(true)
    expect(accepts(tree, { next: { next: { name: 1 } } })).to.equal(false)
    const meta = object({ schema: { $ref: 'https://json-schema.org/draft/2020-12/schema' } })
    expect(accepts(meta, { schema: { type: 'string' } })).to.equal(true)
    expect(accepts(meta, { schema: { type: 'text' } })).to.equal(false)
  })

  it('allows two schemas with the same $id, isolated from each other', () => {
    const of = (type: string) => object({ a: { $id: 'part', type } }, { $id: 'https://acme.example/tool' })
    const [text, number] = [compileSchema(of('string'), 'input'), compileSchema(of('number'), 'input')]
    expect(text.validate({ a: 'x' })).to.deep.include({ ok: true })
    expect(number.validate({ a: 'x' })).to.deep.include({ ok: false })
    expect(() => compileSchema(object({ a: { $ref: 'https://acme.example/tool' } }), 'input')).to.throw(/refers to/)
  })

  it('ignores unknown annotations and formats and validates known formats', () => {
    const schema = object({
      a: { type: 'string', format: 'sku', 'x-mcp-header': 'A', 'x-own': 1 },
      m: { format: 'email' },
    })
    expect(accepts(schema, { a: 'x' })).to.equal(true)
    expect(problemsOf(schema, { m: 'nobody' })).to.equal('m: must match format "email", was "nobody"')
  })

  it('neither applies defaults nor coerces values', () => {
    const schema = compileSchema(object({ a: { default: 1 }, n: { type: 'number' } }), 'input')
    const value = Object.freeze({})
    expect(schema.validate(value)).to.deep.equal({ ok: true, value: {} })
    expect((schema.validate(value) as { value: unknown }).value).to.equal(value)
    expect(schema.validate({ n: '1' })).to.deep.include({ ok: false })
  })

  it('shows the original schema to clients', () => {
    const schema = object({ a: { type: 'string', description: 'A' } })
    const before = structuredClone(schema)
    expect(compileSchema(schema, 'input').json).to.equal(schema)
    expect(schema).to.deep.equal(before)
  })

  it('rejects over 64 levels or 5,000 subschemas, and cyclic schemas', () => {
    expect(accepts(nested(64), {})).to.equal(true)
    expect(() => compileSchema(nested(65), 'input')).to.throw(/64 levels/)
    const wide = (count: number) => object(Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}])))
    expect(accepts(wide(4_999), {})).to.equal(true)
    expect(() => compileSchema(wide(5_000), 'input')).to.throw(/5000 subschemas/)
    const circle = object({})
    circle['properties'] = { a: circle, b: circle }
    expect(() => compileSchema(circle, 'input')).to.throw(/64 levels/)
  })

  it('rejects values that are neither JSON Schema nor Standard Schema', () => {
    for (const odd of ['object', undefined, null, true, [], { parse() {} }, () => 1]) {
      expect(() => compileSchema(odd as unknown as JsonSchema, 'output')).to.throw(/JSON Schema/)
    }
    expect(() => compileSchema(object({}, { $async: true }), 'input')).to.throw(/\$async/)
    expect(() => compileSchema(object({ a: { pattern: '(' } }), 'input')).to.throw(
      /its input schema cannot be compiled: Invalid regular/,
    )
  })

  it('reads own properties only', () => {
    const schema = object(
      { constructor: { type: 'string' } },
      { required: ['constructor'], additionalProperties: false },
    )
    expect(problemsOf(schema, {})).to.equal('constructor: is required')
    expect(accepts(object({ valueOf: { type: 'string' } }), {})).to.equal(true)
  })
})

describe('Validation messages for the model', () => {
  const order = object(
    {
      a: { type: 'string' },
      items: { type: 'array', items: object({ price: { type: 'number', minimum: 0 } }) },
      unit: { enum: ['c', 'f'] },
      color: { type: 'string', minLength: 2 },
    },
    { required: ['a'], additionalProperties: false },
  )
  const cases: [title: string, value: unknown, problems: RegExp][] = [
    ['a missing argument', {}, /^a: /],
    [
      'a type, with the path and the value',
      { a: 'x', items: [{}, { price: '12' }] },
      /^items\[1\]\.price: must be a number, was "12"$/,
    ],
    ['a choice', { a: 'x', unit: 'k' }, /^unit: .*"c", "f".*"k"$/],
    ['an unknown argument and its neighbour', { a: 'x', colour: 'red' }, /^colour: .*"color"\?$/],
    ['a neighbour by the rule of every "did you mean"', { a: 'x', Un_ti: 'c' }, /^Un_ti: .*"unit"\?$/],
    ['an unknown argument that is like no other', { a: 'x', zzz: 1 }, /^zzz: [^"]+$/],
    ['an unknown argument whose neighbour is given', { a: 'x', color: 'red', colour: 'red' }, /^colour: [^"]+$/],
    ['a limit', { a: 'x', items: [{ price: -1 }] }, /^items\[0\]\.price: .*>= 0.*-1$/],
    ['a length', { a: 'x', color: 'r' }, /^color: .*2.*"r"$/],
    ['null', { a: null }, /^a: .*string.*null$/],
    ['no object at all', [1], /^\(arguments\): must be an object, was an array of length 1$/],
    ['several at once', { unit: 1, a: 2 }, /^a: must be a string, was 2\nunit: .*"c", "f".*1$/],
  ]
  for (const [title, value, problems] of cases) {
    it(`name ${title}`, () => expect(problemsOf(order, value)).to.match(problems))
  }

  it('name the output root (result) and its members properties', () => {
    expect(problemsOf({ type: 'object' }, 'x', 'output')).to.match(/^\(result\): must be an object, was "x"$/)
    expect(problemsOf(object({}, { additionalProperties: false }), { a: 1 }, 'output')).to.match(/^a: /)
  })

  it('merge the alternatives of anyOf into one line', () => {
    const types = object({ a: { anyOf: [{ type: 'string' }, { type: 'number' }] } })
    expect(problemsOf(types, { a: true })).to.match(/^a: must be a string or a number, was true$/)
    const mixed = object({ a: { anyOf: [{ type: 'number' }, { const: 'auto' }] } })
    expect(problemsOf(mixed, { a: 'no' })).to.match(/^a: .*a number, "auto".*"no"$/)
    const either = { type: 'object', anyOf: [{ required: ['id'] }, { required: ['name'] }] }
    expect(problemsOf(either, {})).to.match(/^\(arguments\): .*\(id: .*name: .*\)$/)
  })

  it('keep errors next to merged alternatives of the same value', () => {
    const schema = object({ a: { enum: ['x', 'y'], anyOf: [{ pattern: '^x' }, { maxLength: 0 }] } })
    expect(problemsOf(schema, { a: 'b' })).to.match(/^a: .*"x", "y".*"b"\na: .*\(a: .*"\^x".*; or a: .*0.*\)$/)
  })

  it('merge alternatives behind a recursive $ref', () => {
    const schema = object(
      { n: { $ref: '#/$defs/n' }, b: { type: 'string' } },
      { required: ['z'], $defs: { n: { oneOf: [{ type: 'string' }, object({ n: { $ref: '#/$defs/n' } })] } } },
    )
    expect(
      problemsOf(schema, { n: { n: 3 }, b: 1 })
        .split('\n')
        .sort()
        .join('\n'),
    ).to.match(/^b: .*string.*1\nn: .*\(n\.n: .*a string or an object.*3\)\nz: .*$/)
    const both = object({ a: { oneOf: [{ type: 'integer' }, { type: 'number' }] } })
    expect(problemsOf(both, { a: 1 })).to.match(/^a: .*exactly one/)
  })

  it('shorten long values and quote unusual names, one line each', () => {
    const schema = object({ a: { type: 'number' } }, { additionalProperties: false })
    const line = problemsOf(schema, { a: 'x'.repeat(1_000) })
    expect(line)
      .to.match(/^a: must be a number, was "x+…"$/)
      .and.have.length.below(80)
    expect(problemsOf(schema, { 'b\nc: is fine': 1 })).to.match(/^\["b\\nc: is fine"\]: .+$/)
    expect(problemsOf(schema, { ['k'.repeat(5_000)]: 1 })).to.have.length.below(100)
  })

  it('list ten problems and the number of others', () => {
    const lines = problemsOf(
      object({}, { additionalProperties: { type: 'string' } }),
      Object.fromEntries([...'abcdefghijklm'].map(k => [k, 1])),
    )
    expect(lines.split('\n')).to.have.length(11)
    expect(lines).to.match(/\nand 3 more$/)
  })

  it('list only the first problem of a very large value', () => {
    const schema = object({ list: { type: 'array', items: { type: 'string' } } })
    expect(problemsOf(schema, { list: new Array(100_000).fill(1) })).to.match(/^list\[0\]: must be a string, was 1$/)
  })

  it('reject values nested deeper than the stack without throwing', () => {
    const tree = object({ a: { $ref: '#' } }, { additionalProperties: false })
    const deep = (text: string) => JSON.parse(`${'{"a":'.repeat(200_000)}${text}${'}'.repeat(200_000)}`)
    expect(problemsOf(tree, deep('1'))).to.match(/^\(arguments\): .*nested/)
    const lazy: z.ZodType = z.object({ a: z.lazy(() => lazy).optional() })
    return Promise.resolve(compileSchema(lazy as unknown as StandardSchema, 'input').validate(deep('1'))).then(
      checked => expect((checked as { problems?: string }).problems).to.match(/^\(arguments\): .*nested/),
    )
  })

  it('accept any JSON value or report at most eleven lines', () => {
    const { validate } = compileSchema(
      object({ ...(order['properties'] as object), c: { anyOf: [{ $ref: '#' }, { const: 1 }] } }),
      'input',
    )
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.object({ key: fc.constantFrom('a', 'c', 'items', 'unit', '__proto__') })),
        value => {
          const checked = validate(value) as Checked
          expect(checked.ok || checked.problems.split('\n').length <= 11).to.equal(true)
          if (!checked.ok) expect(checked.problems).to.not.equal('')
        },
      ),
      { numRuns: caseCount(100, 20) },
    )
    const hostile = JSON.parse('{"a":"x","__proto__":{"unit":"k"}}')
    expect(problemsOf(order, hostile)).to.match(/^__proto__/)
  })
})

describe('Standard Schema', () => {
  it('publishes the JSON Schema of zod and validates with zod transformations', () => {
    const schema = z.object({ n: z.string().transform(text => text.length), unit: z.enum(['c', 'f']).default('c') })
    const { json, validate } = compileSchema(schema, 'input')
    expect(json).to.deep.include({ type: 'object', required: ['n'] })
    expect(Reflect.ownKeys(json)).to.not.include('~standard')
    expect(validate({ n: 'abc' })).to.deep.equal({ ok: true, value: { n: 3, unit: 'c' } })
    expect(problemsOf(schema, { n: 1 })).to.match(/^n: .*string/)
  })

  it('publishes the output side for output schemas', () => {
    const schema = z.object({ unit: z.enum(['c', 'f']).default('c') })
    expect(compileSchema(schema, 'output').json).to.deep.include({ required: ['unit'] })
    expect(compileSchema(schema, 'input').json).to.not.have.property('required')
  })

  it('accepts an arktype schema and prints its path once', () => {
    const schema = type({ a: 'string', list: type({ price: 'number' }).array() })
    expect(compileSchema(schema, 'input').json).to.deep.include({ type: 'object', required: ['a', 'list'] })
    expect(problemsOf(schema, { a: 'x', list: [{ price: '1' }] })).to.match(/^list\[0\]\.price: .*number.*string/)
  })

  it('awaits asynchronous validation', async () => {
    const schema = z.object({ a: z.string().refine(async text => text === 'x', 'is not x') })
    const { validate } = compileSchema(schema, 'input')
    expect(await validate({ a: 'x' })).to.deep.equal({ ok: true, value: { a: 'x' } })
    expect(await validate({ a: 'y' })).to.deep.equal({ ok: false, problems: 'a: is not x' })
  })

  it('names supported libraries if a schema cannot provide its JSON Schema', () => {
    const bare = v.object({ a: v.string() }) as unknown as StandardSchema
    expect(() => compileSchema(bare, 'input')).to.throw(
      /valibot.*toStandardJsonSchema\(v\.object\(.*@valibot\/to-json-schema/,
    )
    const impossible = z.object({ a: z.string().transform(Number) })
    expect(() => compileSchema(impossible, 'output')).to.throw(/JSON/)
  })

  it('joins multi-line messages into one line', () => {
    const schema = z.object({ a: z.string().refine(() => false, 'is wrong:\n  and why') })
    expect(problemsOf(schema, { a: 'x' })).to.equal('a: is wrong: and why')
  })

  it('requires an object root for converted input schemas', () => {
    expect(() => compileSchema(z.union([z.object({}), z.string()]), 'input')).to.throw(/`type`.*"object"/)
    expect(() => compileSchema(z.string(), 'input')).to.throw(/`type`.*"object".*"string"\)/)
  })

  it('strips vendor keys from the JSON Schema', () => {
    const jsonSchema = { input: () => ({ type: 'object', '~standard': {} }), output: () => ({}) }
    const schema: StandardSchema = {
      '~standard': { version: 1, vendor: 'own', validate: value => ({ value }), jsonSchema },
    }
    expect(compileSchema(schema, 'input').json).to.deep.equal({ type: 'object' })
  })
})

describe('Schemas that lists show', () => {
  const DRAFT_07 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' }
  const text = { type: 'string' }

  it('are draft 2020-12 if a draft-07 schema means the same', () => {
    const $ref = '#/definitions/a'
    const same = {
      type: 'object',
      definitions: { a: text },
      properties: { a: { $ref, description: 'A' }, b: { type: 'array', items: text } },
    }
    expect(advertisedSchema({ ...DRAFT_07, ...same })).to.deep.equal(same)
    expect(advertisedSchema(same)).to.equal(same)
  })

  for (const part of [
    { dependencies: { a: ['b'] } },
    { properties: { a: { type: 'array', items: [text] } } },
    { properties: { a: { $ref: '#', minLength: 1 } } },
    { properties: { a: { unevaluatedProperties: false } } },
  ]) {
    it(`stay draft-07 with ${JSON.stringify(part)}`, () => {
      const schema = { ...DRAFT_07, ...part }
      expect(advertisedSchema(schema)).to.equal(schema)
    })
  }

  it('are those of the tools on the wire', async () => {
    const output = { ...DRAFT_07, properties: { a: text } }
    const { wire } = compileDefinition(
      defineTool({ name: 't', output, handler: () => ({ a: 'x' }) }),
      'a test',
      () => [],
    )
    expect(wire['outputSchema']).to.deep.equal({ type: 'object', properties: { a: text } })
  })
})
