// Tests the "did you mean" suggestions for misspelt names.
import { expect } from 'chai'
import fc from 'fast-check'
import { findClosest as nearestOption } from '../../client/resolve-options.ts'
import { nearest } from '../../core/mcp/nearest.ts'

describe('nearest', () => {
  const names = ['health', 'cors', 'rate-limit', 'auth-jwt', 'transport-streamable', 'port']
  const meant: [string, string | undefined][] = [
    ['healht', 'health'],
    ['heath', 'health'],
    ['prot', 'port'],
    ['rateLimit', 'rate-limit'],
    ['Auth_JWT', 'auth-jwt'],
    ['transport-streaming', 'transport-streamable'],
    ['database', undefined],
    ['x', undefined],
  ]
  for (const [name, expected] of meant) {
    it(`suggests ${expected ?? 'nothing'} for ${name}`, () => {
      expect(nearest(name, names)).to.equal(expected)
    })
  }

  it('prefers the closer of two names', () => {
    expect(nearest('tool', ['pool', 'tools', 'tool'])).to.equal('tool')
  })

  it('matches the copy of the algorithm in the client', () => {
    const name = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'b', 'C', '-', '_', ' '), maxLength: 12 }),
      fc.constantFrom(...names),
    )
    fc.assert(
      fc.property(name, fc.array(name, { maxLength: 6 }), (given, known) => {
        expect(nearestOption(given, known)).to.equal(nearest(given, known))
      }),
    )
  })
})
