// "Did you mean": close names are found, far ones are not forced.
import { expect } from 'chai'
import { nearest } from '../../../core/config/nearest.ts'

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
})
