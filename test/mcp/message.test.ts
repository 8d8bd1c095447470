// Tests parsing of JSON-RPC messages.
import { expect } from 'chai'
import fc from 'fast-check'
import { HostError, type HostErrorKind } from '../../core/http/errors.ts'
import { MAX_DEPTH } from '../../core/http/json-body.ts'
import { MAX_BATCH } from '../../core/mcp/client-limits.ts'
import { type Message, readMessages } from '../../core/mcp/wire/message.ts'
import { anyText } from '../support/any-text.ts'
import { caseCount } from '../support/thorough.ts'

function kindOf(text: string): string {
  try {
    const read = readMessages(text)
    return 'kind' in read ? read.kind : 'batch'
  } catch (error) {
    if (HostError.is(error)) return error.kind
    throw error
  }
}

const one = (value: unknown): Message => readMessages(JSON.stringify(value)) as Message
const request = { jsonrpc: '2.0', id: 1, method: 'ping' }

describe('JSON-RPC message parsing', () => {
  it('distinguishes requests, notifications and responses', () => {
    expect(one(request)).to.deep.equal({ kind: 'request', id: 1, method: 'ping', params: {} })
    expect(one({ jsonrpc: '2.0', method: 'x', params: { a: 1 } }).kind).to.equal('notification')
    expect(one({ jsonrpc: '2.0', id: 1, result: null }).kind).to.equal('response')
    expect(one({ jsonrpc: '2.0', id: 'a', error: { code: 1, message: '' } }).kind).to.equal('response')
  })

  it('accepts strings and safe integers as ids, including 0 and ""', () => {
    for (const id of [0, -1, '', 'a', 2 ** 53 - 1]) expect(one({ ...request, id })).to.include({ kind: 'request', id })
    for (const id of [null, 1.5, 2 ** 53, true, {}, []]) expect(one({ ...request, id }).kind).to.equal('invalid')
    expect(kindOf('{"jsonrpc":"2.0","id":1e999,"method":"ping"}')).to.equal('invalid')
  })

  it('reads null params as absent params', () => {
    expect(one({ ...request, params: null })).to.deep.include({ kind: 'request', params: {} })
  })

  it('reports the error of an invalid message and keeps a readable id', () => {
    const cases: Array<[unknown, string]> = [
      [{ ...request, jsonrpc: '1.0' }, 'jsonrpc'],
      [{ jsonrpc: '2.0', id: 7 }, 'method'],
      [{ ...request, method: 5 }, 'method'],
      [{ ...request, params: [1] }, 'params'],
      ['text', 'object'],
      [5, 'object'],
      [null, 'object'],
      [true, 'object'],
    ]
    for (const [value, word] of cases) {
      const message = one(value)
      expect(message.kind, JSON.stringify(value)).to.equal('invalid')
      if (message.kind !== 'invalid') continue
      expect(message.error.message).to.include(word)
      expect(message.error.kind).to.equal('invalidRequest')
    }
    expect(one({ jsonrpc: '2.0', id: 7 })).to.include({ id: 7 })
  })

  it('returns a parse error for invalid JSON and an invalid request for an empty body', () => {
    for (const text of ['{', '{"a":}', 'nonsense', '[1,', '{"jsonrpc":"2.0",}'])
      expect(kindOf(text)).to.equal('parseError')
    for (const text of ['', '  \n']) expect(kindOf(text)).to.equal('invalidRequest')
  })

  it(`rejects nesting deeper than ${MAX_DEPTH} levels without recursion`, () => {
    const nested = (depth: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`
    expect(kindOf(nested(MAX_DEPTH - 2))).to.equal('request')
    expect(kindOf(nested(MAX_DEPTH - 1))).to.equal('invalidRequest')
    expect(kindOf(nested(1_000_000))).to.equal('invalidRequest')
    expect(kindOf('['.repeat(100_000))).to.equal('invalidRequest')
    expect(kindOf(JSON.stringify({ ...request, params: { text: '[{'.repeat(5_000) } }))).to.equal('request')
    expect(kindOf(JSON.stringify({ ...request, params: { text: `\\"${'['.repeat(5_000)}` } }))).to.equal('request')
  })

  it('rejects prototype keys, also escaped, but not in string values', () => {
    const poisoned = ['"__proto__":{"a":1}', '"\\u005f_proto__":{"a":1}', '"constructor":{"prototype":{"a":1}}']
    for (const entry of poisoned) {
      expect(kindOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{${entry}}}`), entry).to.equal('invalidRequest')
      expect(kindOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"deep":[{${entry}}]}}`), entry).to.equal(
        'invalidRequest',
      )
    }
    expect(kindOf(JSON.stringify({ ...request, params: { text: '"__proto__": is a key' } }))).to.equal('request')
    expect(({} as Record<string, unknown>)['a']).to.equal(undefined)
  })

  it(`accepts batches of 1 to ${MAX_BATCH}`, () => {
    expect(readMessages(JSON.stringify([request, { jsonrpc: '2.0', method: 'n' }, 5]))).to.have.length(3)
    expect(kindOf('[]')).to.equal('invalidRequest')
    expect(kindOf(JSON.stringify(Array(MAX_BATCH).fill(request)))).to.equal('batch')
    expect(kindOf(JSON.stringify(Array(MAX_BATCH + 1).fill(request)))).to.equal('invalidRequest')
  })

  it('property: returns a message, a batch or a HostError for any text', () => {
    const text = fc.oneof(
      anyText(),
      fc.json(),
      fc.json().map(json => `[${json}]`),
    )
    fc.assert(
      fc.property(text, value => {
        const known = ['request', 'notification', 'response', 'invalid', 'batch', 'parseError', 'invalidRequest']
        expect(known).to.include(kindOf(value))
      }),
      { numRuns: caseCount(500, 100) },
    )
  })

  it('property: round-trips a well-formed request', () => {
    const params = fc.dictionary(
      fc.string().filter(key => key !== '__proto__' && key !== 'constructor'),
      // `null` means absent for some parameters.
      fc
        .jsonValue({ maxDepth: 3 })
        .filter(value => value !== null && !/__proto__|constructor/.test(JSON.stringify(value))),
    )
    const id = fc.oneof(fc.string(), fc.maxSafeInteger())
    fc.assert(
      fc.property(id, fc.string(), params, (id, method, params) => {
        const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
        expect(readMessages(text)).to.deep.equal({
          kind: 'request',
          id,
          method,
          params: JSON.parse(JSON.stringify(params)),
        })
      }),
      { numRuns: caseCount(500, 50) },
    )
  })
})

describe('HostError', () => {
  it('is an internal error for an unknown kind and for names of Object.prototype', () => {
    for (const kind of ['teapot', 'toString', '__proto__']) {
      const error = new HostError(kind as HostErrorKind, { detail: 'no tea' })
      expect(error).to.include({ kind: 'internal', status: 500, code: -32603, message: 'Internal error: no tea' })
    }
  })
})
