// What checking proofs (DPoP) keeps, and for how long: proofs that were used, bounded, and nonces, of which nothing is kept. By a
// clock of the test's own.
import { expect } from 'chai'
import { createNonces } from '../../../core/access/dpop/nonces.ts'
import { createUsedProofs, usedIn } from '../../../core/access/dpop/used-proofs.ts'
import { createMemoryGrantStore } from '../../../core/access/memory-grant-store.ts'
import { HostError } from '../../../core/index.ts'

describe('used proofs (DPoP)', () => {
  it('count once until their time is over, and then may come again', () => {
    let now = 1_000_000
    const useOnce = createUsedProofs(100, () => now)
    expect(useOnce('a', 1_000)).to.equal(true)
    expect(useOnce('b', 5_000)).to.equal(true)
    now += 999
    expect([useOnce('a', 1_000), useOnce('b', 1_000)]).to.deep.equal([false, false])
    now += 1
    expect([useOnce('a', 1_000), useOnce('b', 1_000)]).to.deep.equal([true, false])
    now += 10_000
    expect(useOnce('b', 1_000)).to.equal(true)
  })

  it('are never forgotten for others while they count: where all are recent, no more are taken', () => {
    let now = 1_000_000
    const [most, ttl] = [1_000, 70_000]
    const useOnce = createUsedProofs(most, () => now)
    for (let index = 0; index < most; index++) expect(useOnce(`first ${index}`, ttl)).to.equal(true)
    let [refused, replayed] = [0, 0]
    for (let index = 0; index < 500; index++) {
      try {
        useOnce(`more ${index}`, ttl)
      } catch (error) {
        if (HostError.is(error) && error.kind === 'unavailable') refused++
      }
    }
    for (let index = 0; index < most; index++) if (useOnce(`first ${index}`, ttl) === false) replayed++
    console.log(`      ${most} kept: 500 more refused: ${refused}, ${replayed} tried again and known`)
    expect([refused, replayed]).to.deep.equal([500, most])
    now += ttl
    expect(useOnce('later', ttl)).to.equal(true)
  })

  it('stay for no longer than the longest of them, whatever order their times end in', () => {
    let now = 1_000_000
    const useOnce = createUsedProofs(100, () => now)
    // Of a clock that is ahead: it keeps those that came after it, until it ends itself.
    useOnce('long', 130_000)
    for (let index = 0; index < 99; index++) useOnce(`short ${index}`, 10)
    expect(() => useOnce('full', 10)).to.throw(HostError)
    now += 130_000
    for (let index = 0; index < 100; index++) expect(useOnce(`next ${index}`, 10)).to.equal(true)
  })

  it('have keys of their own in a store that nodes share', async () => {
    const store = createMemoryGrantStore()
    const useOnce = usedIn(store)
    const answers = await Promise.all([1, 2, 3].map(() => useOnce('id', 1_000)))
    expect(answers.filter(Boolean)).to.have.length(1)
    expect(await store.get('granted:dpop:id')).to.equal('1')
  })
})

describe('nonces (DPoP)', () => {
  const [first, second, foreign] = ['a', 'b', 'c'].map(letter => Buffer.alloc(32, letter)) as [Buffer, Buffer, Buffer]

  it('change each minute, and are good for two to three more', () => {
    let now = 60_000_000
    const nonces = createNonces([first], () => now)
    const given = nonces.current()
    const verdicts: string[] = []
    for (let minute = 0; minute < 5; minute++) {
      verdicts.push(nonces.judge(given))
      now += 60_000
    }
    expect(verdicts).to.deep.equal(['current', 'known', 'known', 'unknown', 'unknown'])
    expect(nonces.current()).to.not.equal(given)
  })

  it('are known to a node whose clock is a minute behind, and none from further ahead', () => {
    const at = (now: number, keys = [first]) => createNonces(keys, () => now)
    const ahead = at(60_060_000).current()
    expect(at(60_000_000).judge(ahead)).to.equal('known')
    expect(at(59_940_000).judge(ahead)).to.equal('unknown')
  })

  it('are of the first key, known by all of them, and by no other', () => {
    const now = () => 60_000_000
    const old = createNonces([first], now).current()
    const both = createNonces([second, first], now)
    expect(both.judge(old)).to.equal('known')
    expect(both.judge(both.current())).to.equal('current')
    expect(createNonces([foreign], now).judge(old)).to.equal('unknown')
  })

  it('are none with any letter changed', () => {
    const nonces = createNonces([first], () => 60_000_000)
    const good = nonces.current()
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    let tried = 0
    for (let place = 0; place < good.length; place++) {
      for (const letter of letters) {
        if (letter === good[place]) continue
        tried++
        const changed = good.slice(0, place) + letter + good.slice(place + 1)
        expect(nonces.judge(changed), changed).to.equal('unknown')
      }
    }
    console.log(`      ${tried} nonces with one letter changed: none is known`)
  })
})
