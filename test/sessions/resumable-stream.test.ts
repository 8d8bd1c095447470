// Tests resumable streams: delivery once and in order, replay, readers and store failures.
import { expect } from 'chai'
import fc from 'fast-check'
import { HostError } from '../../core/http/errors.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { parseEventId } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { createResumableStream } from '../../core/sessions/resumable-stream.ts'
import { anyText } from '../support/any-text.ts'
import { createUnevenStore, type Effect, unevenTurns } from '../support/delayed-store.ts'
import { WanderingClient } from '../support/reconnecting-client.ts'
import { caseCount } from '../support/thorough.ts'

function openStream(store: EventStore, reading?: () => Promise<unknown>) {
  const finished: string[] = []
  let resolve: () => void
  const whenFinished = new Promise<void>(done => {
    resolve = done
  })
  const failures: unknown[] = []
  const stream = createResumableStream({
    store,
    session: 'session',
    finished: name => {
      finished.push(name)
      resolve()
    },
    failed: error => void failures.push(error),
  })
  return { stream, client: new WanderingClient(stream, reading), finished, whenFinished, failures }
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1))
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await null
}

/** Everything arrived once and in order, with ids that count on, and the stream ended. */
function expectWhole({ client, finished, failures }: ReturnType<typeof openStream>, count: number) {
  expect(client.breaches).to.deep.equal([])
  expect(client.finish()).to.deep.equal({
    messages: numbered(count),
    seqs: numbered(count).map(Number),
    ended: true,
  })
  expect(finished).to.have.length(1)
  expect(failures).to.deep.equal([])
}

describe('Resumable stream with a slow, reordering store', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant({ do: 'write' as const, lost: 0 }) },
    { weight: 3, arbitrary: fc.constant({ do: 'come back' as const, lost: 0 }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), lost: fc.nat(4) }) },
    { weight: 1, arbitrary: fc.constant({ do: 'disconnect' as const, lost: 0 }) },
  )

  for (const effect of ['asked', 'answered'] satisfies Effect[]) {
    it(`delivers each message once and in order (store writes when ${effect})`, () =>
      fc.assert(
        fc.asyncProperty(fc.scheduler(), fc.array(step, { maxLength: 25 }), async (scheduler, steps) => {
          const later = (what: string) => scheduler.schedule(Promise.resolve(), what)
          const opened = openStream(createUnevenStore(later, effect), () => later('read'))
          const { stream, client } = opened
          let written = 0
          const returns: Array<Promise<void>> = []
          const act = {
            write: () => stream.write(String(++written)),
            'come back': () => void returns.push(client.comeBack()),
            drop: (lost: number) => client.drop(lost),
            disconnect: () => stream.disconnect(),
          }
          const script = steps.map(({ do: name, lost }) => ({
            label: name,
            builder: async () => act[name](lost),
          }))
          scheduler.scheduleSequence([...script, { label: 'finish', builder: async () => stream.finish() }])
          await scheduler.waitIdle()
          returns.push(client.comeBack())
          await scheduler.waitIdle()
          await Promise.all(returns)
          expectWhole(opened, written)
        }),
        { numRuns: caseCount(150, 20) },
      ))
  }
})

