// Tests the timer queue for entries with an equal timeout.
import { expect } from 'chai'
import { EqualWait, type Waiting } from '../../core/http/equal-wait.ts'
import { eventually } from '../support/eventually.ts'

const MILLISECONDS = 20

/** Entries that say their name when they are overdue. */
function createEntries(names: readonly string[]) {
  const told: string[] = []
  const entries = names.map((name): Waiting => ({ overdue: () => void told.push(name) }))
  return { told, entries }
}

describe('EqualWait timer queue', () => {
  it('expires entries once, in insertion order', async () => {
    const wait = new EqualWait(MILLISECONDS)
    const { told, entries } = createEntries(['a', 'b', 'c'])
    for (const entry of entries) wait.add(entry)
    await eventually('all are told', () => told.length >= 3)
    await new Promise<void>(resolve => wait.add({ overdue: resolve }))
    expect(told).to.deep.equal(['a', 'b', 'c'])
  })

  it('skips a deleted entry and gives later entries their full timeout', async () => {
    const wait = new EqualWait(MILLISECONDS)
    const { told, entries } = createEntries(['a', 'b'])
    const [a, b] = entries as [Waiting, Waiting]
    wait.add(a)
    wait.add(b)
    const due = b.due ?? 0
    wait.delete(a)
    await eventually('one is told', () => told.length > 0)
    expect(told).to.deep.equal(['b'])
    expect(performance.now()).to.be.at.least(due)
  })

  it('restarts after all entries expired', async () => {
    const wait = new EqualWait(MILLISECONDS)
    const { told, entries } = createEntries(['a', 'b'])
    for (const entry of entries) {
      const before = told.length
      wait.add(entry)
      await eventually(`${before + 1} are told`, () => told.length > before)
    }
    expect(told).to.deep.equal(['a', 'b'])
  })

  it('allows adding and deleting entries during expiry', async () => {
    const wait = new EqualWait<Waiting>(MILLISECONDS)
    const { told, entries } = createEntries(['b', 'c'])
    const [b, c] = entries as [Waiting, Waiting]
    wait.add({
      overdue() {
        told.push('a')
        wait.delete(b)
        wait.add(c)
      },
    })
    wait.add(b)
    await eventually('two are told', () => told.length >= 2)
    expect(told).to.deep.equal(['a', 'c'])
  })

  it('uses one timer for any number of entries', () => {
    const standard = globalThis.setTimeout
    let timers = 0
    globalThis.setTimeout = Object.assign((...args: Parameters<typeof standard>) => {
      timers++
      return standard(...args)
    }, standard) as typeof standard
    try {
      const wait = new EqualWait(MILLISECONDS)
      for (const entry of createEntries(Array.from({ length: 1_000 }, String)).entries) {
        wait.add(entry)
        wait.delete(entry)
      }
    } finally {
      globalThis.setTimeout = standard
    }
    expect(timers).to.equal(1)
  })
})
