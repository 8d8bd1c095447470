// Rate limit counts in memory: windows and limited memory.
import { expect } from 'chai'
import { createMemoryCounter } from '../../../plugins/rate-limit/memory-counter.ts'

describe('rate-limit: counts in memory', () => {
  it('reset after their window, each separately', () => {
    let at = 0
    const { count, size } = createMemoryCounter({ window: 1_000, now: () => at })
    expect(count('a').used).to.equal(1)
    at = 600
    expect([count('a').used, count('b').until]).to.deep.equal([2, 1_600])
    at = 1_000
    expect([count('a').used, count('b').used]).to.deep.equal([1, 2])
    at = 1_600
    expect([count('a').used, count('b').used, count('c').used]).to.deep.equal([2, 1, 1])
    at = 10_000
    count('d')
    expect(size()).to.equal(1)
  })

  it('stay within the memory limit for 200,000 callers without losing counts', () => {
    let at = 0
    let told = 0
    const { count, size } = createMemoryCounter({ window: 60_000, now: () => at, onFull: () => told++ })
    for (let known = 0; known < 5; known++) count('the attacker')
    for (let index = 0; index < 200_000; index++) count(`203.0.${index}`)
    expect(size()).to.equal(100_000)
    expect(told).to.equal(1)
    expect(count('the attacker').used).to.equal(6)
    // A newcomer is never let through more often than the limit: what it shares only counts more.
    const newcomer = [count('late').used, count('late').used]
    expect(newcomer[1]).to.equal((newcomer[0] ?? 0) + 1)
    at = 61_000
    expect(count('late').used).to.equal(1)
    expect(size()).to.equal(1)
  })
})
