// What the event store in memory says it holds is what it holds: measured on the heap, for events of every shape.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { createStreamName } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore, EVENT_COST, STREAM_COST } from '../../core/sessions/memory-event-store.ts'

const MIB = 1024 * 1024
const TOTAL = 8 * MIB
/** All of them to the end, so that nothing becomes garbage while the next is measured. */
const kept: EventStore[] = []

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

/** Bytes of the heap after two collections: the first can leave what finalizers held. */
function heap(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/**
 * Writes far more than the store may keep; gives what it holds then. Nothing is awaited, so that no other work of the process
 * changes the heap meanwhile.
 */
function fill({ events, size, letter }: { events: number; size: number; letter: string }): number {
  const before = heap()
  const store = createMemoryEventStore({ total: TOTAL })
  kept.push(store)
  let written = 0
  for (let stream = 0; written < 2 * TOTAL; stream++) {
    // As long as a real one.
    const session = `${stream}`.padEnd(76, 'x')
    const name = createStreamName('session')
    for (let seq = 0; seq < events; seq++) {
      const message = JSON.stringify({ stream, seq, text: letter.repeat(size) })
      written += message.length * (letter === 'x' ? 1 : 2) + EVENT_COST
      store.append(session, name, message, seq)
    }
    written += STREAM_COST
  }
  return heap() - before
}

describe('In-memory event store size', () => {
  for (const [what, shape] of [
    ['one small event a stream', { events: 1, size: 10, letter: 'x' }],
    ['many small events a stream', { events: 2_000, size: 10, letter: 'x' }],
    ['events of 1 kB', { events: 20, size: 1_000, letter: 'x' }],
    ['events of 1 kB that are not ASCII', { events: 20, size: 1_000, letter: '€' }],
    ['large events', { events: 4, size: 200_000, letter: 'x' }],
  ] as const) {
    it(`matches the heap use at its limit: ${what}`, () => {
      const held = fill(shape)
      expect(kept.at(-1)?.after('none', 'none', 0)).to.equal(undefined)
      expect(held / TOTAL).to.be.within(0.5, 1.25)
    })
  }
})
