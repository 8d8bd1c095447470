// Compares the event store's estimate of its memory with the heap, for small and large events.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { createStreamName } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore, EVENT_COST, STREAM_COST } from '../../core/sessions/memory-event-store.ts'

const MIB = 1024 * 1024
const TOTAL = 8 * MIB

interface Shape {
  /** Per stream. */
  readonly events: number
  readonly size: number
  readonly letter: string
}

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

/** Bytes of the heap after two collections: the first can leave what finalizers held. */
function heap(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/** Not a local variable: V8 can keep its object until the function returns. */
let store: EventStore | undefined

/** Writes more events than the store may keep. */
function createFull({ events, size, letter }: Shape): void {
  store = createMemoryEventStore({ total: TOTAL })
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
}

/**
 * Returns the bytes that a full store holds. Releases it between two collections: garbage of earlier test files in this process can
 * be freed at any other time.
 */
function measure(shape: Shape): number {
  createFull(shape)
  const full = heap()
  store = undefined
  return full - heap()
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
      expect(measure(shape) / TOTAL).to.be.within(0.5, 1.25)
    })
  }
})
