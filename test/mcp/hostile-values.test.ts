// Tests validation of values that are slow or unsafe to validate with common implementations.
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool, HostError, type JsonSchema } from '../../core/index.ts'
import { compileSchema } from '../../core/mcp/schema/schema.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { caseCount, selectCases } from '../support/thorough.ts'

after(stopHosts)

const object = (properties: JsonSchema): JsonSchema => ({ type: 'object', properties })
const usual = addFormats.default(new Ajv2020({ strict: false }))
const ours = (schema: JsonSchema) => {
  const { validate } = compileSchema(object({ a: schema }), 'input')
  return (a: unknown) => (validate({ a }) as { ok: boolean }).ok
}

/** Two lists that differ in their last entry alone. */
const alike = (length: number, last: number) => [...Array.from({ length }, () => 0), last]
const node = { $ref: '#/$defs/node' }
const branch = (kind: string) => ({
  type: 'object',
  properties: { kind: { const: kind }, left: node },
  required: ['kind'],
})
const TREE: JsonSchema = { ...object({ a: node }), $defs: { node: { oneOf: [branch('and'), branch('or')] } } }
/** Without a property that selects the alternative. */
const either = { type: 'object', properties: { left: node } }
const SAME: JsonSchema = {
  ...object({ a: node }),
  $defs: { node: { anyOf: [either, { ...either, required: ['x'] }] } },
}
const lefts = (levels: number): object => (levels === 0 ? {} : { left: lefts(levels - 1) })
/** The selecting property comes last. */
const late = (kind: string) => ({ ...branch(kind), properties: { left: node, kind: { const: kind } } })
const LATE: JsonSchema = { ...object({ a: node }), $defs: { node: { oneOf: [late('and'), late('or'), late('none')] } } }
const deep = (levels: number): object => (levels === 0 ? { kind: 'none' } : { kind: 'or', left: deep(levels - 1) })

const hostile: ReadonlyArray<readonly [string, JsonSchema, unknown, boolean]> = [
  ['400 kB of url', object({ a: { format: 'url' } }), `http://a@${':'.repeat(400_000)}`, false],
  [
    '1,000 urls of 3 kB',
    object({ a: { items: { format: 'url' } } }),
    Array(1_000).fill(`http://a@${':'.repeat(3_000)}`),
    false,
  ],
  ['a million date-time separators', object({ a: { format: 'date-time' } }), ' '.repeat(1_000_000), false],
  [
    '100,000 distinct numbers',
    object({ a: { uniqueItems: true } }),
    Array.from({ length: 100_000 }, (_, i) => i),
    true,
  ],
  [
    '300 long lists that differ at their end',
    object({ a: { uniqueItems: true } }),
    Array.from({ length: 300 }, (_, i) => alike(2_000, i)),
    true,
  ],
  [
    '20,000 objects, the last of which is there twice',
    object({ a: { type: 'array', uniqueItems: true, items: { type: 'object' } } }),
    [...Array.from({ length: 20_000 }, (_, i) => ({ i })), { i: 19_999 }],
    false,
  ],
  [
    'a text too long for a pattern',
    object({ a: { maxLength: 10, pattern: 'a+a+$' } }),
    'a'.repeat(200_000).concat('!'),
    false,
  ],
  ['a recursive choice, wrong at its end', TREE, deep(40), false],
  ['a recursive choice whose kind comes last', LATE, deep(40), true],
  ['a recursive choice of equal kinds', { ...SAME, $defs: { node: { oneOf: [either, either] } } }, lefts(40), false],
  ['a recursive choice with a required property, wrong at each level', SAME, { left: lefts(40), y: 1 }, true],
]

describe('Values that are slow to validate', () => {
  let url = ''
  before(async () => {
    const tools = hostile.flatMap(([, schema, value], index) => [
      defineTool({ name: `takes_${index}`, input: schema, handler: () => 'ran' }),
      defineTool({ name: `gives_${index}`, output: schema, handler: () => ({ a: value }) }),
    ])
    ;({ url } = await startHost({ toolsets: { all: tools }, routes: { '/': { toolsets: 'all' } } }))
  })

  for (const [index, [what, , value, fits]] of hostile.entries()) {
    it(`are validated quickly as arguments and as results: ${what}`, async () => {
      const call = async (name: string, args: object) =>
        (await modern(url, 'tools/call', { name, arguments: args })).message.result.isError === true
      expect(await call(`takes_${index}`, { a: value })).to.equal(!fits)
      expect(await call(`gives_${index}`, {})).to.equal(!fits)
    })
  }
})

describe('Values with unusual properties', () => {
  const odd: readonly object[] = [
    { toString: 1 },
    { valueOf: null },
    { toString: {}, constructor: 1 },
    { constructor: { name: 1 } },
    { a: { toString: 1 } },
  ]
  for (const [what, schema] of [
    ['const', { const: { a: {} } }],
    ['enum', { enum: [{}, { a: {} }, 1] }],
    ['uniqueItems', { type: 'array', uniqueItems: true, items: {} }],
  ] as const) {
    it(`are validated without failing the call: ${what}`, async () => {
      const takes = defineTool({ name: 'takes', input: object({ a: schema }), handler: () => 'ran' })
      const { url } = await startHost({ toolsets: { all: [takes] }, routes: { '/': { toolsets: 'all' } } })
      for (const value of odd) {
        const a = what === 'uniqueItems' ? [value, {}, value] : value
        const { message } = await modern(url, 'tools/call', { name: 'takes', arguments: { a } })
        expect(message.error, JSON.stringify(message)).to.equal(undefined)
        expect(message.result.isError).to.equal(true)
        expect(message.result.content[0].text).to.include('a')
      }
    })
  }
})

