// Tests that a session that ends while a node takes over its stream is not connected again.
import { expect } from 'chai'
import { systemClock } from '../../core/http/clock.ts'
import { HostError } from '../../core/index.ts'
import { createChangeFeed } from '../../core/sessions/change-feed.ts'
import type { StreamWriter } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { Session, type SessionFields } from '../../core/sessions/session.ts'
import { createStreamParts, type StreamParts, takeOver } from '../../core/sessions/session-streams.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { createMemoryChangeBus, createMemoryPeers } from '../support/memory-services.ts'
import { createTestLog } from '../support/start-host.ts'

const STATE = { facts: '{"node":"other","requests":[]}', last: 0, finished: false, epoch: 1, bus: '5' }

/**
 * A session whose stream another node has, at a node whose stores answer when `asked` of them is let go on. `areGone`: the
 * bus has not kept the changes since the other node's last one.
 */
function openElsewhere(waitsAt: 'claimStream' | 'claim' | 'since', areGone = false) {
  /** The bus place that each write to the store leaves, in order. */
  const places: Array<string | undefined> = []
  const [asked, goOn] = [createGate(), createGate()]
  async function answer<Value>(what: typeof waitsAt, value: Value): Promise<Value> {
    if (what !== waitsAt) return value
    asked.open()
    await goOn.opened
    return value
  }
  const bus = createMemoryChangeBus()
  const feed = createChangeFeed(bus, createTestLog())
  let subscribed = 0
  const callbacks = {
    clock: systemClock,
    disposed: () => undefined,
    feedOn: () => ({
      ...feed,
      subscribe(...given: Parameters<typeof feed.subscribe>) {
        subscribed++
        const subscription = feed.subscribe(...given)
        const end = () => {
          subscribed--
          subscription.end()
        }
        return { ...subscription, end }
      },
    }),
  }
  const facts = { id: 'session', digest: 'digest', offer: { route: {}, toolsets: () => [] }, callbacks, opening: {} }
  const session = new Session({ ...facts, home: 'other', version: 1 } as unknown as SessionFields)
  const shared = {
    claim: () => answer('claim', STATE),
    open: async (_session: string, _stream: string, { bus }: StreamWriter) => void places.push(bus),
    finish: async () => undefined,
    state: async () => STATE,
  }
  const history = {
    position: '7',
    isAfter: (one: string, other: string) => one > other,
    since: () => answer('since', areGone ? undefined : []),
  }
  const events = createMemoryEventStore()
  const append: typeof events.append = (...given) => {
    places.push(given[4]?.bus)
    return events.append(...given)
  }
  const claim = { epoch: 2, before: { node: 'other', stream: 'theirs' } }
  const node = {
    name: 'here',
    store: { shared: true, claimStream: () => answer('claimStream', claim) },
    peers: createMemoryPeers('here'),
    events: () => ({ ...events, append, shared }),
    bus: () => ({ ...bus, history }),
    log: createTestLog(),
  }
  const registry = { released: false }
  const settings = { node, registry, whenWritten: () => () => undefined } as unknown as StreamParts
  const parts = createStreamParts(settings, () => undefined)
  return { session, parts, asked, goOn, places, subscribed: () => subscribed }
}

describe('Stream take-over', () => {
  for (const place of ['claimStream', 'claim', 'since'] as const) {
    it(`fails with sessionNotFound and no subscription if the session ends during \`${place}\``, async () => {
      const { session, parts, asked, goOn, subscribed } = openElsewhere(place)
      const taking = takeOver(parts, session, 'ours', false).catch((error: unknown) => error)
      await asked.opened
      session.dispose(new Error('the client ended it'))
      goOn.open()
      const refusal = await taking
      expect(HostError.is(refusal) ? refusal.kind : refusal).to.equal('sessionNotFound')
      expect([subscribed(), session.streams.size]).to.deep.equal([0, 0])
    })
  }

  it('subscribes the session to changes', async () => {
    const { session, parts, asked, goOn, subscribed } = openElsewhere('since')
    const taking = takeOver(parts, session, 'ours', false)
    await asked.opened
    goOn.open()
    expect((await taking).name).to.equal('ours')
    expect([subscribed(), session.streams.size]).to.deep.equal([1, 1])
    session.dispose(new Error('the test is over'))
    expect(subscribed()).to.equal(0)
  })

  it('is told once that anything may have changed: the next node continues from the place of the bus now', async () => {
    const { session, parts, goOn, places } = openElsewhere('since', true)
    goOn.open()
    await takeOver(parts, session, 'ours', false)
    await eventually(
      'the three lists are stored',
      () => [...places],
      ({ length }) => length === 4,
    )
    // Until all of it is stored the old place stands: a node that takes over before that tells it again.
    expect(places).to.deep.equal(['5', undefined, undefined, '7'])
    session.dispose(new Error('the test is over'))
  })
})
