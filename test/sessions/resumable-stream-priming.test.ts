// Tests that the client of a shared stream gets an event id before it is disconnected, with a slow store.
import { expect } from 'chai'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { createResumableStream } from '../../core/sessions/resumable-stream.ts'
import type { EventStream } from '../../core/transport.ts'
import { createGate } from '../support/gate.ts'

/** A store whose streams become known when the test says so. */
function createLateStore() {
  const known = createGate()
  const refuse = () => Promise.reject(new Error('not asked for here'))
  const store: EventStore = {
    ...createMemoryEventStore(),
    shared: { open: () => known.opened, state: refuse, claim: refuse, finish: () => Promise.resolve() },
  }
  return { store, known }
}

function createReader() {
  const seen: string[] = []
  const ended = createGate()
  let closed = false
  const reader: EventStream = {
    send: (message, id) => seen.push(`${message} ${id?.split('.')[1]}`) > 0,
    event: ({ id, retry }) => seen.push(`primed ${id?.split('.')[1]} ${retry}`) > 0,
    end: retry => {
      seen.push(`end ${retry}`)
      closed = true
      ended.open()
    },
    endWith: () => undefined,
    get closed() {
      return closed
    },
    whenClosed: () => undefined,
    drained: () => Promise.resolve(),
  }
  return { reader, seen, ended }
}

describe('Shared stream not yet in the store', () => {
  async function open() {
    const { store, known } = createLateStore()
    const { reader, seen, ended } = createReader()
    const stream = createResumableStream({
      store,
      session: 'session',
      finished: () => undefined,
      failed: () => undefined,
      writer: { epoch: 0, facts: '', leaving: () => false, written: () => undefined },
    })
    await stream.attach(reader, 0)
    stream.prime(reader, 250)
    return { stream, known, reader, seen, ended }
  }

  it('sends an event id before it disconnects the client', async () => {
    const { stream, known, seen, ended } = await open()
    stream.write('first')
    stream.disconnect(500)
    expect(seen).to.deep.equal([])
    known.open()
    await ended.opened
    expect(seen).to.deep.equal(['primed 0 250', 'end 500'])
  })

  it('delivers the remaining messages on resumption', async () => {
    const { stream, known, ended } = await open()
    stream.disconnect(500)
    stream.write('first')
    stream.finish('last')
    known.open()
    await ended.opened
    const back = createReader()
    await stream.attach(back.reader, 0)
    await back.ended.opened
    expect(back.seen).to.deep.equal(['first 1', 'last 2', 'end undefined'])
  })
})
