// Tests the memory limits of used DPoP proofs and the expiry of DPoP nonces, with a fake clock.

import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import {
  createNonces,
  createSharedProofs,
  createUsedProofs,
  type UsedProof,
  type UseOnce,
} from '../../../plugins/families/dpop/replay.ts'
import { createMemoryGrantStore } from '../../../plugins/families/grant-store/index.ts'

/** As if it came with a token of ann's, by a key of its own. */
const proof = (id: string, ttl: number, whose: Partial<UsedProof> = {}): UsedProof => ({
  id,
  ttl,
  thumbprint: `key of ${id}`,
  user: `user of ${id}`,
  ...whose,
})

/** How often proofs were taken until one was refused, at most `most` times, and by which kind of error. */
function takeUntilRefused(useOnce: UseOnce, most: number, make: (index: number) => UsedProof) {
  for (let taken = 0; taken < most; taken++) {
    try {
      useOnce(make(taken))
    } catch (error) {
      return { taken, kind: HostError.is(error) ? error.kind : String(error) }
    }
  }
  return { taken: most, kind: undefined }
}

describe('DPoP: used proofs', () => {
  it('are rejected until they expire, and can then be used again', () => {
    let now = 1_000_000
    const useOnce = createUsedProofs(100, () => now)
    expect(useOnce(proof('a', 1_000))).to.equal(true)
    expect(useOnce(proof('b', 5_000))).to.equal(true)
    now += 999
    expect([useOnce(proof('a', 1_000)), useOnce(proof('b', 1_000))]).to.deep.equal([false, false])
    now += 1
    expect([useOnce(proof('a', 1_000)), useOnce(proof('b', 1_000))]).to.deep.equal([true, false])
    now += 10_000
    expect(useOnce(proof('b', 1_000))).to.equal(true)
  })

  it('are never evicted before expiry: at the limit, new proofs are rejected', () => {
    let now = 1_000_000
    const [most, ttl] = [1_000, 70_000]
    const useOnce = createUsedProofs(most, () => now)
    for (let index = 0; index < most; index++) expect(useOnce(proof(`first ${index}`, ttl))).to.equal(true)
    let [refused, replayed] = [0, 0]
    for (let index = 0; index < 500; index++) {
      const { kind } = takeUntilRefused(useOnce, 1, () => proof(`more ${index}`, ttl))
      if (kind === 'unavailable') refused++
    }
    for (let index = 0; index < most; index++) if (useOnce(proof(`first ${index}`, ttl)) === false) replayed++
    expect([refused, replayed]).to.deep.equal([500, most])
    now += ttl
    expect(useOnce(proof('later', ttl))).to.equal(true)
  })

  it('expire no later than the longest-lived proof, in any order', () => {
    let now = 1_000_000
    const useOnce = createUsedProofs(100, () => now)
    // Of a clock that is ahead: it keeps those that came after it, until it ends itself.
    useOnce(proof('long', 75_000))
    for (let index = 0; index < 99; index++) useOnce(proof(`short ${index}`, 10))
    expect(() => useOnce(proof('full', 10))).to.throw(HostError)
    now += 75_000
    for (let index = 0; index < 100; index++) expect(useOnce(proof(`next ${index}`, 10))).to.equal(true)
  })

  it('are limited per key and per user, so floods do not affect other users', () => {
    const [most, others] = [20_000, 25]
    const useOnce = createUsedProofs(most)
    const ofKey = takeUntilRefused(useOnce, most, index =>
      proof(`eve ${index}`, 70_000, { thumbprint: 'eve', user: 'eve' }),
    )
    const ofUser = takeUntilRefused(useOnce, most, index => proof(`mallory ${index}`, 70_000, { user: 'mallory' }))
    expect([ofKey.kind, ofUser.kind]).to.deep.equal(['tooManyRequests', 'tooManyRequests'])
    const floods = Array.from({ length: 18 }, (_, who) =>
      takeUntilRefused(useOnce, most, index => proof(`${who} of many ${index}`, 70_000, { user: `user ${who}` })),
    )
    expect(floods.every(({ kind }) => kind === 'tooManyRequests')).to.equal(true)
    const ann = takeUntilRefused(useOnce, others, index =>
      proof(`ann ${index}`, 70_000, { thumbprint: 'ann', user: 'ann' }),
    )
    expect(ann).to.deep.equal({ taken: others, kind: undefined })
    expect(useOnce(proof('eve 5', 70_000, { thumbprint: 'eve', user: 'eve' }))).to.equal(false)
    const all = floods.reduce((sum, { taken }) => sum + taken, ofKey.taken + ofUser.taken)
    expect(all).to.be.at.most(most - ann.taken)
  })

  it('are limited to 44,445 per key by default', () => {
    const whose = { thumbprint: 'eve', user: 'eve' }
    const flood = takeUntilRefused(createUsedProofs(), 60_000, index => proof(`eve ${index}`, 70_000, whose))
    expect(flood).to.deep.equal({ taken: 44_445, kind: 'tooManyRequests' })
  })

  it('free capacity of their key and user at expiry', () => {
    let now = 1_000_000
    const useOnce = createUsedProofs(1_000, () => now)
    const flood = (name: string) =>
      takeUntilRefused(useOnce, 1_000, index => proof(`${name} ${index}`, 10, { user: 'eve' })).taken
    expect([flood('first'), flood('more')]).to.deep.equal([200, 0])
    now += 10
    expect(flood('later')).to.equal(200)
  })

  it('have their own keys in a shared store, and limits at each node', async () => {
    const store = createMemoryGrantStore()
    const useOnce = createSharedProofs(store, createUsedProofs(100))
    const other = createSharedProofs(store, createUsedProofs(100))
    const answers = await Promise.all([useOnce, other, useOnce].map(at => at(proof('id', 1_000))))
    expect(answers.filter(Boolean)).to.have.length(1)
    expect(await store.get('granted:dpop:id')).to.equal('1')
    const written: number[] = []
    for (let index = 0; index < 100; index++) {
      const one = proof(`eve ${index}`, 1_000, { thumbprint: 'eve', user: 'eve' })
      const isTaken = await Promise.resolve(useOnce(one)).catch(() => false)
      if (isTaken || (await store.get(`granted:dpop:eve ${index}`)) !== undefined) written.push(index)
    }
    expect(written).to.have.length(11)
    expect(await useOnce(proof('ann', 1_000))).to.equal(true)
  })
})

