// What a shared session store promises to nodes that serve the same sessions. For session-store-contract.ts.
import type { SessionStore } from '../sessions/session-store.ts'
import { holds, type Promises, same } from './contract.ts'
import { BOUNDS, enter, kindOf, mark, open, recordIn, recordOf } from './session-steps.ts'

export const sharedRecords: Promises<SessionStore>['together'] = {
  async 'shares sessions between nodes and names the nodes with a copy on each change'(one, other) {
    holds(
      one.shared && other.shared && one.node !== other.node,
      'the stores of two nodes are shared, and each says its own node',
    )
    await open(one, 'one')
    same(
      recordIn(await enter(other, 'one')),
      recordOf(one.node),
      'a session that one node opened can be entered at the other',
    )
    const changed = await one.change('one', { logLevel: 'error' })
    holds(changed !== undefined && changed !== 'full', 'change gives the record that it changed')
    same(changed.nodes, [other.node], 'a change names the other nodes that have a copy')
    same(
      recordIn(await enter(other, 'one', { version: 1 }))?.state.logLevel,
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
      Array.from({ length: 20 }, (_, index) => kindOf(index % 2 ? one : other, 'one', [1])),
    )
    same(entered.filter(kind => kind === 'entered').length, 1, 'of many visits with one request, one enters')
  },
  async 'lets one node adopt a session whose node is gone'(one, other) {
    await open(one, 'one')
    same(await other.adopt('one', one.node), true, 'adopt gives true where the home still is `from`')
    same(await other.adopt('one', one.node), false, 'adopt gives false where the home is another by now')
    const record = recordIn(await enter(one, 'one', { version: 1 }))
    same([record?.home, record?.version], [other.node, 2], 'the record names the new home, one version on')
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
      await other.restore('one', recordOf(one.node), { requests: [], claim: undefined }, BOUNDS),
      false,
      'restore gives false for a session that was ended',
    )
  },
}

export const sharedBounds: Promises<SessionStore>['together'] = {
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
