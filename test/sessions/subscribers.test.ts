// Tests the set of subscribers per resource.
import { expect } from 'chai'
import type { Subscriber } from '../../core/sessions/change-feed.ts'
import { Watchers } from '../../core/sessions/change-feed.ts'

const subscriber = (): Subscriber => ({ lists: new Set(), covers: () => true, deliver: () => undefined })

describe('Resource subscribers', () => {
  it('are added and removed once each, in any order', () => {
    const watchers = new Watchers()
    const all = Array.from({ length: 4 }, subscriber)
    const expected = new Set<Subscriber>()
    let most = 0
    // Every set of them follows every other.
    for (let from = 0; from < 16; from += 1) {
      for (let to = 0; to < 16; to += 1) {
        for (const wanted of [from, to]) {
          all.forEach((each, index) => {
            if (wanted & (1 << index)) {
              expected.add(each)
              watchers.add('note://a', each)
            } else {
              expected.delete(each)
              watchers.delete('note://a', each)
            }
          })
          most = Math.max(most, expected.size)
          expect(new Set(watchers.of('note://a'))).to.deep.equal(expected)
          expect(watchers.of('note://a')).to.have.length(expected.size)
          expect(all.map(each => watchers.has('note://a', each))).to.deep.equal(all.map(each => expected.has(each)))
          expect(watchers.of('note://b')).to.deep.equal([])
        }
      }
    }
    expect(most).to.equal(4)
  })
})
