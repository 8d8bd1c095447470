// Tests the timer queue for entries with an equal timeout.
import { expect } from 'chai'
import { type TimeoutEntry, TimeoutQueue } from '../../core/http/linked-list.ts'
import { createManualClock } from '../support/manual-clock.ts'

const MILLISECONDS = 20

/** Entries that say their name when they are overdue. */
function createEntries(names: readonly string[]) {
  const told: string[] = []
  const entries = names.map((name): TimeoutEntry => ({ onTimeout: () => void told.push(name) }))
  return { told, entries }
}

describe('TimeoutQueue timer queue', () => {
  it('expires entries once, in insertion order', async () => {
    const clock = createManualClock()
    const wait = new TimeoutQueue(MILLISECONDS, clock)
    const { told, entries } = createEntries(['a', 'b', 'c'])
    for (const entry of entries) wait.add(entry)
    await clock.advance(MILLISECONDS - 1)
    expect(told).to.deep.equal([])
    await clock.advance(1)
    expect(told).to.deep.equal(['a', 'b', 'c'])
    await clock.advance(2 * MILLISECONDS)
    expect(told).to.deep.equal(['a', 'b', 'c'])
  })

  it('skips a deleted entry and gives later entries their full timeout', async () => {
    const clock = createManualClock()
    const wait = new TimeoutQueue(MILLISECONDS, clock)
    const { told, entries } = createEntries(['a', 'b'])
    const [a, b] = entries as [TimeoutEntry, TimeoutEntry]
    wait.add(a)
    await clock.advance(MILLISECONDS / 2)
    wait.add(b)
    wait.delete(a)
    await clock.advance(MILLISECONDS - 1)
    expect(told).to.deep.equal([])
    await clock.advance(1)
    expect(told).to.deep.equal(['b'])
  })

  it('restarts after all entries expired', async () => {
    const clock = createManualClock()
    const wait = new TimeoutQueue(MILLISECONDS, clock)
    const { told, entries } = createEntries(['a', 'b'])
    for (const entry of entries) {
      wait.add(entry)
      await clock.advance(MILLISECONDS)
    }
    expect(told).to.deep.equal(['a', 'b'])
  })

  it('allows adding and deleting entries during expiry', async () => {
    const clock = createManualClock()
    const wait = new TimeoutQueue<TimeoutEntry>(MILLISECONDS, clock)
    const { told, entries } = createEntries(['b', 'c'])
    const [b, c] = entries as [TimeoutEntry, TimeoutEntry]
    wait.add({
      onTimeout() {
        told.push('a')
        wait.delete(b)
        wait.add(c)
      },
    })
    wait.add(b)
    await clock.advance(2 * MILLISECONDS)
    expect(told).to.deep.equal(['a', 'c'])
  })

  it('uses one timer for any number of entries', () => {
    const clock = createManualClock()
    const wait = new TimeoutQueue(MILLISECONDS, clock)
    for (const entry of createEntries(Array.from({ length: 1_000 }, String)).entries) {
      wait.add(entry)
      wait.delete(entry)
    }
    expect(clock.pending()).to.have.length(1)
  })
})