describe('Errors', () => {
  it('with data that cannot be encoded become internal errors', async () => {
    const data = { requiredCapabilities: 1n }
    const fails = defineTool({
      name: 'fails',
      handler: () => {
        throw new HostError('missingCapability', { data })
      },
    })
    const { url } = await startHost({ toolsets: { all: [fails] }, routes: { '/': { toolsets: 'all' } } })
    const { message } = await modern(url, 'tools/call', { name: 'fails', arguments: {} })
    expect(message.id).to.be.a('number')
    expect(message.error).to.include({ code: -32_603 })
  })
})

describe('Nested uniqueItems', () => {
  const nested = (levels: number): JsonSchema => ({
    type: 'array',
    uniqueItems: true,
    items: levels === 0 ? { type: 'object' } : { anyOf: [nested(levels - 1), { type: 'object' }] },
  })
  /** So many different objects that count how often their keys are asked for. */
  function counted(length: number) {
    const count = { looks: 0 }
    const items = Array.from(
      { length },
      (_, id) =>
        new Proxy(
          { id },
          {
            ownKeys(target) {
              count.looks += 1
              return Reflect.ownKeys(target)
            },
          },
        ),
    )
    return { count, items }
  }

  it('compares each object once at any depth', () => {
    for (const levels of [1, 5, 10, 20]) {
      const { count, items } = counted(1_000)
      let value: unknown[] = items
      for (let level = 0; level < levels; level += 1) value = [value, { level }]
      expect(ours(nested(levels))(value)).to.equal(true)
      expect(count.looks).to.equal(items.length)
    }
  })

  it('skips objects without another object to compare with', () => {
    const { count, items } = counted(1)
    expect(ours(nested(0))(items)).to.equal(true)
    expect(ours({ type: 'array', uniqueItems: true })([1, ...items, 'a'])).to.equal(true)
    expect(count.looks).to.equal(0)
  })

  it('detects deep equality without caching between validations', () => {
    const check = ours(nested(2))
    const [one, other] = [
      { a: [{ b: 1 }], c: '#1' },
      { c: '#1', a: [{ b: 2 }] },
    ]
    const value = [[[one], [other]], [[one]]]
    expect(check(value)).to.equal(true)
    one.a[0] = { b: 2 }
    expect(check(value)).to.equal(false)
    one.a[0] = { b: 3 }
    expect(check(value)).to.equal(true)
    const any = ours({ type: 'array', uniqueItems: true })
    expect(any([[{}], ['#0'], ['#1'], ['#2']])).to.equal(true)
    expect(any([[[{}]], [[[]]], [[{}]]])).to.equal(false)
  })
})

it('format regex accepts up to 4,096 characters', () => {
  const check = ours({ format: 'regex' })
  const lengths = [10, 4_096, 4_097, 3_900_000]
  const taken = lengths.map(length => check('a'.repeat(length)))
  expect(taken).to.deep.equal([true, true, false, false])
  expect(check('(')).to.equal(false)
})

describe('Custom keyword implementations match ajv', () => {
  it('for uniqueItems', () => {
    const ownCheck = ours({ type: 'array', uniqueItems: true })
    const usualCheck = usual.compile({ type: 'array', uniqueItems: true })
    let [unique, repeated] = [0, 0]
    const item = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(1, '1', true, 'true', null, 'null', [], {}, [1], '[1]', 0, -0),
    )
    fc.assert(
      fc.property(fc.array(item, { maxLength: 6 }), items => {
        const list = items.map((value, index) => (index % 3 === 2 ? structuredClone(items[0]) : value))
        // The usual one calls these on what it is given.
        fc.pre(!/"(?:toString|valueOf)"/.test(JSON.stringify(list)))
        const expected = usualCheck(list)
        if (expected) unique += 1
        else repeated += 1
        expect(ownCheck(list)).to.equal(expected)
      }),
      { numRuns: caseCount(3_000, 100) },
    )
    expect(
      ownCheck([
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ]),
    ).to.equal(false)
    expect(ours({ type: 'array', uniqueItems: false })([1, 1])).to.equal(true)
    expect(Math.min(unique, repeated)).to.be.greaterThan(caseCount(100, 10))
  })

  it('for format url', () => {
    const ownCheck = ours({ format: 'url' })
    const usualCheck = usual.compile({ format: 'url' })
    const schemes = ['http://', 'https://', 'ftp://', 'HTTP://', 'ws://', '//', '']
    const users = ['', 'me@', 'me:pw@', ':@', 'a@b@', 'a b@']
    const hosts = [
      'a.example',
      'a',
      'localhost',
      '127.0.0.1',
      '8.8.8.8',
      '10.0.0.1',
      'é.example',
      '-a.b',
      'a.b.',
      'a..b',
    ]
    const ports = ['', ':80', ':8', ':999999', ':']
    const rests = ['', '/', '/a/b', '?q=1', '#f', '/a b', '/@x', '/é', '\n']
    let texts = ['']
    for (const part of [schemes, users, hosts, ports, rests]) texts = texts.flatMap(text => part.map(end => text + end))
    let [fits, not] = [0, 0]
    const different: string[] = []
    for (const text of selectCases(texts, 4_000)) {
      const expected = usualCheck(text)
      if (expected) fits += 1
      else not += 1
      if (ownCheck(text) !== expected) different.push(text)
    }
    expect(different).to.deep.equal([])
    expect(Math.min(fits, not)).to.be.greaterThan(caseCount(100, 10))
  })
})