describe('DPoP: nonces', () => {
  const [first, second, foreign] = ['a', 'b', 'c'].map(letter => Buffer.alloc(32, letter)) as [Buffer, Buffer, Buffer]

  it('change every minute, and stay valid for two to three more', () => {
    let now = 60_000_000
    const nonces = createNonces([first], () => now)
    const given = nonces.current()
    const verdicts: string[] = []
    for (let minute = 0; minute < 5; minute++) {
      verdicts.push(nonces.checkNonce(given))
      now += 60_000
    }
    expect(verdicts).to.deep.equal(['current', 'known', 'known', 'unknown', 'unknown'])
    expect(nonces.current()).to.not.equal(given)
  })

  it('are accepted from a node one minute ahead, and rejected from further ahead', () => {
    const at = (now: number, keys = [first]) => createNonces(keys, () => now)
    const ahead = at(60_060_000).current()
    expect(at(60_000_000).checkNonce(ahead)).to.equal('known')
    expect(at(59_940_000).checkNonce(ahead)).to.equal('unknown')
  })

  it('are signed by the first secret, and accepted for all configured secrets only', () => {
    const now = () => 60_000_000
    const old = createNonces([first], now).current()
    const both = createNonces([second, first], now)
    expect(both.checkNonce(old)).to.equal('known')
    expect(both.checkNonce(both.current())).to.equal('current')
    expect(createNonces([foreign], now).checkNonce(old)).to.equal('unknown')
  })

  it('are rejected after any one-character change', () => {
    const nonces = createNonces([first], () => 60_000_000)
    const good = nonces.current()
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (let place = 0; place < good.length; place++) {
      for (const letter of letters) {
        if (letter === good[place]) continue
        const changed = good.slice(0, place) + letter + good.slice(place + 1)
        expect(nonces.checkNonce(changed), changed).to.equal('unknown')
      }
    }
  })
})
