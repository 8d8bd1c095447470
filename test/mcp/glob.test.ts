// Tests glob patterns for names: matching and overlap.
import { expect } from 'chai'
import fc from 'fast-check'
import { globsOverlap, matchesGlob } from '../../core/mcp/glob.ts'

const glob = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 })
const asRegExp = (pattern: string) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`)

describe('Glob patterns', () => {
  it('match any characters including slashes for `*`, and literals otherwise', () => {
    for (const [pattern, text, matches] of [
      ['purge', 'purge', true],
      ['purge', 'purge-all', false],
      ['purge*', 'purge', true],
      ['purge*', 'a-purge', false],
      ['*', '', true],
      ['notes://*', 'notes://a/b.c', true],
      ['a*b*c', 'a-b-b-c', true],
      ['ab*ba', 'aba', false],
      ['a.c', 'abc', false],
      ['[ab]{1}?', '[ab]{1}?', true],
    ] as const) {
      expect(matchesGlob(pattern, text), `${pattern} ${text}`).to.equal(matches)
    }
  })

  it('match the same texts as the equivalent regular expression', () => {
    fc.assert(fc.property(glob, text, (pattern, text) => matchesGlob(pattern, text) === asRegExp(pattern).test(text)))
  })

  it('overlap symmetrically if one text matches both', () => {
    fc.assert(
      fc.property(glob, glob, text, (one, other, text) => {
        const overlap = globsOverlap(one, other)
        expect(globsOverlap(other, one)).to.equal(overlap)
        if (matchesGlob(one, text) && matchesGlob(other, text)) expect(overlap).to.equal(true)
      }),
    )
  })

  it('do not overlap if no text matches both', () => {
    for (const [one, other, overlap] of [
      ['notes://a/*', 'notes://b/*', false],
      ['notes://a/*', 'notes://*', true],
      ['*a', '*b', false],
      ['a*', '*b', true],
      ['ab', 'a*c', false],
      ['', '*', true],
    ] as const) {
      expect(globsOverlap(one, other), `${one} ${other}`).to.equal(overlap)
    }
  })
})
