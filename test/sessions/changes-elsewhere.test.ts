// Tests how a node applies session changes that the client made on another node.
import { expect } from 'chai'
import { systemClock } from '../../core/http/clock.ts'
import { createMemorySessionStore } from '../../core/sessions/memory-session-store.ts'
import { createTakeChanged } from '../../core/sessions/node-messages.ts'
import { Session, type SessionFacts, type ThisNode } from '../../core/sessions/session.ts'
import { FIRST_STATE, type SessionRecord, type StateChange } from '../../core/sessions/session-store.ts'
import { eventually } from '../support/eventually.ts'
import { createTestLog } from '../support/start-host.ts'

const BOUNDS = { idleTimeout: 60_000, maxIdle: 100 }

/** A session at this node, the store that it is in, and what another node sends when it changes it. */
function openHere() {
  const store = createMemorySessionStore('there')
  const keeper = { clock: systemClock, charge: () => true }
  const facts = {
    id: 'session',
    digest: 'digest',
    offer: {},
    keeper,
    opening: { holder: 'ada' },
    home: 'there',
    version: 1,
  }
  const session = new Session(facts as unknown as SessionFacts)
  store.create(
    'digest',
    { opening: facts.opening, state: FIRST_STATE, version: 1, home: 'there' } as SessionRecord,
    BOUNDS as never,
  )
  let reads = 0
  const enter: typeof store.enter = async (...given) => {
    reads++
    return store.enter(...given)
  }
  const node = { name: 'here', store: { ...store, enter }, bounds: BOUNDS, log: createTestLog() }
  const taking = createTakeChanged(node as unknown as ThisNode)
  const take = (message: Parameters<typeof taking>[1]) => taking(session, message)
  const change = (one: StateChange) => {
    const changed = store.change('digest', one)
    if (!changed || changed === 'full' || changed instanceof Promise) throw new Error('the store did not take it')
    const { version } = changed.record
    return { type: 'changed', session: session.digest, version, change: one } as const
  }
  const settings = () => ({ level: session.logLevel, watched: [...session.watched].sort(), version: session.version })
  return { session, take, change, settings, reads: () => reads }
}

describe('Session changes from another node', () => {
  it('are applied from messages, once each, without reading the store', () => {
    const { take, change, settings, reads } = openHere()
    const changes: StateChange[] = [{ watch: 'a://1' }, { logLevel: 'error' }, { watch: 'a://2' }, { unwatch: 'a://1' }]
    for (const one of changes) {
      const message = change(one)
      take(message)
      take(message)
    }
    expect(settings()).to.deep.equal({ level: 'error', watched: ['a://2'], version: 5 })
    expect(reads()).to.equal(0)
  })

  it('are read from the store once if messages are missing or late', async () => {
    const { take, change, settings, reads } = openHere()
    change({ watch: 'a://lost' })
    const late = change({ logLevel: 'debug' })
    const sent = Array.from({ length: 50 }, (_, index) => change({ watch: `a://${index + 10}` }))
    for (const message of sent) take(message)
    await eventually('the record is read', () => settings().version === 53)
    take(late)
    expect(reads()).to.be.at.most(2)
    expect(settings().watched).to.have.length(51)
    expect(settings()).to.include({ level: 'debug', version: 53 })
  })
})
