// Tests limits and eviction of the in-memory event store beyond its contract in testing/contracts.test.ts.
import { expect } from 'chai'
import fc from 'fast-check'
import { type EventStore, StreamFenced } from '../../core/sessions/event-store.ts'
import {
  costOf,
  createMemoryEventStore,
  EVENT_COST,
  type MemoryLimits,
  STREAM_COST,
} from '../../core/sessions/memory-event-store.ts'
import { caseCount } from '../support/thorough.ts'

/** A store whose time is the test's. */
function createStore(bounds: Partial<MemoryLimits> = {}) {
  let now = 0
  const store = createMemoryEventStore(bounds, () => now)
  const advance = (milliseconds: number) => {
    now += milliseconds
  }
  return { store, advance }
}

/** What a stream with these messages costs. */
const costs = (...messages: readonly string[]) => messages.reduce((sum, message) => sum + costOf(message), STREAM_COST)

const texts = (store: EventStore, session: string, stream: string, seq: number) => {
  const events = store.after(session, stream, seq)
  if (events instanceof Promise) throw new Error('the memory store answers at once')
  return events?.map(event => `${event.seq}:${event.message}`)
}

const fill = (store: EventStore, session: string, stream: string, messages: readonly string[]) => {
  let last = 0
  for (const message of messages) last = store.append(session, stream, message, last) as number
  return last
}

describe('In-memory event store', () => {
  it('counts memory bytes: two per non-ASCII character, plus overhead', () => {
    expect(costOf('12345')).to.equal(EVENT_COST + 5)
    expect(costOf('1234€')).to.equal(EVENT_COST + 10)
    const { store } = createStore({ bytes: costs('12', '1') })
    fill(store, 's', 'a', ['€', '€'])
    expect(texts(store, 's', 'a', 0)).to.equal(undefined)
    expect(texts(store, 's', 'a', 1)).to.deep.equal(['2:€'])
  })
})

type Kept = { key: string; events: Array<{ seq: number; message: string }>; at: number }

const bytesOf = ({ events }: Kept) => costs(...events.map(({ message }) => message))

/** The same bounds said as simply as can be: streams in the order of their last write, everything counted anew. */
class Model {
  readonly #bounds: MemoryLimits
  #streams: Kept[] = []
  now = 0

  constructor(bounds: MemoryLimits) {
    this.#bounds = bounds
  }

  #expire() {
    this.#streams = this.#streams.filter(({ at }) => at + this.#bounds.lifetime > this.now)
  }

  append(key: string, message: string, known: number): number {
    this.#expire()
    const found = this.#streams.find(stream => stream.key === key)
    const seq = (found?.events.at(-1)?.seq ?? known) + 1
    const stream = { key, events: [...(found?.events ?? []), { seq, message }], at: this.now }
    while (
      stream.events.length > 1 &&
      (stream.events.length > this.#bounds.events || bytesOf(stream) > this.#bounds.bytes)
    ) {
      stream.events.shift()
    }
    this.#streams = [...this.#streams.filter(other => other !== found), stream]
    while (this.#streams.reduce((sum, kept) => sum + bytesOf(kept), 0) > this.#bounds.total) this.#streams.shift()
    return seq
  }

  after(key: string, seq: number) {
    this.#expire()
    const events = this.#streams.find(stream => stream.key === key)?.events ?? []
    const first = events[0]?.seq ?? Number.POSITIVE_INFINITY
    return seq + 1 < first || seq > (events.at(-1)?.seq ?? 0) ? undefined : events.filter(event => event.seq > seq)
  }

  drop(session: string, name?: string) {
    this.#streams = this.#streams.filter(
      ({ key }) => !key.startsWith(name === undefined ? `${session}/` : `${session}/${name}`),
    )
  }
}

const SESSIONS = ['s', 't'] as const
const NAMES = ['a', 'b', 'c'] as const

type Step =
  | { do: 'append'; session: string; name: string; size: number }
  | { do: 'pass'; time: number }
  | { do: 'drop'; session: string; name: string; whole: boolean }

interface Both {
  readonly store: EventStore
  readonly model: Model
  readonly advance: (milliseconds: number) => void
  /** The last number of each stream that its writer knows. */
  readonly known: Map<string, number>
}

function perform(step: Step, { store, model, advance, known }: Both) {
  if (step.do === 'pass') {
    advance(step.time)
    model.now += step.time
    return
  }
  const { session, name } = step
  if (step.do === 'drop') {
    store.drop(session, ...(step.whole ? [] : [name]))
    return model.drop(session, ...(step.whole ? [] : [name]))
  }
  const key = `${session}/${name}`
  const last = known.get(key) ?? 0
  const message = String(last).padEnd(step.size, 'é')
  const seq = store.append(session, name, message, last)
  expect(seq).to.equal(model.append(key, message, last))
  known.set(key, Number(seq))
}

function expectEqual(store: EventStore, model: Model, known: Both['known']) {
  for (const [session, name] of SESSIONS.flatMap(session => NAMES.map(name => [session, name] as const))) {
    const key = `${session}/${name}`
    for (let seq = 0; seq <= (known.get(key) ?? 0) + 1; seq++) {
      const expected = model.after(key, seq)?.map(event => `${event.seq}:${event.message}`)
      expect(texts(store, session, name, seq)).to.deep.equal(expected)
    }
  }
}

describe('In-memory event store, model-based', () => {
  const place = { session: fc.constantFrom(...SESSIONS), name: fc.constantFrom(...NAMES) }
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), ...place, size: fc.nat(12) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.nat(60) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), ...place, whole: fc.boolean() }) },
  )
  const bounds = fc.record({
    events: fc.integer({ min: 1, max: 6 }),
    bytes: fc.integer({ min: 1, max: STREAM_COST + 6 * EVENT_COST }),
    total: fc.integer({ min: 1, max: 4 * STREAM_COST + 12 * EVENT_COST }),
    lifetime: fc.integer({ min: 1, max: 100 }),
  })

  it('matches the model for any appends, drops and expiry', () => {
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 60 }), (limits, steps) => {
        const { store, advance } = createStore(limits)
        const model = new Model(limits)
        const known = new Map<string, number>()
        for (const action of steps) {
          perform(action, { store, model, advance, known })
          expectEqual(store, model, known)
        }
      }),
      { numRuns: caseCount(150, 15) },
    )
  })
})

describe('Rejected event store writer', () => {
  it('is recognized across module copies', async () => {
    const copy = (await import(new URL('../../core/sessions/event-store.ts?copy', import.meta.url).href)) as {
      StreamFenced: typeof StreamFenced
    }
    const refusal = new copy.StreamFenced()
    expect(refusal instanceof StreamFenced).to.equal(false)
    expect([refusal, new StreamFenced(), new Error('no'), undefined].map(StreamFenced.is)).to.deep.equal([
      true,
      true,
      false,
      false,
    ])
  })
})
