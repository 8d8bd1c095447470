// Tests the JSON encoding of call responses.
import { expect } from 'chai'
import fc from 'fast-check'
import type { Call } from '../../core/mcp/calls/call.ts'
import { encodeResponse } from '../../core/mcp/dispatch.ts'
import { SerializedResponse, SerializedResult } from '../../core/mcp/wire/message.ts'
import { caseCount } from '../support/thorough.ts'

const SERVER = { name: 'päper "shop"', version: '1' }
const META = { 'io.modelcontextprotocol/serverInfo': SERVER }
const host = { log: { error() {} } } as unknown as Parameters<typeof encodeResponse>[0]

/** As much of a call as its answer needs. */
const callOf = (id: string | number, modern: boolean) =>
  ({
    id,
    modern,
    notes: {},
    method: 'tools/call',
    view: { serverInfo: SERVER, metaJson: JSON.stringify(META) },
  }) as unknown as Call

describe('Response encoding', () => {
  it('property: in 2026-07-28 adds resultType and server info to any result', () => {
    const result = fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('content', '_meta', 'resultType', 'toJSON', 'isError')),
      fc.oneof(fc.jsonValue(), fc.constant(undefined)),
    )
    fc.assert(
      fc.property(result, fc.oneof(fc.string(), fc.integer()), (made, id) => {
        const { _meta, resultType: _, ...rest } = made
        const meta = typeof _meta === 'object' || typeof _meta === 'string' ? _meta : {}
        const expected = { resultType: 'complete', ...rest, _meta: { ...(meta as object), ...META } }
        const text = String(encodeResponse(host, callOf(id, true), made))
        expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify({ jsonrpc: '2.0', id, result: expected })))
      }),
      { numRuns: caseCount(500, 100) },
    )
  })

  it('produces valid JSON for results that are boxed primitives or have toJSON', () => {
    const odd = [
      Object.assign(new String('","evil":1,"x":"'), { content: [] }),
      Object.assign(Object.create({ toJSON: () => 'text' }), { content: [] }),
      Object.assign(new Number(7), { content: [] }),
    ]
    for (const result of odd) {
      const answer = JSON.parse(String(encodeResponse(host, callOf(1, true), result)))
      expect(answer.result).to.include({ resultType: 'complete' }).and.not.have.property('evil')
    }
  })

  it('property: encodes a serialized result identically as text and bytes, for any id', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer()), (value, id) => {
        const result = new SerializedResult(JSON.stringify(value))
        const answer = encodeResponse(host, callOf(id, false), result)
        expect(answer).to.be.instanceOf(SerializedResponse)
        const { bytes } = answer as SerializedResponse
        expect(bytes.toString()).to.equal(String(answer))
        expect(JSON.parse(String(answer))).to.deep.equal(
          JSON.parse(JSON.stringify({ jsonrpc: '2.0', id, result: value })),
        )
      }),
    )
  })

  it('encodes a serialized result to bytes once for several responses', () => {
    const result = new SerializedResult('{"tools":["ä"]}')
    const copies = [1, 2, 3].map(id => encodeResponse(host, callOf(id, false), result) as SerializedResponse)
    const { bytes } = result
    for (const answer of copies) expect(answer.bytes.includes(bytes)).to.equal(true)
    expect(result.bytes).to.equal(bytes)
  })
})
