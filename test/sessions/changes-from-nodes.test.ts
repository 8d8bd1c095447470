// Tests how a node applies session changes that the client made on another node.
import { expect } from 'chai'
import { systemClock } from '../../core/http/clock.ts'
import { createSessionStore } from '../../core/sessions/create-session-store.ts'
import { createChangeReceiver } from '../../core/sessions/node-messages.ts'
import { Session, type SessionFields, type ThisNode } from '../../core/sessions/session.ts'
import { FIRST_STATE, type SessionRecord, type StateChange } from '../../core/sessions/session-store.ts'
import { createMemoryStore } from '../../core/store/memory-store.ts'
import { eventually } from '../support/eventually.ts'
import { createTestLog } from '../support/start-host.ts'

const BOUNDS = { idleTimeout: 60_000, maxIdle: 100 }

/** A session at this node, the store that it is in, and what another node sends when it changes it. */
async function openHere() {
  const store = createSessionStore({ ...createMemoryStore(), shared: true }, { node: 'there', log: createTestLog() })
  const callbacks = { clock: systemClock, charge: () => true }
  const facts = {
    id: 'session',
    digest: 'digest',
    offer: {},
    callbacks,
    opening: { holder: 'ada' },
    home: 'there',
  }
  const record = { opening: facts.opening, state: FIRST_STATE, version: 1, home: 'there' } as SessionRecord
  const first = (await store.create('digest', record, BOUNDS as never)) as number
  const session = new Session({ ...facts, version: first } as unknown as SessionFields)
  let reads = 0
  const enter: typeof store.enter = async (...given) => {
    reads++
    return store.enter(...given)
  }
  const node = { name: 'here', store: { enter }, limits: BOUNDS, log: createTestLog() }
  const taking = createChangeReceiver(node as unknown as ThisNode)
  const take = (message: Parameters<typeof taking>[1]) => taking(session, message)
  const change = async (one: StateChange) => {
    const changed = await store.change('digest', one)
    if (!changed || changed === 'full') throw new Error('the store did not take it')
    const { version } = changed.record
    return { type: 'changed', session: session.digest, version, change: one } as const
  }
  const settings = () => ({
    level: session.logLevel,
    watched: [...session.watched].sort(),
    changes: session.version - first,
  })
  return { session, take, change, settings, reads: () => reads }
}

describe('Session changes from another node', () => {
  it('are applied from messages, once each, without reading the store', async () => {
    const { take, change, settings, reads } = await openHere()
    const changes: StateChange[] = [{ watch: 'a://1' }, { logLevel: 'error' }, { watch: 'a://2' }, { unwatch: 'a://1' }]
    for (const one of changes) {
      const message = await change(one)
      take(message)
      take(message)
    }
    expect(settings()).to.deep.equal({ level: 'error', watched: ['a://2'], changes: 4 })
    expect(reads()).to.equal(0)
  })

  it('are read from the store once if messages are missing or late', async () => {
    const { take, change, settings, reads } = await openHere()
    await change({ watch: 'a://lost' })
    const late = await change({ logLevel: 'debug' })
    const sent = await Promise.all(Array.from({ length: 50 }, (_, index) => change({ watch: `a://${index + 10}` })))
    for (const message of sent) take(message)
    await eventually('the record is read', () => settings().changes === 52)
    take(late)
    expect(reads()).to.be.at.most(2)
    expect(settings().watched).to.have.length(51)
    expect(settings()).to.include({ level: 'debug', changes: 52 })
  })
})
