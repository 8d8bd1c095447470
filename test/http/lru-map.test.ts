// The table of bounded size: who goes, and when.
import { expect } from 'chai'
import { LruMap } from '../../core/http/lru-map.ts'

const keysOf = <Value>(map: LruMap<string, Value>) => [...map.entries()].map(([key]) => key)

describe('a table of bounded size', () => {
  it('never has more than its bound, and lets go what was not used for the longest', () => {
    const map = new LruMap<string, number>(3)
    for (const [index, key] of ['a', 'b', 'c'].entries()) map.set(key, index)
    expect(map.get('a')).to.equal(0)
    map.set('b', 7)
    map.set('d', 3)
    expect(keysOf(map)).to.deep.equal(['a', 'b', 'd'])
    expect([map.get('b'), map.get('c')]).to.deep.equal([7, undefined])
    for (let index = 0; index < 1_000; index++) map.set(`key ${index}`, index)
    expect(keysOf(map)).to.deep.equal(['key 997', 'key 998', 'key 999'])
  })

  it('forgets what its time is over for, where it is asked and where all are listed', () => {
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