describe('Resumable stream with a synchronous store', () => {
  /** Writes a fourth message so many turns after its client has begun to come back to three. */
  async function writeInReplay(moment: number) {
    const opened = openStream(createMemoryEventStore())
    const { stream, client } = opened
    for (const message of numbered(3)) stream.write(message)
    const back = client.comeBack()
    await turns(moment)
    stream.write('4')
    return { opened, stream, back }
  }

  it('delivers a message written at any moment of a replay', async () => {
    for (let moment = 0; moment < 12; moment++) {
      const { opened, stream, back } = await writeInReplay(moment)
      await back
      stream.write('5')
      stream.finish()
      await turns(5)
      expectWhole(opened, 5)
    }
  })

  it('ends the reader after the last replayed message of a finished stream', async () => {
    for (let moment = 0; moment < 12; moment++) {
      const { opened, stream, back } = await writeInReplay(moment)
      stream.finish()
      await back
      await turns(5)
      expectWhole(opened, 4)
    }
  })

  it('replays a finished stream to a new reader and ends', async () => {
    const opened = openStream(createMemoryEventStore())
    for (const message of numbered(2)) opened.stream.write(message)
    opened.stream.finish()
    await opened.client.comeBack()
    expectWhole(opened, 2)
  })

  it('replays to a second reader, which replaces the first', async () => {
    const opened = openStream(createUnevenStore(unevenTurns()))
    const { stream } = opened
    const first = new WanderingClient(stream)
    for (const message of numbered(3)) stream.write(message)
    await Promise.all([first.comeBack(), opened.client.comeBack()])
    stream.write('4')
    stream.finish()
    await opened.whenFinished
    expectWhole(opened, 4)
    expect(first.breaches).to.deep.equal([])
    expect(first.finish().messages).to.satisfy((messages: string[]) => messages.length < 4)
    expect(first.finish().messages).to.deep.equal(numbered(first.finish().messages.length))
  })

  it('refuses resumption if events after the id are lost', async () => {
    const { stream, client } = openStream(createMemoryEventStore({ events: 1 }))
    for (const message of numbered(2)) stream.write(message)
    await client.comeBack()
    expect(client.breaches).to.deep.equal(['nothing to resume after 0'])
    stream.write('3')
    expect(client.finish().messages).to.deep.equal([])
  })

  it('resumes after its last message although the store expired it, with continued ids', async () => {
    let now = 0
    const opened = openStream(createMemoryEventStore({ lifetime: 10 }, () => now))
    const { stream, client } = opened
    await client.comeBack()
    for (const message of numbered(3)) stream.write(message)
    client.drop(0)
    now += 10
    await client.comeBack()
    stream.write('4')
    client.drop(1)
    await client.comeBack()
    stream.finish()
    expectWhole(opened, 4)
  })

  it('delivers messages without ids after a store failure', async () => {
    const store = createMemoryEventStore()
    let failing = false
    const append: EventStore['append'] = (...given) => {
      if (failing) return Promise.reject(new Error('the store is away'))
      return store.append(...given)
    }
    const { stream, client, failures } = openStream({ ...store, append })
    await client.comeBack()
    stream.write('1')
    failing = true
    stream.write('2')
    await turns(3)
    failing = false
    stream.write('3')
    client.finish()
    expect(client.received.map(({ id, message }) => [message, id?.split('.')[1]])).to.deep.equal([
      ['1', '1'],
      ['2', undefined],
      ['3', undefined],
    ])
    expect(failures).to.have.length(1)
  })

  it('repeats an append while the store is unavailable', async () => {
    const store = createMemoryEventStore()
    let appends = 0
    const append: EventStore['append'] = (...given) =>
      appends++ === 0 ? Promise.reject(new HostError('unavailable')) : store.append(...given)
    const opened = openStream({ ...store, append })
    await opened.client.comeBack()
    opened.stream.write('1')
    opened.stream.finish('2')
    await opened.whenFinished
    expectWhole(opened, 2)
    expect(appends).to.equal(3)
  })

  for (const [what, wrong] of Object.entries({
    undefined: undefined,
    'a text': '2',
    zero: 0,
    'the same again': 1,
    'a gap': 3,
  })) {
    it(`treats ${what} as sequence number from the store as a failure`, async () => {
      const store = createMemoryEventStore()
      const append: EventStore['append'] = (session, stream, message, known) =>
        known === 0 ? store.append(session, stream, message, known) : (wrong as number)
      const { stream, client, failures, finished } = openStream({ ...store, append })
      await client.comeBack()
      for (const message of numbered(3)) stream.write(message)
      stream.finish('4')
      await turns(5)
      expect(client.finish().ended).to.equal(true)
      expect(client.received.map(({ id, message }) => [message, id?.split('.')[1]])).to.deep.equal([
        ['1', '1'],
        ['2', undefined],
        ['3', undefined],
        ['4', undefined],
      ])
      expect(String(failures)).to.match(/.+, but 2/)
      expect(stream.isWhole).to.equal(false)
      expect(finished).to.have.length(1)
    })
  }
})

describe('Event id', () => {
  it('contains a 64-bit random stream id and a sequence number', () => {
    const { stream } = openStream(createMemoryEventStore())
    expect(parseEventId(`${stream.name}.12`)).to.deep.equal({ stream: stream.name, seq: 12 })
    expect(new Set([stream.name, openStream(createMemoryEventStore()).stream.name])).to.have.length(2)
  })

  it('rejects other formats', () => {
    const { name } = openStream(createMemoryEventStore()).stream
    for (const text of [
      '',
      '1',
      name,
      `${name}.`,
      `${name}.-1`,
      `${name}.1.1`,
      `${name}.1e3`,
      `x${name}.1`,
      `${name}. 1`,
    ]) {
      expect(parseEventId(text), text).to.equal(undefined)
    }
  })

  it('round-trips, and a changed character gives another id or none', () => {
    const { name } = openStream(createMemoryEventStore()).stream
    const seq = fc.nat({ max: 999_999_999_999_999 })
    const wrong = fc.record({ at: fc.nat(30), cut: fc.nat(1), put: anyText(1) })
    let read = 0
    fc.assert(
      fc.property(seq, wrong, (number, { at, cut, put }) => {
        const text = `${name}.${number}`
        expect(parseEventId(text)).to.deep.equal({ stream: name, seq: number })
        const changed = text.slice(0, at) + put + text.slice(at + cut)
        const id = parseEventId(changed)
        if (id === undefined) return
        read++
        const zeros = /\.(0*)\d/.exec(changed)?.[1]
        expect(changed).to.equal(`${id.stream}.${zeros}${id.seq}`)
        expect(id.stream).to.have.length(name.length)
      }),
      { numRuns: caseCount(200, 30) },
    )
    expect(read).to.be.greaterThan(0)
  })
})
