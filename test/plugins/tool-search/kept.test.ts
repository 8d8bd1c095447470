// The search index cache: limits by bytes and number, with LRU eviction.
import { expect } from 'chai'
import { Kept } from '../../../plugins/tool-search/kept.ts'

const keysOf = (kept: Kept<number, string>) => [...kept.entries()].map(([key]) => key)

describe('Search index cache', () => {
  it('evicts the least recently used indexes beyond its byte limit', () => {
    const kept = new Kept<number, string>(100)
    for (let key = 0; key < 50; key += 1) kept.set(key, `${key}`, 2)
    expect(keysOf(kept)).to.have.lengthOf(50)
    expect(kept.get(0)).to.equal('0')
    kept.set(50, '50', 2)
    expect([kept.has(0), kept.has(1), kept.has(50)]).to.deep.equal([true, false, true])
    // It was taken for less than it is.
    kept.set(50, '50', 60)
    expect(keysOf(kept)).to.have.lengthOf(21)
    kept.set(51, 'large', 1_000)
    expect(keysOf(kept), 'one too large for the room stays until the next').to.deep.equal([51])
    kept.set(52, 'small', 1)
    expect(keysOf(kept)).to.deep.equal([52])
  })

  it('keeps at most a thousand indexes', () => {
    const kept = new Kept<number, string>(1_000_000)
    for (let key = 0; key < 1_200; key += 1) kept.set(key, `${key}`, 1)
    expect(keysOf(kept)).to.have.lengthOf(1_000)
    expect(kept.has(199)).to.equal(false)
  })
})
