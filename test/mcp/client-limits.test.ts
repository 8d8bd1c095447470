// Tests the size limit for client info and capabilities.
import { expect } from 'chai'
import fc from 'fast-check'
import { MAX_CLIENT_FACT, MAX_CLIENT_VALUES, sizeProblem } from '../../core/mcp/client-limits.ts'
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
  it('property: rejects values over the byte or value limit', () => {
    let large = 0
    // Few values of `fact` exceed a limit.
    const values = fc.oneof(fact, fc.array(fc.integer(), { maxLength: 2 * MAX_CLIENT_VALUES, size: 'max' }))
    fc.assert(
      fc.property(values, value => {
        const isLarge =
          Buffer.byteLength(JSON.stringify(value)) > MAX_CLIENT_FACT || countValues(value) > MAX_CLIENT_VALUES
        if (isLarge) large++
        return (sizeProblem('clientInfo', value) !== undefined) === isLarge
      }),
      { numRuns: caseCount(3_000, 150) },
    )
    expect(large).to.be.above(0)
  })
})
