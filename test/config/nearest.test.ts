// "Did you mean": close names are found, far ones are not forced.
import { expect } from 'chai'
import fc from 'fast-check'
import { nearest as nearestOption } from '../../client/nearest.ts'
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
    it(`finds ${expected ?? 'nothing'} for ${name}`, () => {
      expect(nearest(name, names)).to.equal(expected)
    })
  }

  it('prefers the closer of two', () => {
    expect(nearest('tool', ['pool', 'tools', 'tool'])).to.equal('tool')
  })

  it('is one rule: the client, which stands alone, finds the same', () => {
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
