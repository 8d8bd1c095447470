// Tests readiness of a host with a blocked event loop, with a simulated clock.
import { expect } from 'chai'
import fc from 'fast-check'
import { HeldWindow, WINDOW } from '../../core/mcp/held-window.ts'
import { amongProcesses, createStallReadiness, LEAST_STALLS, LONGEST } from '../../core/mcp/stall-readiness.ts'

const LIMIT = 5_000

/** A host that is held by turns, and asked each second; the answers of so many seconds. */
function answersOf(seconds: number, held: (second: number) => readonly number[], limit = LIMIT) {
  const window = new HeldWindow()
  const isReady = createStallReadiness(limit)
  return Array.from({ length: seconds }, (_, second) => {
    const now = second * 1_000 + 999
    for (const ms of held(second)) window.note(now, ms, ['tool heavy'])
    return isReady(window.held(now), now)
  })
}
const changesIn = (answers: ReadonlyArray<true | string>) =>
  answers.filter((answer, index) => index > 0 && (answer === true) !== (answers[index - 1] === true)).length

describe('Window of event loop stalls', () => {
  it('sums stalls of the last seconds and drops older ones', () => {
    const window = new HeldWindow()
    expect(window.held(0)).to.deep.equal({ ms: 0, stalls: 0, whose: [] })
    window.note(100, 300, ['tool a'])
    window.note(900, 200, ['tool a', 'tool b'])
    expect(window.held(1_000)).to.deep.equal({ ms: 500, stalls: 2, whose: ['tool a'] })
    window.note(5_000, 250, ['tool b'])
    expect(window.held((WINDOW - 1) * 1_000 + 999)).to.deep.equal({ ms: 750, stalls: 3, whose: ['tool a'] })
    expect(window.held(WINDOW * 1_000)).to.deep.equal({ ms: 250, stalls: 1, whose: ['tool b'] })
    expect(window.held((5 + WINDOW) * 1_000)).to.deep.equal({ ms: 0, stalls: 0, whose: [] })
  })

  it('names the handlers present in every stall, or several if ambiguous', () => {
    let named = 0
    const innocents = fc.array(fc.constantFrom('tool b', 'tool c', 'tool d'), { maxLength: 3 })
    const property = fc.property(fc.array(innocents, { minLength: 2, maxLength: 20 }), stalls => {
      const window = new HeldWindow()
      for (const others of stalls) window.note(500, 100, [...new Set([...others, 'tool a'])])
      const { whose } = window.held(600)
      expect(whose).to.include('tool a')
      for (const other of whose) expect(stalls.every(others => other === 'tool a' || others.includes(other as never)))
      if (whose.length === 1) named++
    })
    fc.assert(property, { numRuns: 300 })
    expect(named).to.be.above(100)
  })

  it('limits its memory under any load', () => {
    const window = new HeldWindow()
    for (let stall = 0; stall < 100_000; stall++) window.note(stall, 50, [`tool ${stall % 1_000}`])
    const { ms, stalls } = window.held(99_999)
    expect([ms, stalls]).to.deep.equal([WINDOW * 1_000, WINDOW * 1_000])
  })
})

describe('Readiness with a blocked event loop', () => {
  it('survives one long stall, few stalls and many short stalls', () => {
    const never: ReadonlyArray<(second: number) => readonly number[]> = [
      second => (second === 5 ? [9_000] : []),
      second => (second === 5 ? [4_000, 4_000] : []),
      second => (second % 20 === 0 ? [2_000, 2_000] : []),
      () => [250],
      () => [],
    ]
    for (const held of never) expect(changesIn(answersOf(200, held))).to.equal(0)
    expect(LEAST_STALLS).to.equal(3)
  })

  it('is lost under repeated stalls with the tool name, and recovers later', () => {
    const answers = answersOf(60, second => (second >= 10 && second < 20 ? [400, 400] : []))
    const from = answers.findIndex(answer => answer !== true)
    const until = answers.findIndex((answer, index) => index > from && answer === true)
    expect(answers[from]).to.match(/heavy: 5\.6.*10 s$/)
    // 0.8 s of each second: 5 s of ten are held with the seventh; less than 2 s are once two of them are left.
    expect([from, until, changesIn(answers)]).to.deep.equal([16, 27, 2])
  })

  it('does not flap around the limit', () => {
    const around = answersOf(300, second => [second % 2 === 0 ? 300 : 200, 260])
    const swings = changesIn(around)
    // A cap of thirty seconds at a time, and as many to rest: what it may at most.
    expect(swings).to.be.at.most(2 * Math.ceil(300 / ((2 * LONGEST) / 1_000)))
  })

  it('returns regularly, so that each blocked node serves half of the time', () => {
    const answers = answersOf(1_200, () => [990])
    const away = answers.filter(answer => answer !== true).length
    let longest = 0
    for (let run = 0, at = 0; at < answers.length; at++) {
      run = answers[at] === true ? 0 : run + 1
      longest = Math.max(longest, run)
    }
    expect(longest).to.be.at.most(LONGEST / 1_000)
    expect(away).to.be.within(1, answers.length / 2)
  })

  it('of a multi-process host is kept while half of the processes are free', async () => {
    const asked: string[] = []
    const answer = (own: true | string, ...others: Array<true | string>) =>
      amongProcesses(own, async () => {
        asked.push(String(own))
        return [own, ...others]
      })
    expect(await answer('held')).to.equal('held')
    expect(await answer('held', true)).to.equal(true)
    expect(await answer('held', 'held', true)).to.equal('held')
    expect(await answer('held', 'held', true, true)).to.equal(true)
    // Who is free need not ask, and does not wait for one that is held.
    expect(await answer(true, 'held', 'held')).to.equal(true)
    expect(asked).to.deep.equal(Array(4).fill('held'))
    // Another is held at this moment, and says nothing.
    expect(await amongProcesses('held', () => new Promise(() => undefined))).to.equal('held')
  })

  it('lists several handlers if the cause is ambiguous', () => {
    const window = new HeldWindow()
    for (let stall = 0; stall < 3; stall++) window.note(1_000, 2_000, ['tool a', 'resource notes://b'])
    expect(createStallReadiness(LIMIT)(window.held(1_000), 1_000)).to.match(/a.*notes:\/\/b: 6\.0.*10 s$/)
  })
})
