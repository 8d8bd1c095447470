// The contract of session stores.
import { MAX_URI, MAX_WATCHED, MAX_WATCHED_BYTES, WATCH_COST } from '../../../core/mcp/client-limits.ts'
import type { LogLevel } from '../../../core/mcp/wire/protocol.ts'
import { LATEST_HANDSHAKE } from '../../../core/mcp/wire/revisions.ts'
import type { SessionStore } from '../../../core/sessions/session-store.ts'
import { FIRST_STATE } from '../../../core/sessions/session-store.ts'
import { type Contract, eventually, pause } from '../../../core/testing/contract.ts'
import { holds, same } from './assertions.ts'
import { BOUNDS, createRecord, enter, mark, open, readKind, readRecord } from './session-steps.ts'

const records: Contract<SessionStore>['oneNode'] = {
  async 'stores the initial session record and returns it to a node without a copy'(store) {
    const version = await open(store, 'one')
    same(version > 0, true, 'create keeps a session')
    same(
      readRecord(await enter(store, 'one')),
      { ...createRecord(store.node), version },
      'enter gives the record to a node that has no copy (version 0)',
    )
    same(
      await enter(store, 'one', { version }),
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
    const first = await open(store, 'one')
    const client = { info: { name: 'client', version: '1' }, capabilities: { sampling: {} } }
    const changes = [
      { revision: LATEST_HANDSHAKE, client },
      { logLevel: 'error' as const },
      { watch: 'note://a' },
      { watch: 'note://b' },
      { unwatch: 'note://a' },
    ]
    let version = first
    for (const change of changes) {
      const changed = await store.change('one', change)
      holds(changed !== undefined && changed !== 'full', 'change gives the record that it changed')
      same(changed.record.version, ++version, 'each change is one version')
      same(changed.nodes, [], 'a change names no other node where none has a copy')
    }
    const record = readRecord(await enter(store, 'one', { version: version - 1 }))
    same(
      record?.state,
      { revision: LATEST_HANDSHAKE, client, logLevel: 'error', watched: ['note://b'] },
      'the record has all changes in it, one after the other',
    )
    same(record?.version, first + 5, 'five changes make five versions')
    same(
      await enter(store, 'one', { version: first + 5 }),
      { kind: 'entered', record: undefined },
      'enter gives no record to a node whose copy is of the last version',
    )
  },
  async 'limits the bytes of resource subscriptions per session'(store) {
    const long = (index: number) => `note://${index}/`.padEnd(MAX_URI, 'x')
    const max = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    const watched = Array.from({ length: max - 1 }, (_, index) => long(index))
    await store.create('one', { ...createRecord(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    holds(
      (await store.change('one', { watch: long(max) })) !== 'full',
      'a session may watch resources up to MAX_WATCHED_BYTES',
    )
    same(await store.change('one', { watch: long(max + 1) }), 'full', "change gives 'full' past MAX_WATCHED_BYTES")
    holds(
      (await store.change('one', { watch: long(max) })) !== 'full',
      'a resource that is watched already is no more of them',
    )
    await store.change('one', { unwatch: long(max) })
    holds((await store.change('one', { watch: long(max + 1) })) !== 'full', 'what is not watched any more makes room')
  },

  async 'limits the number of resource subscriptions per session'(store) {
    const watched = Array.from({ length: MAX_WATCHED }, (_, index) => `note://${index}`)
    await store.create('one', { ...createRecord(store.node), state: { ...FIRST_STATE, watched } }, BOUNDS)
    same(await store.change('one', { watch: 'note://more' }), 'full', "change gives 'full' past MAX_WATCHED resources")
    holds(
      (await store.change('one', { watch: 'note://7' })) !== 'full',
      'a resource that is watched already is no more of them',
    )
    await store.change('one', { unwatch: 'note://7' })
    holds((await store.change('one', { watch: 'note://more' })) !== 'full', 'what is not watched any more makes room')
    const now = readRecord(await enter(store, 'one'))?.state.watched ?? []
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

const requests: Contract<SessionStore>['oneNode'] = {
  async 'rejects a second request with the id of a running request'(store) {
    await open(store, 'one')
    same(await readKind(store, 'one', [1, 'a']), 'entered', 'a session can be entered with requests')
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
    same(await readKind(store, 'one', [1]), 'entered', 'a request that was left can run again')
    same(await readKind(store, 'one', ['a']), 'taken', 'leave leaves the requests that it names, and no other')
  },
  async 'distinguishes numeric and string request ids'(store) {
    await open(store, 'one')
    same(await readKind(store, 'one', [1]), 'entered', 'a request with the id 1 can run')
    same(await readKind(store, 'one', ['1']), 'entered', "the id '1' is another than 1")
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
    same(await readKind(store, 'one', [1]), 'entered', 'the request 1 of one session can run')
    same(await readKind(store, 'two', [1]), 'entered', 'the request 1 of another session runs by itself')
  },
}

const ends: Contract<SessionStore>['oneNode'] = {
  async 'ends a session once'(store) {
    await open(store, 'one')
    await open(store, 'two')
    same(await store.end('one', 'ada'), [], 'end gives the other nodes that had a copy: none')
    same(await readKind(store, 'one'), 'missing', 'a session that was ended cannot be entered')
    same(await store.end('one', 'ada'), undefined, 'end gives undefined for a session that was ended')
    same(await readKind(store, 'two'), 'entered', 'another session continues')
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
      [await inTime(readKind(store, 'asked')), await inTime(readKind(store, 'used')), await readKind(store, 'idle')],
      ['entered', 'entered', 'missing'],
      'enter and a mark as in use keep a session, and nothing else does',
    )
  },
}

const bounds: Contract<SessionStore>['oneNode'] = {
  async 'enforces maxPerOwner for each owner; an ended session frees its slot'(store) {
    const max = { maxPerOwner: 2 }
    same(
      [
        (await open(store, 'a1', 'ada', max)) > 0,
        (await open(store, 'a2', 'ada', max)) > 0,
        (await open(store, 'a3', 'ada', max)) > 0,
      ],
      [true, true, false],
      'create gives undefined past maxPerOwner',
    )
    same(await readKind(store, 'a3'), 'missing', 'nothing is kept of a session that was refused')
    holds(await open(store, 'b1', 'bob', max), 'another holder has his own number')
    await store.end('a1', 'ada')
    holds(await open(store, 'a3', 'ada', max), 'a session that ended makes room')
  },
  async 'does not count expired sessions'(store, expiry) {
    const max = { maxPerOwner: 2, idleTimeout: expiry.ms }
    const inTime = expiry.start()
    for (const digest of ['a1', 'a2']) {
      await open(store, digest, 'ada', max)
      await mark(store, [[digest, 'ada', false]], max)
    }
    same(await inTime(open(store, 'a3', 'ada', max)), 0, 'create gives undefined past maxPerOwner')
    await pause(expiry.ms * 1.5)
    const again = expiry.start()
    const opened = [
      await open(store, 'a3', 'ada', max),
      await open(store, 'a4', 'ada', max),
      await again(open(store, 'a5', 'ada', max)),
    ]
    same(
      opened.map(version => version > 0),
      [true, true, false],
      'sessions that have idled for too long make room, for as many',
    )
  },
  async 'allows any number of sessions without a limit'(store) {
    for (let index = 0; index < 50; index++)
      holds(await open(store, `a${index}`), 'without maxPerOwner a holder may have any number')
  },
  async 'evicts the longest idle sessions of the owner with the most, each once'(store) {
    const idle = [
      ['b1', 'bob', false],
      ['a1', 'ada', false],
      ['a2', 'ada', false],
      ['a3', 'ada', false],
    ] as const
    for (const [digest, holder] of idle) await open(store, digest, holder)
    const victims = await mark(store, idle, { maxIdle: 2 })
    same(
      victims.map(({ digest }) => digest),
      ['a1', 'a2'],
      'mark gives the longest idle sessions of the holder who has most, until maxIdle are left',
    )
    for (const { digest, holder } of victims)
      same(await store.end(digest, holder, true), [], 'a victim that idles is ended by end with onlyIdle')
    same(
      await mark(store, [['a3', 'ada', false]], { maxIdle: 2 }),
      [],
      'mark gives none where no more than maxIdle idle',
    )
    same(await readKind(store, 'b1'), 'entered', 'the holder who has fewest keeps his')
  },
  async 'does not evict a session in use'(store) {
    for (const digest of ['a1', 'a2', 'a3']) await open(store, digest)
    const uses = [
      ['a3', 'ada', false],
      ['a1', 'ada', true],
      ['a2', 'ada', true],
    ] as const
    same(await mark(store, uses, { maxIdle: 1 }), [], 'mark gives none that is in use')
    const victims = await mark(store, [['a1', 'ada', false]], { maxIdle: 1 })
    same(
      victims.map(({ digest }) => digest),
      ['a3'],
      'of those that idle mark gives the one that did longest',
    )
  },
}

const restores: Contract<SessionStore>['oneNode'] = {
  async 'restores a lost record with its running requests and claimed stream'(store) {
    const record = createRecord(store.node)
    const held = { requests: [1], claim: { stream: 'a', epoch: 5 } }
    const first = await store.restore('one', record, held, BOUNDS)
    same(first && { ...first.record, version: 1 }, record, 'restore returns the record')
    const restored = readRecord(await enter(store, 'one'))
    same({ ...restored, version: 1 }, record, 'enter gives the record that was restored')
    same(await store.nodeOf('one', 1), store.node, 'requests that were held run again')
    const claim = await store.claimStream('one', 'b')
    same(claim?.before, { node: store.node, stream: 'a' }, 'the claim that was held is kept')
    holds(claim && claim.epoch > 5, 'a claim after a restored one has a higher epoch')
  },
  async 'expires a restored session that is not marked as in use'(store, expiry) {
    const held = { requests: [], claim: undefined }
    const inTime = expiry.start()
    await store.restore('one', createRecord(store.node), held, { ...BOUNDS, idleTimeout: expiry.ms })
    holds((await inTime(store.timeLeft('one'))) !== undefined, 'a session that was restored has time left')
    await expiry.wait(async () => (await store.timeLeft('one')) === undefined)
    same(await store.timeLeft('one'), undefined, 'a session that was restored, and is not marked as in use, idles')
  },
  async 'does not overwrite an existing record on restore'(store) {
    await open(store, 'one')
    await store.change('one', { logLevel: 'error' })
    const found = await store.restore('one', createRecord(store.node), { requests: [], claim: undefined }, BOUNDS)
    same(found?.record.state.logLevel, 'error', 'restore returns the existing record')
    same(readRecord(await enter(store, 'one'))?.state.logLevel, 'error', 'restore does not change an existing record')
  },
}

const sharedRecords: Contract<SessionStore>['twoNodes'] = {
  async 'shares sessions between nodes and names the nodes with a copy on each change'(one, other) {
    holds(
      one.shared && other.shared && one.node !== other.node,
      'the stores of two nodes are shared, and each says its own node',
    )
    const version = await open(one, 'one')
    same(
      readRecord(await enter(other, 'one')),
      { ...createRecord(one.node), version },
      'a session that one node opened can be entered at the other',
    )
    const changed = await one.change('one', { logLevel: 'error' })
    holds(changed !== undefined && changed !== 'full', 'change gives the record that it changed')
    same(changed.nodes, [other.node], 'a change names the other nodes that have a copy')
    same(
      readRecord(await enter(other, 'one', { version }))?.state.logLevel,
      'error',
      'a node whose copy is older gets the record',
    )
  },
  async 'runs a request on one node only'(one, other) {
    await open(one, 'one')
    await enter(one, 'one', { requests: [1] })
    same(
      await enter(other, 'one', { requests: [1] }),
      { kind: 'taken', request: 1, node: one.node },
      "enter gives 'taken' for a request that runs at the other node",
    )
    same(await other.nodeOf('one', 1), one.node, 'nodeOf names the node that runs a request')
    same(
      (await enter(other, 'one', { requests: [1], from: [one.node] })).kind,
      'entered',
      'enter takes a request whose node is in `from`',
    )
    same(await one.nodeOf('one', 1), other.node, 'the request runs at the node that took it')
  },
  async 'starts one of many concurrent requests with the same id'(one, other) {
    await open(one, 'one')
    const entered = await Promise.all(
      Array.from({ length: 20 }, (_, index) => readKind(index % 2 ? one : other, 'one', [1])),
    )
    same(entered.filter(kind => kind === 'entered').length, 1, 'of many visits with one request, one enters')
  },
  async 'lets one node adopt a session whose node is gone'(one, other) {
    const version = await open(one, 'one')
    same(await other.adopt('one', one.node), true, 'adopt gives true where the home still is `from`')
    same(await other.adopt('one', one.node), false, 'adopt gives false where the home is another by now')
    const record = readRecord(await enter(one, 'one', { version }))
    same([record?.home, record?.version], [other.node, version + 1], 'the record names the new home, one version on')
  },
  async 'moves the general stream from one node to the other'(one, other) {
    await open(one, 'one')
    const first = await one.claimStream('one', 'a')
    const next = await other.claimStream('one', 'a')
    same(
      next?.before,
      { node: one.node, stream: 'a' },
      'a claim of the other node says whose it was, be the stream of one name',
    )
    holds(first && next && next.epoch > first.epoch, 'each claim of another node has a higher epoch')
  },
  async 'ends a session on both nodes and does not restore it'(one, other) {
    await open(one, 'one')
    await enter(other, 'one')
    same(await one.end('one', 'ada'), [other.node], 'end names the other nodes that had a copy')
    same(
      await enter(other, 'one'),
      { kind: 'missing', ended: true },
      'enter says of a session that was ended that it was',
    )
    same(
      await other.restore('one', createRecord(one.node), { requests: [], claim: undefined }, BOUNDS),
      undefined,
      'restore returns undefined for a session that was ended',
    )
  },
  async 'restores the newest copy, and the watched resources of every copy'(one, other) {
    const held = { requests: [], claim: undefined }
    const copy = (version: number, logLevel: LogLevel, watched: readonly string[]) => {
      const record = createRecord(one.node)
      return { ...record, version, state: { ...record.state, logLevel, watched } }
    }
    const older = await other.restore('one', copy(100, 'error', ['page://a']), held, BOUNDS)
    same(older?.nodes, [], 'the first copy has no changes for other nodes')
    const newer = await one.restore('one', copy(101, 'debug', ['page://b']), held, BOUNDS)
    same(newer?.nodes, [other.node], 'a newer copy names the nodes to notify')
    same(newer?.record.state.logLevel, 'debug', 'a newer copy replaces settings')
    same([...(newer?.record.state.watched ?? [])].sort(), ['page://a', 'page://b'], 'all watched resources are kept')
    const oldest = await one.restore('one', copy(99, 'info', []), held, BOUNDS)
    same(oldest, { record: newer?.record, nodes: [] }, 'an older copy changes nothing')
    await one.change('one', { logLevel: 'info' })
    const again = await other.restore(
      'one',
      { ...copy(0, 'error', []), version: newer?.record.version ?? 0 },
      held,
      BOUNDS,
    )
    same(again?.record.state.logLevel, 'info', 'a copy of the restored record changes nothing')
  },
}

const sharedBounds: Contract<SessionStore>['twoNodes'] = {
  async 'enforces maxPerOwner across nodes for sessions opened concurrently'(one, other) {
    const opened = await Promise.all(
      Array.from({ length: 20 }, (_, index) => open(index % 2 ? one : other, `a${index}`, 'ada', { maxPerOwner: 5 })),
    )
    same(opened.filter(Boolean).length, 5, 'maxPerOwner counts the sessions of a holder at all nodes')
  },
  async 'counts idle sessions across nodes and evicts from any node'(one, other) {
    await open(one, 'a1')
    await open(one, 'a2')
    await open(other, 'b1', 'bob')
    same(
      await mark(
        one,
        [
          ['a1', 'ada', false],
          ['a2', 'ada', false],
        ],
        { maxIdle: 2 },
      ),
      [],
      'mark gives none where no more than maxIdle idle at all nodes',
    )
    const [victim] = await mark(other, [['b1', 'bob', false]], { maxIdle: 2 })
    same(victim?.digest, 'a1', 'mark gives the longest idle session of the holder who has most, at whatever node')
    same(await other.end('a1', victim?.holder, true), [one.node], 'any node can end a victim')
  },
}

export const sessionStoreChecks: Contract<SessionStore> = {
  oneNode: { ...records, ...requests, ...ends, ...bounds, ...restores },
  twoNodes: { ...sharedRecords, ...sharedBounds },
}
