// What every session store promises to the node that it is of. What a shared one promises beyond that: shared-sessions.ts.
import { deepEqual, equal, ok } from 'node:assert/strict'
import { MAX_URI, MAX_WATCHED, MAX_WATCHED_BYTES, WATCH_COST } from '../mcp/limits.ts'
import { LATEST_HANDSHAKE } from '../mcp/revisions.ts'
import { FIRST_STATE } from '../sessions/session-record.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { type Check, type ContractSettings, checksOf, eventually, type Promises, pause } from './contract.ts'
import { BOUNDS, enter, kindOf, mark, open, recordIn, recordOf } from './session-steps.ts'
import { sharedBounds, sharedRecords } from './shared-sessions.ts'

/** Milliseconds after which sessions of some checks have idled for too long: much more than a store takes to answer. */
const SHORT = 800

const records: Promises<SessionStore>['alone'] = {
  async 'keeps what a session was opened with, and gives it to a node without a copy'(store) {
    equal(await open(store, 'one'), true)
    deepEqual(recordIn(await enter(store, 'one')), recordOf(store.node))
    deepEqual(await enter(store, 'one', { version: 1 }), { kind: 'entered', record: undefined })
  },
  async 'knows nothing of a session that was never opened'(store) {
    deepEqual(await enter(store, 'one', { requests: [1] }), { kind: 'missing', ended: false })
    equal(await store.change('one', { logLevel: 'error' }), undefined)
    equal(await store.nodeOf('one', 1), undefined)
    equal(await store.adopt('one', 'another'), false)
    equal(await store.claimStream('one', 'stream'), undefined)
    equal(await store.timeLeft('one'), undefined)
    deepEqual(await mark(store, [['one', 'ada', false]]), [])
    store.leave('one', [1])
    equal(await store.end('one', 'ada', true), undefined)
    equal(await store.end('one', 'ada'), undefined)
  },
  async 'keeps each change, one version each, and gives the whole record'(store) {
    await open(store, 'one')
    const client = { info: { name: 'client', version: '1' }, capabilities: { sampling: {} } }
    const changes = [
      { revision: LATEST_HANDSHAKE, client },
      { logLevel: 'error' as const },
      { watch: 'note://a' },
      { watch: 'note://b' },
      { unwatch: 'note://a' },
    ]
    let version = 1
    for (const change of changes) {
      const changed = await store.change('one', change)
      ok(changed !== undefined && changed !== 'full')
      equal(changed.record.version, ++version)
      deepEqual(changed.nodes, [])
    }
    const record = recordIn(await enter(store, 'one', { version: 5 }))
    deepEqual(record?.state, { revision: LATEST_HANDSHAKE, client, logLevel: 'error', watched: ['note://b'] })
    equal(record?.version, 6)
    deepEqual(await enter(store, 'one', { version: 6 }), { kind: 'entered', record: undefined })
  },
  async 'lets a session watch so many bytes of resources'(store) {
    const long = (index: number) => `note://${index}/`.padEnd(MAX_URI, 'x')
    const most = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    const watched = Array.from({ length: most - 1 }, (_, index) => long(index))
    await store.create('one', { ...recordOf(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    ok((await store.change('one', { watch: long(most) })) !== 'full')
    equal(await store.change('one', { watch: long(most + 1) }), 'full')
    ok((await store.change('one', { watch: long(most) })) !== 'full')
    await store.change('one', { unwatch: long(most) })
    ok((await store.change('one', { watch: long(most + 1) })) !== 'full')
  },

  async 'lets a session watch so many resources, each once'(store) {
    const watched = Array.from({ length: MAX_WATCHED }, (_, index) => `note://${index}`)
    await store.create('one', { ...recordOf(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    equal(await store.change('one', { watch: 'note://more' }), 'full')
    ok((await store.change('one', { watch: 'note://7' })) !== 'full')
    await store.change('one', { unwatch: 'note://7' })
    ok((await store.change('one', { watch: 'note://more' })) !== 'full')
    const now = recordIn(await enter(store, 'one'))?.state.watched ?? []
    deepEqual([...now].sort(), [...watched.filter(uri => uri !== 'note://7'), 'note://more'].sort())
  },
  async 'gives the stream for what belongs to no call to one after the other, each with a higher epoch'(store) {
    await open(store, 'one')
    const first = await store.claimStream('one', 'a')
    ok(first && first.epoch > 0)
    equal(first.before, undefined)
    const again = await store.claimStream('one', 'a')
    equal(again?.epoch, first.epoch)
    const next = await store.claimStream('one', 'b')
    deepEqual(next?.before, { node: store.node, stream: 'a' })
    ok(next && next.epoch > first.epoch)
  },
}

const requests: Promises<SessionStore>['alone'] = {
  async 'knows a request that runs until it is answered, and does nothing for a second one with its id'(store) {
    await open(store, 'one')
    equal(await kindOf(store, 'one', [1, 'a']), 'entered')
    deepEqual(await enter(store, 'one', { requests: ['new', 1] }), { kind: 'taken', request: 1, node: store.node })
    equal(await store.nodeOf('one', 1), store.node)
    equal(await store.nodeOf('one', 'new'), undefined)
    store.leave('one', [1])
    await eventually(async () => (await store.nodeOf('one', 1)) === undefined)
    equal(await kindOf(store, 'one', [1]), 'entered')
    equal(await kindOf(store, 'one', ['a']), 'taken')
  },
  async 'tells ids that are numbers from ids that are texts'(store) {
    await open(store, 'one')
    equal(await kindOf(store, 'one', [1]), 'entered')
    equal(await kindOf(store, 'one', ['1']), 'entered')
  },
  async 'takes a request where those of its node do not count'(store) {
    await open(store, 'one')
    await enter(store, 'one', { requests: [1] })
    equal((await enter(store, 'one', { requests: [1], from: [store.node] })).kind, 'entered')
  },
  async 'knows the requests of each session by themselves'(store) {
    await open(store, 'one')
    await open(store, 'two')
    equal(await kindOf(store, 'one', [1]), 'entered')
    equal(await kindOf(store, 'two', [1]), 'entered')
  },
}

const ends: Promises<SessionStore>['alone'] = {
  async 'ends a session, once'(store) {
    await open(store, 'one')
    await open(store, 'two')
    deepEqual(await store.end('one', 'ada'), [])
    equal(await kindOf(store, 'one'), 'missing')
    equal(await store.end('one', 'ada'), undefined)
    equal(await kindOf(store, 'two'), 'entered')
  },
  async 'leaves one that is in use, where only an idle one is to end'(store) {
    await open(store, 'one')
    await mark(store, [['one', 'ada', true]])
    equal(await store.end('one', 'ada', true), undefined)
    await mark(store, [['one', 'ada', false]])
    await enter(store, 'one', { requests: [1] })
    equal(await store.end('one', 'ada', true), undefined)
    store.leave('one', [1])
    await eventually(async () => (await store.nodeOf('one', 1)) === undefined)
    deepEqual(await store.end('one', 'ada', true), [])
  },
  async 'lets a session go that idles for too long, and tells how long it has'(store) {
    const bounds = { idleTimeout: SHORT }
    await open(store, 'one', 'ada', bounds)
    await mark(store, [['one', 'ada', false]], bounds)
    const left = await store.timeLeft('one')
    ok(left !== undefined && left > 0 && left <= SHORT, `${left} ms are left of ${SHORT}`)
    await eventually(async () => (await store.timeLeft('one')) === undefined)
    deepEqual(await enter(store, 'one', {}, bounds), { kind: 'missing', ended: false })
  },
  async 'keeps a session that requests come to, and one that is said to be in use'(store) {
    const bounds = { idleTimeout: SHORT }
    for (const digest of ['asked', 'used', 'idle']) {
      await open(store, digest, 'ada', bounds)
      await mark(store, [[digest, 'ada', false]], bounds)
    }
    for (let round = 0; round < 6; round++) {
      await enter(store, 'asked', { version: 1 }, bounds)
      await mark(store, [['used', 'ada', true]], bounds)
      await pause(SHORT / 4)
    }
    deepEqual(
      [await kindOf(store, 'asked'), await kindOf(store, 'used'), await kindOf(store, 'idle')],
      ['entered', 'entered', 'missing'],
    )
  },
}

const bounds: Promises<SessionStore>['alone'] = {
  async 'lets a holder have so many sessions, and another one his; one that ends makes room'(store) {
    const most = { maxPerOwner: 2 }
    deepEqual(
      [
        await open(store, 'a1', 'ada', most),
        await open(store, 'a2', 'ada', most),
        await open(store, 'a3', 'ada', most),
      ],
      [true, true, false],
    )
    equal(await kindOf(store, 'a3'), 'missing')
    equal(await open(store, 'b1', 'bob', most), true)
    await store.end('a1', 'ada')
    equal(await open(store, 'a3', 'ada', most), true)
  },
  async 'does not count those that have idled for too long'(store) {
    const most = { maxPerOwner: 2, idleTimeout: SHORT }
    for (const digest of ['a1', 'a2']) {
      equal(await open(store, digest, 'ada', most), true)
      await mark(store, [[digest, 'ada', false]], most)
    }
    equal(await open(store, 'a3', 'ada', most), false)
    await pause(SHORT * 1.5)
    equal(await open(store, 'a3', 'ada', most), true)
    equal(await open(store, 'a4', 'ada', most), true)
    equal(await open(store, 'a5', 'ada', most), false)
  },
  async 'lets a holder have any number, where there is no bound'(store) {
    for (let index = 0; index < 50; index++) equal(await open(store, `a${index}`), true)
  },
  async 'gives the longest idle ones of the holder who has most, each once, where too many idle'(store) {
    const idle = [
      ['b1', 'bob', false],
      ['a1', 'ada', false],
      ['a2', 'ada', false],
      ['a3', 'ada', false],
    ] as const
    for (const [digest, holder] of idle) await open(store, digest, holder)
    const victims = await mark(store, idle, { maxIdle: 2 })
    deepEqual(
      victims.map(({ digest }) => digest),
      ['a1', 'a2'],
    )
    for (const { digest, holder } of victims) deepEqual(await store.end(digest, holder, true), [])
    deepEqual(await mark(store, [['a3', 'ada', false]], { maxIdle: 2 }), [])
    equal(await kindOf(store, 'b1'), 'entered')
  },
  async 'gives none that is in use'(store) {
    for (const digest of ['a1', 'a2', 'a3']) await open(store, digest)
    const uses = [
      ['a3', 'ada', false],
      ['a1', 'ada', true],
      ['a2', 'ada', true],
    ] as const
    deepEqual(await mark(store, uses, { maxIdle: 1 }), [])
    const victims = await mark(store, [['a1', 'ada', false]], { maxIdle: 1 })
    deepEqual(
      victims.map(({ digest }) => digest),
      ['a3'],
    )
  },
}

const restores: Promises<SessionStore>['alone'] = {
  async 'takes a record that it has lost, with the requests that run and the stream that is claimed'(store) {
    const record = { ...recordOf(store.node), version: 7 }
    const held = { requests: [1], claim: { stream: 'a', epoch: 5 } }
    equal(await store.restore('one', record, held, BOUNDS), true)
    deepEqual(recordIn(await enter(store, 'one')), record)
    equal(await store.nodeOf('one', 1), store.node)
    const claim = await store.claimStream('one', 'b')
    deepEqual(claim?.before, { node: store.node, stream: 'a' })
    ok(claim && claim.epoch > 5)
  },
  async 'lets a session that was restored go, where it is not said to be in use'(store) {
    const held = { requests: [], claim: undefined }
    await store.restore('one', recordOf(store.node), held, { ...BOUNDS, idleTimeout: SHORT })
    ok((await store.timeLeft('one')) !== undefined)
    await eventually(async () => (await store.timeLeft('one')) === undefined)
    equal(await store.timeLeft('one'), undefined)
  },
  async 'keeps the record that it has'(store) {
    await open(store, 'one')
    await store.change('one', { logLevel: 'error' })
    equal(await store.restore('one', recordOf(store.node), { requests: [], claim: undefined }, BOUNDS), true)
    equal(recordIn(await enter(store, 'one'))?.state.logLevel, 'error')
  },
}

/** Of the slot `sessionStore`; `shared` as the store's own. */
export const sessionStoreContract = (settings: ContractSettings<SessionStore>): readonly Check[] =>
  checksOf(settings, {
    alone: { ...records, ...requests, ...ends, ...bounds, ...restores },
    together: { ...sharedRecords, ...sharedBounds },
  })
