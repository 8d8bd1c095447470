// The contract of event stores, and of shared ones between nodes.
import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import {
  type EventStore,
  type SharedStreams,
  StreamFenced,
  type StreamWriter,
} from '../../../core/sessions/event-store.ts'
import type { Contract } from '../../../core/testing/contract.ts'

const A: StreamWriter = { epoch: 1, facts: 'node A' }
const B: StreamWriter = { epoch: 2, facts: 'node B' }

async function write(
  store: EventStore,
  to: number,
  { session = 's', stream = 'a', writer = undefined as StreamWriter | undefined } = {},
) {
  for (let known = 0; known < to; known++) await store.append(session, stream, `m${known + 1}`, known, writer)
}

async function read(store: EventStore, seq: number, { session = 's', stream = 'a' } = {}) {
  return (await store.after(session, stream, seq))?.map(event => `${event.seq}:${event.message}`)
}

function sharedOf({ shared }: EventStore): SharedStreams {
  if (!shared) throw new Error('the store has no `shared`, and is said to be shared')
  return shared
}

const isFenced = (act: unknown) => rejects(Promise.resolve(act), StreamFenced)

const kept: Contract<EventStore>['oneNode'] = {
  async 'numbers stream messages from 1 and replays those after a given number in order'(store) {
    equal(await store.append('s', 'a', 'm1', 0), 1)
    equal(await store.append('s', 'a', 'm2', 1), 2)
    equal(await store.append('s', 'a', 'm3', 2), 3)
    deepEqual(await read(store, 0), ['1:m1', '2:m2', '3:m3'])
    deepEqual(await read(store, 2), ['3:m3'])
    deepEqual(await read(store, 3), [])
  },
  async 'limits a replay by bytes (at least one message, none for 0) and reports whether it is complete'(store) {
    const messages = ['12345', 'ü234', 'x'.repeat(100), '1', '2', '3']
    for (const [known, message] of messages.entries()) await store.append('s', 'a', message, known)
    const next = async (seq: number, max: number) =>
      (await store.after('s', 'a', seq, max))?.map(event => `${event.seq}:${event.message.slice(0, 5)}`)
    deepEqual(await next(0, 10), ['1:12345', '2:ü234'])
    deepEqual(await next(0, 9), ['1:12345'])
    deepEqual(await next(0, 1), ['1:12345'])
    deepEqual(await next(2, 10), ['3:xxxxx'])
    deepEqual(await next(3, 2), ['4:1', '5:2'])
    deepEqual(await next(5, 1_000), ['6:3'])
    deepEqual(await next(6, 1_000), [])
    for (const seq of [0, 3, 6]) deepEqual(await next(seq, 0), [])
    for (const max of [0, 10]) equal(await next(7, max), undefined)
    equal(await store.after('s', 'b', 0, 0), undefined)
  },
  async 'replays a long stream in pages without a gap, to any node'(store) {
    const messages = Array.from({ length: 100 }, (_, index) => `${index}`.padStart(1 + (index % 50), '.'))
    for (const [known, message] of messages.entries()) await store.append('s', 'a', message, known)
    const found: string[] = []
    for (let part = await store.after('s', 'a', 0, 200); part?.length; ) {
      ok(part.length === 1 || part.reduce((sum, { message }) => sum + message.length, 0) <= 200)
      found.push(...part.map(({ message }) => message))
      part = await store.after('s', 'a', part.at(-1)?.seq ?? 0, 200)
    }
    deepEqual(found, messages)
  },
  async 'returns nothing for an unknown stream or an unassigned message number'(store) {
    await write(store, 1)
    equal(await read(store, 0, { stream: 'b' }), undefined)
    equal(await read(store, 0, { session: 't' }), undefined)
    equal(await read(store, 2), undefined)
  },
  async 'stores any text unchanged'(store) {
    const messages = ['', '{"text":"naïve 🦆\\r\\n\u2028"}', 'x'.repeat(200_000), '\u0000']
    for (const [known, message] of messages.entries()) await store.append('s', 'a', message, known)
    deepEqual(
      (await store.after('s', 'a', 0))?.map(({ message }) => message),
      messages,
    )
  },
  async 'separates streams of the same name in two sessions'(store) {
    await store.append('s', 'a', 'mine', 0)
    await store.append('t', 'a', 'theirs', 0)
    deepEqual(await read(store, 0), ['1:mine'])
    deepEqual(await read(store, 0, { session: 't' }), ['1:theirs'])
  },
  async 'continues a lost stream after the last number its writer knows and reports the gap before it'(store) {
    equal(await store.append('s', 'a', 'm6', 5), 6)
    deepEqual(await read(store, 5), ['6:m6'])
    equal(await read(store, 4), undefined)
    for (const max of [0, 10]) equal(await store.after('s', 'a', 4, max), undefined)
    deepEqual(await store.after('s', 'a', 5, 0), [])
  },
  async 'deletes one stream, or all streams of a session, and no other'(store) {
    for (const stream of ['a', 'b', 'c']) await write(store, 1, { stream })
    await write(store, 1, { session: 't' })
    await store.drop('s', 'a')
    equal(await read(store, 0), undefined)
    deepEqual(await read(store, 0, { stream: 'b' }), ['1:m1'])
    await store.drop('s')
    equal(await read(store, 0, { stream: 'b' }), undefined)
    equal(await read(store, 0, { stream: 'c' }), undefined)
    deepEqual(await read(store, 0, { session: 't' }), ['1:m1'])
  },
  async 'ignores the deletion of an unknown stream'(store) {
    await store.drop('s')
    await store.drop('s', 'a')
  },
}

