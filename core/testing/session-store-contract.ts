// What every session store promises to the node that it is of. What a shared one promises beyond that: shared-sessions.ts.
import { MAX_URI, MAX_WATCHED, MAX_WATCHED_BYTES, WATCH_COST } from '../mcp/client-limits.ts'
import { LATEST_HANDSHAKE } from '../mcp/revisions.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { FIRST_STATE } from '../sessions/session-store.ts'
import {
  type Check,
  type ContractSettings,
  checksOf,
  eventually,
  holds,
  type Promises,
  pause,
  same,
} from './contract.ts'
import { bounds, restores } from './session-bounds-contract.ts'
import { BOUNDS, enter, kindOf, mark, open, recordIn, recordOf } from './session-steps.ts'
import { sharedBounds, sharedRecords } from './shared-sessions.ts'

const records: Promises<SessionStore>['alone'] = {
  async 'stores the initial session record and returns it to a node without a copy'(store) {
    same(await open(store, 'one'), true, 'create keeps a session')
    same(
      recordIn(await enter(store, 'one')),
      recordOf(store.node),
      'enter gives the record to a node that has no copy (version 0)',
    )
    same(
      await enter(store, 'one', { version: 1 }),
      { kind: 'entered', record: undefined },
      'enter gives no record to a node whose copy is of its version',
    )
  },
  async 'reports an unknown session as missing'(store) {
    same(
      await enter(store, 'one', { requests: [1] }),
      { kind: 'missing', ended: false },
      'enter says of a session that was never opened that it is missing and was not ended',
    )
    same(await store.change('one', { logLevel: 'error' }), undefined, 'change gives undefined where there is no record')
    same(await store.nodeOf('one', 1), undefined, 'nodeOf gives undefined where there is no record')
    same(await store.adopt('one', 'another'), false, 'adopt gives false where there is no record')
    same(await store.claimStream('one', 'stream'), undefined, 'claimStream gives undefined where there is no record')
    same(await store.timeLeft('one'), undefined, 'timeLeft gives undefined where there is no record')
    same(await mark(store, [['one', 'ada', false]]), [], 'mark passes over a session that it does not know')
    store.leave('one', [1])
    same(await store.end('one', 'ada', true), undefined, 'end with onlyIdle gives undefined where there is no record')
    same(await store.end('one', 'ada'), undefined, 'end gives undefined where there is no record')
  },
  async 'stores each change as one version and returns the whole record'(store) {
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
      holds(changed !== undefined && changed !== 'full', 'change gives the record that it changed')
      same(changed.record.version, ++version, 'each change is one version')
      same(changed.nodes, [], 'a change names no other node where none has a copy')
    }
    const record = recordIn(await enter(store, 'one', { version: 5 }))
    same(
      record?.state,
      { revision: LATEST_HANDSHAKE, client, logLevel: 'error', watched: ['note://b'] },
      'the record has all changes in it, one after the other',
    )
    same(record?.version, 6, 'five changes after version 1 make version 6')
    same(
      await enter(store, 'one', { version: 6 }),
      { kind: 'entered', record: undefined },
      'enter gives no record to a node whose copy is of the last version',
    )
  },
  async 'limits the bytes of resource subscriptions per session'(store) {
    const long = (index: number) => `note://${index}/`.padEnd(MAX_URI, 'x')
    const most = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    const watched = Array.from({ length: most - 1 }, (_, index) => long(index))
    await store.create('one', { ...recordOf(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    holds(
      (await store.change('one', { watch: long(most) })) !== 'full',
      'a session may watch resources up to MAX_WATCHED_BYTES',
    )
    same(await store.change('one', { watch: long(most + 1) }), 'full', "change gives 'full' past MAX_WATCHED_BYTES")
    holds(
      (await store.change('one', { watch: long(most) })) !== 'full',
      'a resource that is watched already is no more of them',
    )
    await store.change('one', { unwatch: long(most) })
    holds((await store.change('one', { watch: long(most + 1) })) !== 'full', 'what is not watched any more makes room')
  },

  async 'limits the number of resource subscriptions per session'(store) {
    const watched = Array.from({ length: MAX_WATCHED }, (_, index) => `note://${index}`)
    await store.create('one', { ...recordOf(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    same(await store.change('one', { watch: 'note://more' }), 'full', "change gives 'full' past MAX_WATCHED resources")
    holds(
      (await store.change('one', { watch: 'note://7' })) !== 'full',
      'a resource that is watched already is no more of them',
    )
    await store.change('one', { unwatch: 'note://7' })
    holds((await store.change('one', { watch: 'note://more' })) !== 'full', 'what is not watched any more makes room')
    const now = recordIn(await enter(store, 'one'))?.state.watched ?? []
    same(
      [...now].sort(),
      [...watched.filter(uri => uri !== 'note://7'), 'note://more'].sort(),
      'the record has what is watched now, each once',
    )
  },
  async 'grants the general stream to one claim at a time, each with a higher epoch'(store) {
    await open(store, 'one')
    const first = await store.claimStream('one', 'a')
    holds(first && first.epoch > 0, 'the first claim gives an epoch above 0')
    same(first.before, undefined, 'nobody had the stream before the first claim')
    const again = await store.claimStream('one', 'a')
    same(again?.epoch, first.epoch, 'a claim of the same stream by the same node keeps its epoch')
    const next = await store.claimStream('one', 'b')
    same(next?.before, { node: store.node, stream: 'a' }, 'the next claim says whose it was')
    holds(next && next.epoch > first.epoch, 'each other claim has a higher epoch')
  },
}

const requests: Promises<SessionStore>['alone'] = {
  async 'rejects a second request with the id of a running request'(store) {
    await open(store, 'one')
    same(await kindOf(store, 'one', [1, 'a']), 'entered', 'a session can be entered with requests')
    same(
      await enter(store, 'one', { requests: ['new', 1] }),
      { kind: 'taken', request: 1, node: store.node },
      "enter gives 'taken' for a request that runs, with its id and the node",
    )
    same(await store.nodeOf('one', 1), store.node, 'nodeOf names the node that runs a request')
    same(
      await store.nodeOf('one', 'new'),
      undefined,
      "nothing is done of a visit that was 'taken': its other requests do not run",
    )
    store.leave('one', [1])
    await eventually(async () => (await store.nodeOf('one', 1)) === undefined)
    same(await kindOf(store, 'one', [1]), 'entered', 'a request that was left can run again')
    same(await kindOf(store, 'one', ['a']), 'taken', 'leave leaves the requests that it names, and no other')
  },
  async 'distinguishes numeric and string request ids'(store) {
    await open(store, 'one')
    same(await kindOf(store, 'one', [1]), 'entered', 'a request with the id 1 can run')
    same(await kindOf(store, 'one', ['1']), 'entered', "the id '1' is another than 1")
  },
  async 'accepts a request whose id is in use on a node that is taken over'(store) {
    await open(store, 'one')
    await enter(store, 'one', { requests: [1] })
    same(
      (await enter(store, 'one', { requests: [1], from: [store.node] })).kind,
      'entered',
      'enter takes a request that runs at a node of `from`',
    )
  },
  async 'separates the request ids of two sessions'(store) {
    await open(store, 'one')
    await open(store, 'two')
    same(await kindOf(store, 'one', [1]), 'entered', 'the request 1 of one session can run')
    same(await kindOf(store, 'two', [1]), 'entered', 'the request 1 of another session runs by itself')
  },
}

const ends: Promises<SessionStore>['alone'] = {
  async 'ends a session once'(store) {
    await open(store, 'one')
    await open(store, 'two')
    same(await store.end('one', 'ada'), [], 'end gives the other nodes that had a copy: none')
    same(await kindOf(store, 'one'), 'missing', 'a session that was ended cannot be entered')
    same(await store.end('one', 'ada'), undefined, 'end gives undefined for a session that was ended')
    same(await kindOf(store, 'two'), 'entered', 'another session goes on')
  },
  async 'does not end a session in use with onlyIdle'(store) {
    await open(store, 'one')
    await mark(store, [['one', 'ada', true]])
    same(
      await store.end('one', 'ada', true),
      undefined,
      'end with onlyIdle gives undefined for a session that is marked as in use',
    )
    await mark(store, [['one', 'ada', false]])
    await enter(store, 'one', { requests: [1] })
    same(
      await store.end('one', 'ada', true),
      undefined,
      'end with onlyIdle gives undefined for a session with a request that runs',
    )
    store.leave('one', [1])
    await eventually(async () => (await store.nodeOf('one', 1)) === undefined)
    same(await store.end('one', 'ada', true), [], 'end with onlyIdle ends a session that idles')
  },
  async 'expires an idle session and reports its remaining time'(store, expiry) {
    const bounds = { idleTimeout: expiry.ms }
    const inTime = expiry.start()
    await open(store, 'one', 'ada', bounds)
    await mark(store, [['one', 'ada', false]], bounds)
    const left = await inTime(store.timeLeft('one'))
    holds(left !== undefined && left > 0 && left <= expiry.ms, `${left} ms are left of ${expiry.ms}`)
    await expiry.wait(async () => (await store.timeLeft('one')) === undefined)
    same(
      await enter(store, 'one', {}, bounds),
      { kind: 'missing', ended: false },
      'a session that idled for idleTimeout is missing, and was not ended',
    )
  },
  async 'keeps a session that receives requests or is marked as in use'(store, expiry) {
    const bounds = { idleTimeout: expiry.ms }
    let inTime = expiry.start()
    for (const digest of ['asked', 'used', 'idle']) {
      await open(store, digest, 'ada', bounds)
      await mark(store, [[digest, 'ada', false]], bounds)
    }
    for (let round = 0; round < 6; round++) {
      const again = expiry.start()
      await inTime(enter(store, 'asked', { version: 1 }, bounds))
      await inTime(mark(store, [['used', 'ada', true]], bounds))
      inTime = again
      await pause(expiry.ms / 4)
    }
    same(
      [await inTime(kindOf(store, 'asked')), await inTime(kindOf(store, 'used')), await kindOf(store, 'idle')],
      ['entered', 'entered', 'missing'],
      'enter and a mark as in use keep a session, and nothing else does',
    )
  },
}

/** Of the slot `sessionStore`; `shared` as the store's own. */
export const sessionStoreContract = (settings: ContractSettings<SessionStore>): readonly Check[] =>
  checksOf(settings, {
    alone: { ...records, ...requests, ...ends, ...bounds, ...restores },
    together: { ...sharedRecords, ...sharedBounds },
  })
