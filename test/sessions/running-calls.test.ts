// Tests the limit of concurrent requests per owner.
import { expect } from 'chai'
import { createRunningCalls } from '../../core/sessions/running-calls.ts'

const BOUNDS = {
  idleTimeout: 60_000,
  maxIdle: 100,
  maxPerOwner: undefined,
  maxCallsPerSession: 10,
  maxCallsPerOwner: 2,
}
const session = (holder: string) => ({ holder, calls: 0, disposed: false })

describe('Running calls per owner', () => {
  it('are counted correctly with many other callers, and decrease when calls end', () => {
    const running = createRunningCalls(BOUNDS)
    const busy = session('busy')
    running.enter(busy, 2)
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 2_500; index++) {
        const other = session(`other ${index}`)
        running.enter(other, 1)
        running.leave(other, 1)
      }
    }
    expect(() => running.enter(session('busy'), 1)).to.throw('at most 2 concurrent requests per user')
    running.leave(busy, 1)
    running.enter(busy, 1)
    expect(() => running.enter(busy, 1)).to.throw('at most 2 concurrent requests per user')
    running.leave(busy, 2)
    running.enter(busy, 2)
    expect(busy.calls).to.equal(2)
  })

  it('restart at zero after an idle period', () => {
    const running = createRunningCalls(BOUNDS)
    for (let index = 0; index < 1_200; index++) {
      const one = session(`owner ${index % 600}`)
      running.enter(one, 2)
      expect(() => running.enter(one, 1)).to.throw('at most 2 concurrent requests per user')
      running.leave(one, 2)
    }
  })
})
