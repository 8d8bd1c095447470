// How many sessions a store lets be, and what it takes back after a loss. For session-store-contract.ts.
import type { SessionStore } from '../sessions/session-store.ts'
import { holds, type Promises, pause, same } from './contract.ts'
import { BOUNDS, enter, kindOf, mark, open, recordIn, recordOf } from './session-steps.ts'

export const bounds: Promises<SessionStore>['alone'] = {
  async 'enforces maxPerOwner for each owner; an ended session frees its slot'(store) {
    const most = { maxPerOwner: 2 }
    same(
      [
        await open(store, 'a1', 'ada', most),
        await open(store, 'a2', 'ada', most),
        await open(store, 'a3', 'ada', most),
      ],
      [true, true, false],
      'create gives false past maxPerOwner',
    )
    same(await kindOf(store, 'a3'), 'missing', 'nothing is kept of a session that was refused')
    same(await open(store, 'b1', 'bob', most), true, 'another holder has his own number')
    await store.end('a1', 'ada')
    same(await open(store, 'a3', 'ada', most), true, 'a session that ended makes room')
  },
  async 'does not count expired sessions'(store, expiry) {
    const most = { maxPerOwner: 2, idleTimeout: expiry.ms }
    const inTime = expiry.start()
    for (const digest of ['a1', 'a2']) {
      await open(store, digest, 'ada', most)
      await mark(store, [[digest, 'ada', false]], most)
    }
    same(await inTime(open(store, 'a3', 'ada', most)), false, 'create gives false past maxPerOwner')
    await pause(expiry.ms * 1.5)
    const again = expiry.start()
    const opened = [
      await open(store, 'a3', 'ada', most),
      await open(store, 'a4', 'ada', most),
      await again(open(store, 'a5', 'ada', most)),
    ]
    same(opened, [true, true, false], 'sessions that have idled for too long make room, for as many')
  },
  async 'allows any number of sessions without a limit'(store) {
    for (let index = 0; index < 50; index++)
      same(await open(store, `a${index}`), true, 'without maxPerOwner a holder may have any number')
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
    same(await kindOf(store, 'b1'), 'entered', 'the holder who has fewest keeps his')
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

export const restores: Promises<SessionStore>['alone'] = {
  async 'restores a lost record with its running requests and claimed stream'(store) {
    const record = { ...recordOf(store.node), version: 7 }
    const held = { requests: [1], claim: { stream: 'a', epoch: 5 } }
    same(await store.restore('one', record, held, BOUNDS), true, 'restore gives true where the session was not ended')
    same(recordIn(await enter(store, 'one')), record, 'enter gives the record that was restored')
    same(await store.nodeOf('one', 1), store.node, 'requests that were held run again')
    const claim = await store.claimStream('one', 'b')
    same(claim?.before, { node: store.node, stream: 'a' }, 'the claim that was held is kept')
    holds(claim && claim.epoch > 5, 'a claim after a restored one has a higher epoch')
  },
  async 'expires a restored session that is not marked as in use'(store, expiry) {
    const held = { requests: [], claim: undefined }
    const inTime = expiry.start()
    await store.restore('one', recordOf(store.node), held, { ...BOUNDS, idleTimeout: expiry.ms })
    holds((await inTime(store.timeLeft('one'))) !== undefined, 'a session that was restored has time left')
    await expiry.wait(async () => (await store.timeLeft('one')) === undefined)
    same(await store.timeLeft('one'), undefined, 'a session that was restored, and is not marked as in use, idles')
  },
  async 'does not overwrite an existing record on restore'(store) {
    await open(store, 'one')
    await store.change('one', { logLevel: 'error' })
    same(
      await store.restore('one', recordOf(store.node), { requests: [], claim: undefined }, BOUNDS),
      true,
      'restore gives true where there is a record',
    )
    same(recordIn(await enter(store, 'one'))?.state.logLevel, 'error', 'restore leaves a record that is newer')
  },
}
