// Measures the heap that full in-memory stores hold, in a process without other garbage. Prints the bytes per case, divided by the
// limit of the store. Run with --expose-gc.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { createStreamName } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore, EVENT_COST, STREAM_COST } from '../../core/sessions/memory-event-store.ts'
import type { GrantStore } from '../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../plugins/families/grant-store/index.ts'

const MIB = 1024 * 1024
const LIMIT = 4 * MIB
const MINUTE = 60_000

/** Not a local variable: V8 can keep its object until the function returns. */
const current: { store?: EventStore | GrantStore } = {}

/** Bytes in use after garbage collection. Finalizers and pending microtasks can hold objects until the next turn. */
async function heap(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.()
    await nextTurn()
  }
  return process.memoryUsage().heapUsed
}

/** Writes twice the bytes that the store may keep. */
function fillEvents(events: number, size: number, letter: string): void {
  const full = createMemoryEventStore({ total: LIMIT })
  current.store = full
  let written = 0
  for (let stream = 0; written < 2 * LIMIT; stream++) {
    // As long as a real one.
    const session = `${stream}`.padEnd(76, 'x')
    const name = createStreamName('session')
    for (let seq = 0; seq < events; seq++) {
      const message = JSON.stringify({ stream, seq, text: letter.repeat(size) })
      written += message.length * (letter === 'x' ? 1 : 2) + EVENT_COST
      full.append(session, name, message, seq)
    }
    written += STREAM_COST
  }
}

async function fillGrants(write: (store: GrantStore, index: number) => Promise<unknown>): Promise<void> {
  const full = createMemoryGrantStore({ pending: MIB / 2, granted: LIMIT }, () => 0)
  current.store = full
  for (let index = 0; index < 30_000; index++) await write(full, index)
}

const key = (index: number) => `granted:${index}`
const CASES: Readonly<Record<string, () => unknown>> = {
  'event store, one small event a stream': () => fillEvents(1, 10, 'x'),
  'event store, many small events a stream': () => fillEvents(2_000, 10, 'x'),
  'event store, events of 1 kB': () => fillEvents(20, 1_000, 'x'),
  'event store, events of 1 kB that are not ASCII': () => fillEvents(20, 1_000, '€'),
  'event store, large events': () => fillEvents(4, 200_000, 'x'),
  'grant store, texts': () =>
    fillGrants((grants, index) => grants.set(key(index), `${index}`.padEnd(1_000, 'x'), MINUTE)),
  'grant store, short texts': () => fillGrants((grants, index) => grants.set(key(index), `${index}`, MINUTE)),
  'grant store, texts that are not ASCII': () =>
    fillGrants((grants, index) => grants.set(key(index), `${index}`.padEnd(500, '鴨'), MINUTE)),
  'grant store, sets': () =>
    fillGrants((grants, index) => grants.join(key(index >> 4), `member ${index}`.padEnd(43, 'x'), MINUTE, 16)),
}

const held: Record<string, number> = {}
for (const [name, fill] of Object.entries(CASES)) {
  await fill()
  const full = await heap()
  delete current.store
  held[name] = (full - (await heap())) / LIMIT
}
console.log(JSON.stringify(held))
