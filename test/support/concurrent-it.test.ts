// Tests `concurrentIt`: tests run concurrently, fail independently and restart on a retry.
import { expect } from 'chai'
import { concurrentIt } from './concurrent-it.ts'
import { eventually } from './eventually.ts'
import { createGate } from './gate.ts'

describe('concurrentIt', () => {
  const [one, other] = [createGate(), createGate()]
  const together = concurrentIt()

  together('first test continues while the second runs', async () => {
    one.open()
    await other.opened
  })
  together('second test starts while the first runs', async () => {
    other.open()
    await one.opened
  })

  it('fails tests independently and restarts a test on retry', async () => {
    const registered = new Map<string, () => Promise<unknown>>()
    const test = concurrentIt({ register: (name, run) => registered.set(name, run) })
    let [good, bad] = [0, 0]
    test('good', async () => void good++)
    test('bad', async () => {
      if (++bad === 1) throw new Error('the first try')
    })
    await registered.get('good')?.()
    expect([good, bad]).to.deep.equal([1, 1])
    const failed = await registered.get('bad')?.().then(String, String)
    expect(failed).to.equal('Error: the first try')
    await registered.get('bad')?.()
    expect([good, bad]).to.deep.equal([1, 2])
  })

  it('runs a limited number of tests concurrently, in order', async () => {
    const registered: Array<() => Promise<unknown>> = []
    const test = concurrentIt({ atOnce: 2, register: (_, run) => registered.push(run) })
    const gates = Array.from({ length: 4 }, () => createGate())
    const began: number[] = []
    for (const [index, gate] of gates.entries())
      test(String(index), async () => {
        began.push(index)
        await gate.opened
      })
    const results = registered.map(run => run())
    await eventually('two have begun', () => began.length === 2)
    gates[1]?.open()
    await results[1]
    await eventually('the third has begun', () => began.length === 3)
    expect(began).to.deep.equal([0, 1, 2])
    for (const gate of gates) gate.open()
    await Promise.all(results)
    expect(began).to.deep.equal([0, 1, 2, 3])
  })
})
