// Tests the comparison of two schemas by keyword, and checks its verdicts against ajv.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import type { Verdict } from '../../cli/lock/compare-schemas.ts'
import { compareSchemas } from '../../cli/lock/compare-schemas.ts'
import type { JsonObject } from '../../core/index.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { caseCount } from '../support/thorough.ts'

const text = { type: 'string' }
const closed = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
})
const open = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

/** What changed, from, to, and the verdicts in any order. */
const TABLE: ReadonlyArray<readonly [string, JsonObject, JsonObject, readonly Verdict[]]> = [
  ['nothing', open({ a: text }), open({ a: { type: 'string' } }), []],
  ['the same in other words', open({ a: { minLength: 0 } }), open({ a: {} }), []],
  ['a new required property', closed({}), closed({ a: text }, { required: ['a'] }), ['more', 'less']],
  ['a new optional property where others were refused', closed({}), closed({ a: text }), ['more']],
  ['a new optional property where others were let in', open({}), open({ a: text }), ['same']],
  [
    'a new property where others had to fit',
    open({}, { additionalProperties: { type: 'number' } }),
    open({ a: text }, { additionalProperties: { type: 'number' } }),
    ['same', 'other'],
  ],
  ['a property that is gone where others are refused', closed({ a: text }), closed({}), ['less']],
  ['a property that is gone where others are let in', open({ a: text }), open({}), ['unknown']],
  ['a property that need not be there', open({ a: text }, { required: ['a'] }), open({ a: text }), ['more']],
  ['a closed object', open({ a: text }), closed({ a: text }), ['less']],
  ['an opened object', closed({ a: text }), open({ a: text }), ['more']],
  ['a narrower type', open({ a: { type: 'number' } }), open({ a: { type: 'integer' } }), ['less']],
  ['a wider type', open({ a: { type: 'integer' } }), open({ a: { type: ['number', 'null'] } }), ['more']],
  ['another type', open({ a: text }), open({ a: { type: 'number' } }), ['other']],
  ['a type where there was none', open({ a: {} }), open({ a: text }), ['less']],
  ['a value less', open({ a: { enum: ['x', 'y'] } }), open({ a: { enum: ['x'] } }), ['less']],
  ['a value more', open({ a: { const: 'x' } }), open({ a: { enum: ['x', 'y'] } }), ['more']],
  ['values in another order', open({ a: { enum: ['x', 'y'] } }), open({ a: { enum: ['y', 'x'] } }), ['words']],
  ['a list of values', open({ a: text }), open({ a: { type: 'string', enum: ['x'] } }), ['less']],
  ['a tighter bound', open({ a: { maxLength: 9 } }), open({ a: { maxLength: 8 } }), ['less']],
  ['a new bound', open({ a: {} }), open({ a: { minimum: 0 } }), ['less']],
  ['a looser bound', open({ a: { minimum: 1 } }), open({ a: { minimum: 0 } }), ['more']],
  ['a new pattern', open({ a: text }), open({ a: { ...text, pattern: 'x' } }), ['less']],
  ['another pattern', open({ a: { pattern: 'x' } }), open({ a: { pattern: 'y' } }), ['unknown']],
  ['no pattern', open({ a: { pattern: 'x' } }), open({ a: {} }), ['more']],
  ['other words', open({ a: { description: 'x' } }), open({ a: { description: 'y', default: 1 } }), ['words', 'words']],
  ['entries of a list', { items: { type: 'number' } }, { items: { type: 'integer' } }, ['less']],
  ['one more of anyOf', { anyOf: [text] }, { anyOf: [text, { type: 'null' }] }, ['more']],
  ['anyOf in another order', { anyOf: [text, { type: 'null' }] }, { anyOf: [{ type: 'null' }, text] }, ['unknown']],
  ['words within anyOf', { anyOf: [text] }, { anyOf: [{ ...text, title: 'x' }] }, ['words']],
  ['a wider member of anyOf', { anyOf: [{ maxLength: 1 }] }, { anyOf: [{ maxLength: 2 }] }, ['unknown']],
  ['a wider member of oneOf', { oneOf: [{ maxLength: 1 }] }, { oneOf: [{ maxLength: 2 }] }, ['unknown']],
  ['a definition', { $defs: { a: text }, $ref: '#/$defs/a' }, { $defs: { a: {} }, $ref: '#/$defs/a' }, ['unknown']],
  [
    'a reference to a changed schema',
    open({ a: { maxLength: 1 }, b: { not: { $ref: '#/properties/a' } } }),
    open({ a: { maxLength: 2 }, b: { not: { $ref: '#/properties/a' } } }),
    ['more', 'unknown'],
  ],
  ['the keyword not', { not: text }, { not: {} }, ['unknown']],
  ['an unknown keyword', { 'x-own': 1 }, { 'x-own': 2 }, ['unknown']],
  ['a keyword that every object has', {}, { constructor: 1, hasOwnProperty: 2 }, ['unknown', 'unknown']],
  [
    'what is unevaluated',
    open({}, { unevaluatedProperties: false }),
    open({ a: text }, { unevaluatedProperties: false }),
    ['same', 'unknown'],
  ],
  [
    'a property called as a word is, where nothing else may be',
    open({}, { unevaluatedProperties: false }),
    open({ title: text }, { unevaluatedProperties: false }),
    ['same', 'unknown'],
  ],
  [
    'properties by pattern',
    open({ a: {} }, { patternProperties: { a: text } }),
    open({}, { patternProperties: { a: text } }),
    ['unknown'],
  ],
  ['a schema that nothing matches', open({ a: true }), open({ a: false }), ['less']],
]

