// Tests the size limit for client info and capabilities.
import { expect } from 'chai'
import fc from 'fast-check'
import { sizeFault } from '../../core/mcp/client-said.ts'
import { MAX_CLIENT_FACT, MAX_CLIENT_VALUES } from '../../core/mcp/limits.ts'
import { caseCount } from '../support/thorough.ts'

/** Texts that JSON writes longer than they are, among them. */
const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('\u0001', '"', '\\', '\ud800', 'ä', '€', 'a') }))
const { fact } = fc.letrec(tie => ({
  fact: fc.oneof(
    { maxDepth: 4 },
    text.map(part => part.repeat(40)),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('fact'), { maxLength: 6 }),
    fc.dictionary(text, tie('fact'), { maxKeys: 6 }),
  ),
}))

/** Itself included. */
const countValues = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce((sum: number, part) => sum + countValues(part), 1)
    : 1

describe('Client info size limit', () => {
  it('property: rejects values over the byte or value limit, mostly without serializing', () => {
    const counts = { runs: 0, large: 0, written: 0 }
    const { stringify } = JSON
    try {
      fc.assert(
        fc.property(fact, value => {
          JSON.stringify = stringify
          const bytes = Buffer.byteLength(stringify(value))
          JSON.stringify = ((...args: Parameters<typeof stringify>) => {
            counts.written++
            return stringify(...args)
          }) as typeof stringify
          const fault = sizeFault('clientInfo', value)
          JSON.stringify = stringify
          counts.runs++
          const isLarge = bytes > MAX_CLIENT_FACT || countValues(value) > MAX_CLIENT_VALUES
          if (isLarge) counts.large++
          return (fault !== undefined) === isLarge
        }),
        { numRuns: caseCount(3_000, 600) },
      )
    } finally {
      JSON.stringify = stringify
    }
    expect(counts.large).to.be.above(0)
    expect(counts.written).to.be.below(counts.runs / 2)
  })
})
