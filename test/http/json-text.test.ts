// Tests the scan of JSON text for forbidden keys and size limits before parsing.
import { expect } from 'chai'
import fc from 'fast-check'
import { findForbidden, MAX_DEPTH, MAX_KEY, MAX_MEMBERS, OBJECTS_IN_ANY_BODY } from '../../core/http/json-body.ts'
import { readMessages } from '../../core/mcp/wire/message.ts'
import { caseCount } from '../support/thorough.ts'

type Tree = number | string | Tree[] | { pairs: Array<[string, Tree]> }

const KEYS = ['__proto__', 'constructor', 'prototype', 'constructo', '__proto_', 'a', '', '"', '\\', '{', '"__proto__']

const { tree } = fc.letrec<{ tree: Tree }>(tie => ({
  tree: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.integer(),
    fc.constantFrom(...KEYS, '":{', ',"constructor":{"prototype":1}'),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), tie('tree')), { maxLength: 3, selector: ([key]) => key })
      .map(pairs => ({ pairs })),
  ),
}))

/** The tree as JSON: some characters of its strings as escapes, with space where there may be any. */
function write(value: Tree, isEscaped: (index: number) => boolean, space: string): string {
  const quote = (text: string) => {
    const characters = [...text].map((character, index) =>
      isEscaped(index)
        ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
        : JSON.stringify(character).slice(1, -1),
    )
    return `"${characters.join('')}"`
  }
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(part => write(part, isEscaped, space)).join(`${space},`)}]`
  const pairs = value.pairs.map(([key, part]) => `${quote(key)}${space}:${space}${write(part, isEscaped, space)}`)
  return `{${space}${pairs.join(`${space},${space}`)}${space}}`
}

/** What the text must be judged by. */
function isForbidden(value: Tree): boolean {
  if (typeof value !== 'object') return false
  if (Array.isArray(value)) return value.some(isForbidden)
  return value.pairs.some(([key, part]) => {
    if (key === '__proto__' || isForbidden(part)) return true
    return key === 'constructor' && typeof part === 'object' && 'pairs' in part
      ? part.pairs.some(([inner]) => inner === 'prototype')
      : false
  })
}

/** How often something is parsed meanwhile. */
function countParses(act: () => void): number {
  const { parse } = JSON
  let parses = 0
  JSON.parse = (...args) => {
    parses++
    return parse(...args)
  }
  try {
    act()
  } finally {
    JSON.parse = parse
  }
  return parses
}

describe('JSON text scan', () => {
  it('property: rejects exactly the texts with a prototype key, in any spelling', () => {
    let forbidden = 0
    const runs = caseCount(5_000, 1_000)
    fc.assert(
      fc.property(tree, fc.integer({ min: 1, max: 7 }), fc.constantFrom('', ' ', '\n\t'), (value, every, space) => {
        const text = write(value, index => index % every === every - 1, space)
        JSON.parse(text)
        if (isForbidden(value)) forbidden++
        expect(findForbidden(text) !== undefined, text).to.equal(isForbidden(value))
      }),
      { numRuns: runs },
    )
    expect(forbidden).to.be.within(runs / 50, runs - runs / 50)
  })

  it('rejects nesting above the depth limit', () => {
    expect(findForbidden(`${'['.repeat(MAX_DEPTH)}${']'.repeat(MAX_DEPTH)}`)).to.equal(undefined)
    expect(findForbidden('[{'.repeat(MAX_DEPTH / 2).concat('['))).to.match(/deeper than 128 levels/)
  })

  it('rejects too many objects and lists, but not other values', () => {
    const filled = (part: string, count: number) => `[${`${part},`.repeat(count)}0]`
    for (const part of ['{}', '[]', '[1]']) {
      expect(findForbidden(filled(part, OBJECTS_IN_ANY_BODY - 1)), part).to.equal(undefined)
      expect(findForbidden(filled(part, OBJECTS_IN_ANY_BODY)), part).to.match(/more than 100000 objects/)
    }
    for (const part of ['1', '"a"', '"[{"', '{"a":123}', '{"a":"b","c":"d"}', '[1.5,2.25]']) {
      expect(findForbidden(filled(part, OBJECTS_IN_ANY_BODY + 1)), part).to.equal(undefined)
    }
    expect(() =>
      readMessages(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${filled('{}', 1_000_000)}}}`),
    ).to.throw(/Invalid request: it has more than 375\d+ objects and lists/)
  })

  it('rejects objects with too many members and keys that are too long', () => {
    const members = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join(',')}}`
    expect(findForbidden(members(MAX_MEMBERS))).to.equal(undefined)
    expect(findForbidden(`[${members(MAX_MEMBERS)},${members(3)}]`)).to.equal(undefined)
    expect(findForbidden(members(MAX_MEMBERS + 1))).to.match(/more than 100000 members/)
    expect(findForbidden(`{"${'k'.repeat(MAX_KEY - 1)}":1}`)).to.equal(undefined)
    expect(findForbidden(`{"${'k'.repeat(MAX_KEY)}":1}`)).to.match(/a key of more than 8192/)
    expect(findForbidden(`["${'k'.repeat(MAX_KEY * 2)}"]`)).to.equal(undefined)
  })

  it('stops at the first key with invalid JSON', () => {
    const text = `{"a":[${'{"aaaaaaaa\\x":1},'.repeat(50_000)}{}]}`
    const parses = countParses(() => expect(() => readMessages(text)).to.throw('not JSON'))
    expect(parses).to.equal(2)
  })

  it('parses an accepted message once and a rejected one never', () => {
    const many = '{},'.repeat(40_000)
    const body = (last: string) => `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[${many}${last}]}}`
    const forbidden = countParses(() => {
      expect(() => readMessages(body('{"__proto__":1}'))).to.throw('is not allowed in messages')
    })
    const others = countParses(() => {
      readMessages(body('{}'))
      expect(() => readMessages(body('{'))).to.throw('not JSON')
    })
    expect([forbidden, others]).to.deep.equal([0, 2])
  })

  it('calls a text without HTTP a message', () => {
    expect(() => readMessages('{', 'message')).to.throw('the message is not JSON')
  })
})
