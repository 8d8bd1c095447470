// The in-memory grant store beyond its contract: eviction, size limits and expiry, with a fake clock.

import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import type { GrantStore } from '../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../plugins/families/grant-store/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'

const MIB = 1_048_576
const MINUTE = 60_000

/** A store whose clock only the test moves. */
function open(most: { pending?: number; granted?: number } = {}) {
  const clock = { now: 0 }
  const store = createMemoryGrantStore({ pending: MIB, granted: MIB, ...most }, () => clock.now)
  return { store, clock }
}

const present = async (store: GrantStore, keys: readonly string[]) =>
  (await Promise.all(keys.map(key => store.get(key)))).filter(text => text !== undefined).length

const names = (kind: string, count: number) => Array.from({ length: count }, (_, index) => `${kind}:${index}`)

describe('Grant store in memory: eviction', () => {
  it('of pending grants does not evict granted entries', async () => {
    const { store } = open({ pending: 100_000 })
    const granted = names('granted', 100)
    for (const key of granted) await store.set(key, 'x'.repeat(500), MINUTE)
    const pending = names('pending', 500)
    for (const key of pending) await store.set(key, 'y'.repeat(500), MINUTE)
    expect(await present(store, granted)).to.equal(100)
    expect(await present(store, pending)).to.be.within(90, 97)
  })

  it('of pending entries begins with the oldest write, and counts large entries by their size', async () => {
    const { store, clock } = open({ pending: 20_000 })
    const write = (key: string, size: number) => {
      clock.now++
      return store.set(key, 'x'.repeat(size), MINUTE)
    }
    for (const key of ['pending:a', 'pending:b', 'pending:c']) await write(key, 100)
    await write('pending:a', 200)
    await write('pending:large', 15_000)
    for (const key of ['pending:d', 'pending:e']) await write(key, 100)
    expect(await present(store, ['pending:b', 'pending:c'])).to.equal(0)
    expect(await present(store, ['pending:a', 'pending:large', 'pending:d', 'pending:e'])).to.equal(4)
    await store.take('pending:a')
    await write('pending:f', 100)
    expect(await present(store, ['pending:large', 'pending:d', 'pending:e', 'pending:f'])).to.equal(4)
  })

  it('removes the least recently used entry first, including sets', async () => {
    const { store } = open({ granted: 100_000 })
    await store.set('granted:used', 'x', MINUTE)
    await store.set('granted:old', 'x', MINUTE)
    await store.join('granted:set', 'member', MINUTE, 10)
    for (const key of names('granted', 1_000)) {
      await store.set(key, 'y'.repeat(500), MINUTE)
      await store.get('granted:used')
    }
    expect(await store.get('granted:used')).to.equal('x')
    expect(await store.get('granted:old')).to.equal(undefined)
    expect(await store.members('granted:set')).to.deep.equal([])
    expect(await store.get('granted:999')).to.equal('y'.repeat(500))
  })

  it('removes expired entries before live ones', async () => {
    const { store, clock } = open({ granted: 400_000 })
    const lasting = names('granted:lasting', 100)
    for (const key of lasting) await store.set(key, 'x'.repeat(500), 1_000 * MINUTE)
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 100; index++) await store.set(`granted:${round}-${index}`, 'y'.repeat(500), 1_000)
      clock.now += 2_000
    }
    expect(await present(store, lasting)).to.equal(100)
  })
})

describe('Grant store in memory: set', () => {
  it('is refused for a pending key', async () => {
    const { store } = open()
    for (const act of [
      () => store.join('pending:set', 'member', MINUTE, 10),
      () => store.leave('pending:set', 'member'),
      () => store.members('pending:set'),
    ])
      expect(await rejectionOf(act())).to.be.instanceOf(RangeError)
  })
})

describe('Grant store in memory: oversized entry', () => {
  it('is refused, and the existing entry stays', async () => {
    const { store } = open()
    for (const key of ['pending:one', 'granted:one']) {
      await store.set(key, 'small', MINUTE)
      await store.join('granted:set', 'small', MINUTE, 10)
      const large = 'x'.repeat(MIB + 1)
      for (const act of [
        () => store.set(key, large, MINUTE),
        () => store.add(`${key}-new`, large, MINUTE),
        () => store.replace(key, 'small', large, MINUTE),
        () => store.join('granted:set', large, MINUTE, 10),
      ]) {
        const error = await rejectionOf(act())
        expect(HostError.is(error) && error.kind, String(error)).to.equal('unavailable')
      }
      expect(await store.get(key)).to.equal('small')
      expect(await store.get(`${key}-new`)).to.equal(undefined)
      expect(await store.members('granted:set')).to.deep.equal(['small'])
    }
  })
})

describe('Grant store in memory: expiry', () => {
  for (const ttl of [1, 1_000, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 90 * 86_400_000]) {
    it(`occurs exactly after a ttl of ${ttl} ms, independent of reads`, async () => {
      const { store, clock } = open()
      await store.set('granted:text', 'x', ttl)
      await store.join('granted:set', 'member', ttl, 10)
      clock.now = ttl - 1
      expect(await store.get('granted:text')).to.equal('x')
      expect(await store.members('granted:set')).to.deep.equal(['member'])
      clock.now = ttl
      expect(await store.get('granted:text')).to.equal(undefined)
      expect(await store.members('granted:set')).to.deep.equal([])
    })
  }

  it('applies to each set member separately', async () => {
    const { store, clock } = open()
    for (const member of ['a', 'b', 'c']) {
      await store.join('granted:set', member, 100, 10)
      clock.now += 30
    }
    const seen: string[] = []
    for (const now of [99, 100, 130, 160]) {
      clock.now = now
      seen.push((await store.members('granted:set')).join(''))
    }
    expect(seen).to.deep.equal(['abc', 'bc', 'c', ''])
  })
})