describe('Schema comparison', () => {
  for (const [what, before, after, verdicts] of TABLE) {
    it(`${what}: ${verdicts.join(', ') || 'nothing'}`, () => {
      const found = compareSchemas(before, after)
      expect(found.map(({ verdict }) => verdict).sort(), JSON.stringify(found)).to.deep.equal([...verdicts].sort())
    })
  }
})

const seeded = createSeededRandom(17)
const random = () => seeded.below(1_000) / 1_000
const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)] as Value
const NAMES = ['a', 'b', 'c']
const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']
const LEAVES = [null, true, false, 0, 1, -1, 2.5, 7, '', 'x', 'xy', 'xyz', 'yyyyy']

/** Something of a schema, at random. */
function keyword(depth: number): JsonObject {
  const inner = () => (depth > 0 ? schemaAt(depth - 1) : {})
  const some = () => NAMES.filter(() => random() < 0.5)
  return pick<() => JsonObject>([
    () => ({
      type: random() < 0.7 ? pick(TYPES) : [pick(TYPES), pick(TYPES)].filter((one, at, all) => all.indexOf(one) === at),
    }),
    () => ({ enum: [...new Set([pick(LEAVES), pick(LEAVES), pick(LEAVES)])] }),
    () => ({ const: pick(LEAVES) }),
    () => ({ minLength: pick([0, 1, 2, 3]) }),
    () => ({ maxLength: pick([0, 1, 2, 3]) }),
    () => ({ pattern: pick(['x', 'y', '^x']) }),
    () => ({ minimum: pick([-1, 0, 1]) }),
    () => ({ exclusiveMaximum: pick([0, 2, 8]) }),
    () => ({ multipleOf: pick([1, 2, 7]) }),
    () => ({ minItems: pick([0, 1]), maxItems: pick([1, 2]) }),
    () => ({ uniqueItems: random() < 0.5 }),
    () => ({ items: inner() }),
    () => ({ prefixItems: [inner()] }),
    () => ({ contains: inner() }),
    () => ({ properties: Object.fromEntries(some().map(name => [name, inner()])) }),
    () => ({ required: some() }),
    () => ({ additionalProperties: pick([true, false, inner()]) }),
    () => ({ patternProperties: { a: inner() } }),
    () => ({ propertyNames: { maxLength: pick([0, 1]) } }),
    () => ({ minProperties: pick([0, 1]) }),
    () => ({ unevaluatedProperties: random() < 0.5 }),
    () => ({ dependentRequired: { a: some() } }),
    () => ({ anyOf: [inner(), inner()] }),
    () => ({ oneOf: [inner(), inner()] }),
    () => ({ allOf: [inner()] }),
    () => ({ not: inner() }),
    () => Object.fromEntries(['if', 'then'].map(name => [name, inner()])),
    () => ({ $defs: { d: inner() } }),
    () => ({ title: pick(['one', 'other']) }),
  ])()
}

