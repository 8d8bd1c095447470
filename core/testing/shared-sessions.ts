// What a shared session store promises to nodes that serve the same sessions. For session-store-contract.ts.
import { deepEqual, equal, ok } from 'node:assert/strict'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Promises } from './contract.ts'
import { BOUNDS, enter, kindOf, mark, open, recordIn, recordOf } from './session-steps.ts'

export const sharedRecords: Promises<SessionStore>['together'] = {
  async 'what one opens the other can enter; a change names those who have a copy'(one, other) {
    ok(one.shared && other.shared && one.node !== other.node)
    await open(one, 'one')
    deepEqual(recordIn(await enter(other, 'one')), recordOf(one.node))
    const changed = await one.change('one', { logLevel: 'error' })
    ok(changed !== undefined && changed !== 'full')
    deepEqual(changed.nodes, [other.node])
    equal(recordIn(await enter(other, 'one', { version: 1 }))?.state.logLevel, 'error')
  },
  async 'a request runs at one of them'(one, other) {
    await open(one, 'one')
    await enter(one, 'one', { requests: [1] })
    deepEqual(await enter(other, 'one', { requests: [1] }), { kind: 'taken', request: 1, node: one.node })
    equal(await other.nodeOf('one', 1), one.node)
    equal((await enter(other, 'one', { requests: [1], from: [one.node] })).kind, 'entered')
    equal(await one.nodeOf('one', 1), other.node)
  },
  async 'of many with one id, at both, one begins'(one, other) {
    await open(one, 'one')
    const entered = await Promise.all(
      Array.from({ length: 20 }, (_, index) => kindOf(index % 2 ? one : other, 'one', [1])),
    )
    equal(entered.filter(kind => kind === 'entered').length, 1)
  },
  async 'a session whose home is gone is adopted once'(one, other) {
    await open(one, 'one')
    equal(await other.adopt('one', one.node), true)
    equal(await other.adopt('one', one.node), false)
    const record = recordIn(await enter(one, 'one', { version: 1 }))
    deepEqual([record?.home, record?.version], [other.node, 2])
  },
  async 'the stream for what belongs to no call passes from one to the other'(one, other) {
    await open(one, 'one')
    const first = await one.claimStream('one', 'a')
    const next = await other.claimStream('one', 'a')
    deepEqual(next?.before, { node: one.node, stream: 'a' })
    ok(first && next && next.epoch > first.epoch)
  },
  async 'a session that was ended is gone for both, and is not restored'(one, other) {
    await open(one, 'one')
    await enter(other, 'one')
    deepEqual(await one.end('one', 'ada'), [other.node])
    deepEqual(await enter(other, 'one'), { kind: 'missing', ended: true })
    equal(await other.restore('one', recordOf(one.node), { requests: [], claim: undefined }, BOUNDS), false)
  },
}

export const sharedBounds: Promises<SessionStore>['together'] = {
  async 'a holder has so many sessions at both together, opened at once'(one, other) {
    const opened = await Promise.all(
      Array.from({ length: 20 }, (_, index) => open(index % 2 ? one : other, `a${index}`, 'ada', { maxPerOwner: 5 })),
    )
    equal(opened.filter(Boolean).length, 5)
  },
  async 'those that idle are counted together, and any of them may be told who goes'(one, other) {
    await open(one, 'a1')
    await open(one, 'a2')
    await open(other, 'b1', 'bob')
    deepEqual(
      await mark(
        one,
        [
          ['a1', 'ada', false],
          ['a2', 'ada', false],
        ],
        { maxIdle: 2 },
      ),
      [],
    )
    const [victim] = await mark(other, [['b1', 'bob', false]], { maxIdle: 2 })
    equal(victim?.digest, 'a1')
    deepEqual(await other.end('a1', victim?.holder, true), [one.node])
  },
}
