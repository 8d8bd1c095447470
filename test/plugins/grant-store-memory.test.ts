// The in-memory grant store beyond its contract: eviction, size limits and expiry, with a fake clock.
import { expect } from 'chai'
import type { GrantStore } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { createMemoryGrantStore } from '../../plugins/families/grants/index.ts'
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
    const granted = names('granted', 500)
    for (const key of granted) await store.set(key, 'x'.repeat(500), MINUTE)
    const pending = names('pending', 20_000)
    for (const key of pending) await store.set(key, 'y'.repeat(500), MINUTE)
    const kept = await present(store, pending)
    for (const key of names('pending', 5_000)) await store.join(key, 'member'.repeat(50), MINUTE, 10)
    expect(await present(store, granted)).to.equal(500)
    expect(kept).to.be.within(100, 135)
    expect(await present(store, pending)).to.equal(0)
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
    for (let round = 0; round < 200; round++) {
      for (let index = 0; index < 100; index++) await store.set(`granted:${round}-${index}`, 'y'.repeat(500), 1_000)
      clock.now += 2_000
    }
    expect(await present(store, lasting)).to.equal(100)
  })
})

describe('Grant store in memory: oversized entry', () => {
  it('is refused, and the existing entry stays', async () => {
    const { store } = open({ pending: 10_000, granted: 20_000 })
    for (const key of ['pending:one', 'granted:one']) {
      await store.set(key, 'small', MINUTE)
      await store.join(key, 'small', MINUTE, 10)
      const large = 'x'.repeat(30_000)
      for (const act of [
        () => store.set(key, large, MINUTE),
        () => store.add(`${key}-new`, large, MINUTE),
        () => store.replace(key, 'small', large, MINUTE),
        () => store.join(key, large, MINUTE, 10),
      ]) {
        const error = await rejectionOf(act())
        expect(HostError.is(error) && error.kind, String(error)).to.equal('unavailable')
      }
      expect(await store.get(key)).to.equal('small')
      expect(await store.get(`${key}-new`)).to.equal(undefined)
      expect(await store.members(key)).to.deep.equal(['small'])
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
    for (const [member, ttl] of [
      ['a', 100],
      ['b', 300],
      ['c', 200],
    ] as const)
      await store.join('granted:set', member, ttl, 10)
    const seen: string[] = []
    for (const now of [99, 100, 200, 300]) {
      clock.now = now
      seen.push((await store.members('granted:set')).join(''))
    }
    expect(seen).to.deep.equal(['abc', 'bc', 'b', ''])
  })
})