function schemaAt(depth: number): JsonObject {
  return Object.assign({}, ...Array.from({ length: 1 + Math.floor(random() * 3) }, () => keyword(depth)))
}

/** The same with something changed, here or below. */
function mutate(schema: JsonObject): JsonObject {
  const keys = Object.keys(schema)
  const nested = keys.filter(
    key => typeof schema[key] === 'object' && schema[key] !== null && !Array.isArray(schema[key]),
  )
  const within = nested.length > 0 && random() < 0.5 ? pick(nested) : undefined
  if (within !== undefined) return { ...schema, [within]: mutate(schema[within] as JsonObject) }
  const isMap = keys.length > 0 && keys.every(key => NAMES.includes(key) || key === 'd')
  if (isMap) return { ...schema, [pick(keys)]: schemaAt(1) }
  if (random() < 0.3 && keys.length > 0) {
    const gone = pick(keys)
    return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== gone))
  }
  return { ...schema, ...keyword(1) }
}

function valueAt(depth: number): unknown {
  const kind = random()
  if (depth === 0 || kind < 0.4) return pick(LEAVES)
  if (kind < 0.6) return Array.from({ length: Math.floor(random() * 3) }, () => valueAt(depth - 1))
  return Object.fromEntries(NAMES.filter(() => random() < 0.5).map(name => [name, valueAt(depth - 1)]))
}

describe('Schema comparison checked against ajv', () => {
  const ajv = new Ajv2020({ strict: false, logger: false })
  const compile = (schema: JsonObject) => {
    try {
      return ajv.compile(schema)
    } catch {
      return undefined
    }
  }
  /** Of some schemas ajv makes code that throws. */
  const runs = (validate: (value: unknown) => unknown) => {
    try {
      for (const value of values) validate(value)
      return true
    } catch {
      return false
    }
  }
  const values = Array.from({ length: 100 }, () => valueAt(3))

  it('reports "less" if a value is newly rejected and "more" if newly accepted', () => {
    const tried: Record<string, number> = { pairs: 0, judged: 0 }
    const wrong: string[] = []
    const pairs = caseCount(200, 40)
    for (let drawn = 0; drawn < 10_000 && (tried['pairs'] ?? 0) < pairs; drawn++) {
      const before = schemaAt(2)
      const after = mutate(before)
      const [was, now] = [compile(before), compile(after)]
      if (!was || !now || !runs(was) || !runs(now)) continue
      tried['pairs'] = (tried['pairs'] ?? 0) + 1
      const verdicts = new Set(compareSchemas(before, after).map(({ verdict }) => verdict))
      for (const verdict of verdicts) tried[verdict] = (tried[verdict] ?? 0) + 1
      // A name that had none is said to be new: it is not counted as less, and is left out here.
      if (verdicts.has('unknown') || verdicts.has('other') || verdicts.has('same')) continue
      tried['judged'] = (tried['judged'] ?? 0) + 1
      for (const value of values) {
        const [fitted, fits] = [was(value), now(value)]
        if (fitted && !fits && !verdicts.has('less')) wrong.push(JSON.stringify({ refused: value, before, after }))
        if (!fitted && fits && !verdicts.has('more')) wrong.push(JSON.stringify({ allowed: value, before, after }))
      }
    }
    expect(wrong.slice(0, 5)).to.deep.equal([])
    expect(tried['judged']).to.be.above(pairs / 5)
    for (const verdict of ['less', 'more', 'other', 'unknown', 'words']) expect(tried[verdict]).to.be.above(0)
  })
})
