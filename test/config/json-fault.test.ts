// Tests that JSON syntax errors are located where JSON.parse fails.
import { expect } from 'chai'
import fc from 'fast-check'
import { findJsonFault } from '../../core/config/json-fault.ts'
import { caseCount } from '../support/thorough.ts'

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('findJsonFault', () => {
  it('finds no error in valid JSON', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2, '\t'), (text, indent) => {
        expect(findJsonFault(JSON.stringify(JSON.parse(text), undefined, indent))).to.equal(undefined)
      }),
    )
  })

  it('finds the error at the position that JSON.parse reports', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"',
      '1',
      '-',
      '.5',
      '01',
      'e3',
      'true',
      'nul',
      ' ',
      '\n',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), words => {
        const text = words.join('')
        expect(findJsonFault(text) === undefined, text).to.equal(parses(text))
      }),
      { numRuns: caseCount(1_000, 200) },
    )
  })

  it('reports the position and the expected token', () => {
    expect(findJsonFault('{"a": 1, b: 2}')).to.deep.equal({ offset: 9, expected: 'a key in double quotes' })
    expect(findJsonFault('[1 2]')).to.deep.equal({ offset: 3, expected: "',' or ']'" })
  })
})
