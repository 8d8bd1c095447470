// Tests the bounded LRU map: eviction and expiry.
import { expect } from 'chai'
import { LruMap } from '../../core/http/lru-map.ts'

const keysOf = <Value>(map: LruMap<string, Value>) => [...map.entries()].map(([key]) => key)

describe('LRU map', () => {
  it('evicts the least recently used entry above its size limit', () => {
    const map = new LruMap<string, number>(4)
    for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) map.set(key, index)
    expect(keysOf(map)).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(map.get('a')).to.equal(0)
    map.set('e', 4)
    expect(keysOf(map)).to.deep.equal(['c', 'd', 'a', 'e'])
    map.set('a', 7)
    expect([map.get('a'), map.get('b')]).to.deep.equal([7, undefined])
  })

  it('keeps the most recently used half under any access order', () => {
    const map = new LruMap<string, number>(100)
    const order: string[] = []
    let most = 0
    for (let index = 0; index < 5_000; index++) {
      const key = `key ${(index * index * 7) % 311}`
      if (map.get(key) === undefined) map.set(key, index)
      if (order.includes(key)) order.splice(order.indexOf(key), 1)
      order.unshift(key)
      order.length = Math.min(order.length, 50)
      const kept = keysOf(map)
      expect(kept).to.include.members(order)
      most = Math.max(most, kept.length)
    }
    expect(most).to.be.within(51, 100)
  })

  it('removes expired entries on access and on listing', () => {
    const map = new LruMap<string, string>(10)
    map.set('over', 'x', 0)
    map.set('long', 'y', 60_000)
    map.set('always', 'z')
    expect([...map.entries()].map(([key, value, until]) => [key, value, typeof until])).to.deep.equal([
      ['long', 'y', 'number'],
      ['always', 'z', 'undefined'],
    ])
    expect([map.get('over'), map.get('long'), map.get('always')]).to.deep.equal([undefined, 'y', 'z'])
    map.delete('long')
    expect(map.get('long')).to.equal(undefined)
    map.clear()
    expect(keysOf(map)).to.deep.equal([])
  })
})