const passed: Contract<EventStore>['twoNodes'] = {
  async 'stores a retried append once'(store, other) {
    await write(store, 3, { writer: A })
    equal(await store.append('s', 'a', 'm3', 2, A), 3)
    equal(await store.append('s', 'a', 'm4', 3, A), 4)
    deepEqual(await read(other, 0), ['1:m1', '2:m2', '3:m3', '4:m4'])
  },
  async 'reports the writer of a stream before its first message'(store, other) {
    equal(await sharedOf(other).state('s', 'a'), undefined)
    await sharedOf(store).open('s', 'a', { ...A, bus: '7-0' })
    deepEqual(await sharedOf(other).state('s', 'a'), { facts: A.facts, last: 0, finished: false, epoch: 1, bus: '7-0' })
    deepEqual(await read(other, 0), [])
    await store.append('s', 'a', 'm1', 0, { ...A, bus: '9-0' })
    await store.append('s', 'a', 'm2', 1, { ...A, finished: true })
    const state = await sharedOf(other).state('s', 'a')
    deepEqual(state, { facts: A.facts, last: 2, finished: true, epoch: 1, bus: '9-0' })
  },
  async 'restores a lost stream with `known` as its last number and reports the gap before it'(store) {
    await sharedOf(store).open('s', 'a', A, 5)
    await sharedOf(store).open('s', 'a', A, 5)
    equal((await sharedOf(store).state('s', 'a'))?.last, 5)
    equal(await read(store, 4), undefined)
    deepEqual(await read(store, 5), [])
  },
  async 'rejects appends of a writer after another writer claimed the stream'(one, other) {
    await sharedOf(one).open('s', 'a', A)
    await write(one, 1, { writer: A })
    const claimed = await sharedOf(other).claim('s', 'a', B)
    deepEqual(claimed, { facts: A.facts, last: 1, finished: false, epoch: 2, bus: '' })
    await isFenced(one.append('s', 'a', 'late', 1, A))
    await isFenced(sharedOf(one).open('s', 'a', A))
    await isFenced(sharedOf(one).finish('s', 'a', A))
    await isFenced(sharedOf(one).claim('s', 'a', A))
    await other.append('s', 'a', 'm2', 1, B)
    await sharedOf(other).finish('s', 'a', B)
    deepEqual(await read(one, 0), ['1:m1', '2:m2'])
    const state = await sharedOf(one).state('s', 'a')
    deepEqual([state?.facts, state?.last, state?.finished], [B.facts, 2, true])
  },
  async 'returns the last number of the previous writer from a claim during its appends'(one, other) {
    for (let round = 0; round < 20; round++) {
      const stream = `s${round}`
      await sharedOf(one).open('s', stream, A)
      let last = 0
      const append = async () => {
        for (;;) last = await one.append('s', stream, `m${last + 1}`, last, A)
      }
      const writing = isFenced(append())
      await one.append('s', `wait${round}`, 'm1', 0)
      const claimed = await sharedOf(other).claim('s', stream, B)
      await writing
      equal(claimed?.last, last)
      equal(await other.append('s', stream, 'of B', last, B), last + 1)
    }
  },
  async 'accepts a repeated claim and rejects another claim with the same epoch'(one, other) {
    await sharedOf(one).open('s', 'a', A)
    await sharedOf(other).claim('s', 'a', B)
    equal((await sharedOf(other).claim('s', 'a', B))?.facts, A.facts)
    await isFenced(sharedOf(one).claim('s', 'a', { ...B, facts: 'node C' }))
  },
  async 'grants one of many concurrent claims with the same epoch'(one, other) {
    await sharedOf(one).open('s', 'a', A)
    const claims = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) =>
        sharedOf(index % 2 ? one : other).claim('s', 'a', { epoch: 2, facts: `node ${index}` }),
      ),
    )
    equal(claims.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const claim of claims) if (claim.status === 'rejected') ok(StreamFenced.is(claim.reason))
  },
  async 'does not create a stream by claiming or ending it'(one, other) {
    equal(await sharedOf(one).claim('s', 'a', B), undefined)
    await sharedOf(one).finish('s', 'a', B)
    equal(await sharedOf(other).state('s', 'a'), undefined)
    equal(await read(other, 0), undefined)
  },
}

export const eventStoreChecks: Contract<EventStore> = { oneNode: kept, twoNodes: passed }
