// Checks of task stores for runs and size limits.

import { type Contract, pause } from '../../../core/testing/contract.ts'
import type { TaskLimits, TaskStore } from '../../../plugins/families/task-store/index.ts'
import { SMALL_OUTCOME } from '../../../plugins/families/task-store/task-store.ts'
import { holds, same } from './assertions.ts'
import { begin, create, MINUTE, newTask, offer, read, takenFrom, WIDE } from './task-steps.ts'

const turns: Contract<TaskStore>['oneNode'] = {
  async 'gives a task to one claim only'(store) {
    const id = await create(store, { body: 'what to do' })
    const taken = await store.claim([offer()], MINUTE)
    same([taken?.id, taken?.body], [id, 'what to do'], 'claim gives the whole task')
    same([taken?.state, taken?.runs], ['running', 1], 'it runs from then on, for the first time')
    holds((taken?.fence ?? 0) > 0, 'it has a fence')
    same(await store.get(id), taken, 'get gives the same')
    same(await takenFrom(store), undefined, 'what runs is claimed by nobody')
  },
  async 'claims from the first offered queue that has a task'(store) {
    const [first, second] = [await create(store, { queue: 'first' }), await create(store, { queue: 'second' })]
    await create(store, { queue: 'third' })
    const offers = ['none', 'second', 'first'].map(queue => offer({ queue }))
    same(await takenFrom(store, ...offers), second, 'claim takes from the first queue that has a task')
    same(await takenFrom(store, ...offers), first, 'then from the next')
    same(await takenFrom(store, ...offers), undefined, 'what is in a queue that is not offered stays there')
  },
  async 'alternates between owners, first in first out for each owner'(store) {
    const created: Record<string, string> = {}
    for (const name of ['ann 1', 'ann 2', 'ann 3', 'bob 1', 'bob 2', 'eve 1']) {
      created[await create(store, { holder: name.slice(0, 3) })] = name
    }
    const order: Array<string | undefined> = []
    for (let index = 0; index < 6; index++) order.push(created[(await takenFrom(store)) ?? ''])
    same(order, ['ann 1', 'bob 1', 'eve 1', 'ann 2', 'bob 2', 'ann 3'], 'claim takes from the holders by turns')
  },
  async 'enforces the concurrency limits per queue and per owner'(store) {
    for (const holder of ['ann', 'ann', 'ann', 'bob', 'bob']) await create(store, { holder })
    const narrow = offer({ running: 3, runningPerHolder: 2 })
    const taken: Array<string | undefined> = []
    for (let index = 0; index < 4; index++) taken.push(await takenFrom(store, narrow))
    same(
      taken.map(id => id !== undefined),
      [true, true, true, false],
      'no more run than `running`',
    )
    const records = await Promise.all(taken.slice(0, 3).map(id => read(store, id ?? '')))
    const [first] = records.filter(({ holder }) => holder === 'bob')
    same(records.filter(({ holder }) => holder === 'ann').length, 2, 'holders take turns')
    const alone = offer({ runningPerHolder: 2 })
    same((await store.claim([alone], MINUTE))?.holder, 'bob', 'a holder that has as many as it may waits')
    same(await takenFrom(store, alone), undefined, 'no more of a holder run than `runningPerHolder`')
    await store.end(
      records.find(({ holder }) => holder === 'ann') ?? { id: '', fence: 0 },
      { state: 'completed' },
      MINUTE,
    )
    same((await store.claim([alone], MINUTE))?.holder, 'ann', 'a place that is free again is taken')
    await store.cancel(first?.id ?? '')
    same(await takenFrom(store, alone), undefined, 'nothing waits any more')
  },
  async 'frees the slot of a cancelled or returned run'(store) {
    const one = offer({ running: 1, runningPerHolder: 1 })
    const [first, second] = [await create(store), await create(store)]
    same(await takenFrom(store, one), first, 'the first is taken')
    same(await takenFrom(store, one), undefined, 'one runs at a time')
    await store.cancel(first)
    const taken = await store.claim([one], MINUTE)
    same(taken?.id, second, 'after a cancellation the next runs')
    same(await store.release({ id: second, fence: taken?.fence ?? 0 }), true, 'release gives a task back')
    same((await read(store, second)).state, 'queued', 'it waits again')
    same(await takenFrom(store, one), second, 'what was given back is taken again')
  },
  async 'puts a returned task before the other tasks of its owner'(store) {
    const [first, second] = [await create(store), await create(store)]
    const taken = await store.claim([offer()], MINUTE)
    await store.release({ id: first, fence: taken?.fence ?? 0 })
    const again = await store.claim([offer()], MINUTE)
    same([again?.id, again?.runs], [first, 2], 'what was given back comes first, and its runs are counted')
    holds((again?.fence ?? 0) > (taken?.fence ?? 0), 'every claim has a larger fence')
    same(await takenFrom(store), second, 'the others follow')
  },
}

const leases: Contract<TaskStore>['oneNode'] = {
  async 'gives a task with an expired lease to one other claim'(store, expiry) {
    const inTime = expiry.start()
    const lost = await begin(store, {}, expiry.ms)
    const kept = await begin(store, { queue: 'other' })
    same(await inTime(store.claimLapsed(MINUTE)), undefined, 'a lease that lasts is given to nobody')
    let found: Awaited<ReturnType<TaskStore['claimLapsed']>>
    await expiry.wait(async () => {
      found ??= await store.claimLapsed(MINUTE)
      return found !== undefined
    })
    same(
      [found?.id, found?.state, found?.runs],
      [lost.id, 'running', 1],
      'one that lapsed is taken, and it is the same run',
    )
    holds((found?.fence ?? 0) > lost.fence, 'with a larger fence')
    same(await store.claimLapsed(MINUTE), undefined, 'it is given to one alone')
    for (const [name, done] of Object.entries({
      renew: (await store.renew([lost], MINUTE))[0] ?? false,
      note: await store.note(lost, 'x'),
      ask: await store.addRequest(lost, { key: 'k', text: 'x' }),
      release: await store.release(lost),
      end: await store.end(lost, { state: 'completed' }, MINUTE),
    }))
      same(done, false, `${name} does nothing for a fence that is not the last`)
    const record = await read(store, lost.id)
    same([record.state, record.note, record.requests], ['running', undefined, []], 'nothing of it was written')
    same((await store.renew([kept], MINUTE)).length, 1, 'the other lease lasts')
  },
  async 'renews a lease and returns the task version'(store, expiry) {
    const { id, fence, version } = await begin(store, {}, expiry.ms)
    for (let index = 0; index < 4; index++) {
      const inTime = expiry.start()
      const renewed = await store.renew([{ id, fence }], expiry.ms)
      same(renewed, [version], 'renew gives the version, which it does not change')
      await pause(expiry.ms / 2)
      same(await inTime(store.claimLapsed(MINUTE)), undefined, 'a lease that is renewed does not lapse')
    }
    await store.addRequest({ id, fence }, { key: 'k', text: 'x' })
    await store.addResponses(id, { k: 'y' })
    const [now] = await store.renew([{ id, fence }], MINUTE)
    holds((now ?? 0) > version, 'the version of a task that changed is larger')
    same(now, (await read(store, id)).version, 'it is the one that get gives')
  },
  async 'renews an expired lease if no other claim took the task'(store, { ms }) {
    const { id, fence } = await begin(store, {}, ms)
    await pause(ms * 1.5)
    same(typeof (await store.renew([{ id, fence }], MINUTE))[0], 'number', 'a lease that nobody took is renewed')
    same(await store.claimLapsed(MINUTE), undefined, 'and lasts again')
    same(await store.end({ id, fence }, { state: 'completed' }, MINUTE), true, 'its run ends as it would have')
  },
  async 'allows a run with an expired lease to return its task'(store) {
    await begin(store, {}, 0)
    const found = await store.claimLapsed(MINUTE)
    holds(found, 'a lease of 0 ms has lapsed')
    same(await takenFrom(store), undefined, 'a claim takes what is queued alone')
    await store.release(found)
    same((await store.claim([offer()], MINUTE))?.runs, 2, 'what was given back is claimed')
  },
}

const words: Contract<TaskStore>['oneNode'] = {
  async 'keeps the last status message of a run'(store) {
    const run = await begin(store)
    for (const note of ['a', '', 'naïve 🦆']) {
      same(await store.note(run, note), true, 'note is done for who runs the task')
      same((await read(store, run.id)).note, note, 'get gives the last note')
      same((await store.list('ann', 1))[0]?.note, note, 'list gives it too')
    }
  },
  async 'keeps requests in order and the first response to each'(store) {
    const run = await begin(store)
    for (const key of ['b', 'a', '1', '__proto__']) {
      same(await store.addRequest(run, { key, text: `${key}?` }), true, 'ask is done for who runs the task')
    }
    same(await store.addRequest(run, { key: 'a', text: 'another' }), true, 'ask of a key that is there is true')
    const asked = ['b', 'a', '1', '__proto__'].map(key => ({ key, text: `${key}?` }))
    same((await read(store, run.id)).requests, asked, 'questions are as they were asked, each key once')
    same((await store.list('ann', 1))[0]?.open, 4, '`open` counts questions without an answer')
    same(
      await store.addResponses(run.id, { a: 'yes', unknown: 'no', toString: 'no' }),
      1,
      'answer counts what it answered',
    )
    same(await store.addResponses(run.id, { a: 'no', b: 'naïve 🦆' }), 1, 'an answer that is there stays')
    same(await store.addResponses(run.id, {}), 0, 'no answers are none')
    const answers = (await read(store, run.id)).requests.map(({ response }) => response)
    same(answers, ['naïve 🦆', 'yes', undefined, undefined], 'each question has the first answer to it')
    same((await read(store, run.id)).open, 2, 'what was answered is open no more')
  },
  async 'keeps requests and responses across runs'(store) {
    const run = await begin(store)
    for (const key of ['k', 'l']) await store.addRequest(run, { key, text: 'x' })
    await store.addResponses(run.id, { k: 'y' })
    await store.release(run)
    same(await store.addResponses(run.id, { l: 'z' }), 1, 'a task that waits again takes answers')
    const again = await store.claim([offer()], MINUTE)
    same(
      again?.requests.map(({ key, response }) => [key, response]),
      [
        ['k', 'y'],
        ['l', 'z'],
      ],
      'the next run has them',
    )
  },
  async 'ends a task once and keeps its result'(store) {
    for (const state of ['completed', 'failed', 'cancelled'] as const) {
      const run = await begin(store)
      const outcome = `{"text":"naïve 🦆 ${state}"}`
      same(await store.end(run, { state, outcome }, MINUTE), true, 'end is done for who runs the task')
      const record = await read(store, run.id)
      same([record.state, record.outcome], [state, outcome], 'get gives how it ended')
      same(await store.end(run, { state, outcome }, MINUTE), true, 'the same fence is told so again')
      same(await store.get(run.id), record, 'and changes nothing')
      for (const done of [
        await store.note(run, 'x'),
        await store.addRequest(run, { key: 'k', text: 'x' }),
        await store.release(run),
        (await store.addResponses(run.id, { k: 'x' })) !== 0,
      ])
        same(done, false, 'nothing is written to a task that ended')
      same(await store.renew([run], MINUTE), [undefined], 'its lease is over')
    }
    same(await store.depths(), [], 'what ended neither waits nor runs')
  },
  async 'keeps a finished task for its new ttl, and at least for the previous one'(store, expiry) {
    const inTime = expiry.start()
    const short = await inTime(begin(store, { ttl: expiry.ms }))
    same(await inTime(store.end(short, { state: 'completed' }, MINUTE)), true, 'end is done for who runs the task')
    const long = await begin(store)
    await store.end(long, { state: 'completed' }, expiry.ms)
    await pause(expiry.ms * 1.5)
    for (const { id } of [short, long]) same((await read(store, id)).state, 'completed', 'it is there')
    same((await read(store, long.id)).until, long.until, 'end does not take time away')
    holds((await read(store, short.id)).until > short.until, 'end gives more time')
  },
  async 'stores a large result'(store) {
    const run = await begin(store)
    const outcome = 'x'.repeat(1_000_000)
    same(await store.end(run, { state: 'completed', outcome }, MINUTE), true, 'an outcome of 1 MB is kept')
    same((await read(store, run.id)).outcome === outcome, true, 'as it was')
  },
}

export const runs: Contract<TaskStore>['oneNode'] = { ...turns, ...leases, ...words }

/** More than half of a holder's limit, bytes. */
const LARGE = 40_000
const ROOM = { bytesPerHolder: 64_000 }
const NARROW: TaskLimits = { ...WIDE, ...ROOM }

export const rooms: Contract<TaskStore>['oneNode'] = {
  async 'returns a task without its body, questions and outcome from look and list'(store) {
    same(await store.getSummary('unknown'), undefined, 'look gives undefined where nothing is')
    for (const owner of ['naïve 🦆', '', 'o'.repeat(128)]) {
      const id = await create(store, { owner, body: 'first line\nx' })
      const { body: _, requests: __, ...rest } = await read(store, id)
      same(rest.owner, owner, 'get gives the owner as it was')
      same(await store.getSummary(id), rest, 'look gives what get does, without the body and the questions')
      same((await store.list('ann', 1))[0], rest, 'and so does list')
      const run = await store.claim([offer()], MINUTE)
      holds(run, 'claim takes the task that waits')
      await store.note(run, 'half')
      await store.addRequest(run, { key: 'k', text: 'x' })
      const now = await store.getSummary(id)
      same([now?.state, now?.note, now?.open], ['running', 'half', 1], 'look gives it as it is now')
      await store.end(run, { state: 'completed', outcome: 'done' }, MINUTE)
      const over = await store.getSummary(id)
      same([over?.state, over?.owner], ['completed', owner], 'look gives the owner of what is over')
      holds(!('outcome' in (over ?? {})), 'look gives no outcome')
    }
  },
  async 'deletes the body and the questions of a finished task'(store) {
    const end = async (how: 'end' | 'cancel') => {
      const run = await begin(store, { body: 'x'.repeat(LARGE) })
      await store.addRequest(run, { key: 'k', text: 'x' })
      await store.addResponses(run.id, { k: 'y' })
      await (how === 'end' ? store.end(run, { state: 'completed', outcome: 'z' }, MINUTE) : store.cancel(run.id))
      const { body, requests, outcome } = await read(store, run.id)
      same([body, requests], ['', []], `after ${how} body and questions are forgotten`)
      same(outcome, how === 'end' ? 'z' : undefined, 'the outcome is kept')
    }
    await end('end')
    await end('cancel')
  },
  async 'limits the stored bytes per owner'(store) {
    const large = (holder = 'ann') => store.create(newTask({ holder, body: 'x'.repeat(LARGE) }), NARROW)
    same(await large(), 'created', 'what fits is kept')
    same(await large(), 'holder', 'a holder has no more than bytesPerHolder')
    same(await large('bob'), 'created', 'another holder has bytes of its own')
    const [first] = await store.list('ann', 10)
    same((await store.list('ann', 10)).length, 1, 'what was refused is not kept')
    await store.cancel(first?.id ?? '')
    same(await large(), 'created', 'what is over takes no room for what it was to do')
    const bare = newTask({ body: 'x'.repeat(70_000) })
    same(await store.create(bare, NARROW), 'holder', 'one that is larger than all of it is refused')
  },
  async 'ends a task with a short error if its result does not fit'(store) {
    const run = await begin(store)
    const end = (outcome: string) => store.end(run, { state: 'completed', outcome }, MINUTE, ROOM)
    same(await end('x'.repeat(70_000)), 'holder', 'end says that there is no room for the outcome')
    const now = await read(store, run.id)
    same([now.state, now.outcome, now.version], ['running', undefined, run.version], 'and changes nothing')
    for (const refused of [newTask({ body: 'x'.repeat(LARGE) }), newTask({ body: 'x'.repeat(15_000) })])
      same(await store.create(refused, NARROW), 'created', 'the holder has room left')
    same(await end('x'.repeat(LARGE)), 'holder', 'outcomes are counted with what else there is')
    same(await end('x'.repeat(SMALL_OUTCOME)), true, 'a small outcome is kept whatever there is')
    same((await read(store, run.id)).state, 'completed', 'the task is over')
    same(await store.create(newTask({ body: 'x'.repeat(LARGE) }), NARROW), 'holder', 'what is kept of it is counted')
  },
  async 'reuses the space of the body for the outcome'(store) {
    const run = await begin(store, { body: 'x'.repeat(LARGE) })
    const outcome = 'y'.repeat(LARGE)
    same(await store.end(run, { state: 'completed', outcome }, MINUTE, ROOM), true, 'there is room for the outcome')
    same((await read(store, run.id)).outcome === outcome, true, 'it is there')
    same(await store.create(newTask({ body: 'x'.repeat(LARGE) }), NARROW), 'holder', 'outcomes are counted')
  },
  async 'stores all responses or none if they do not fit'(store) {
    const run = await begin(store)
    for (const key of ['a', 'b', 'c']) await store.addRequest(run, { key, text: '?' })
    const text = 'x'.repeat(600)
    same(await store.addResponses(run.id, { a: text }, { bytesPerTask: 1_000 }), 1, 'an answer that fits is taken')
    const both = { b: text, c: 'short' }
    same(
      await store.addResponses(run.id, both, { bytesPerTask: 1_000 }),
      'task',
      'all answers have no more than bytesPerTask',
    )
    same(
      await store.addResponses(run.id, { b: 'x'.repeat(70_000) }, ROOM),
      'holder',
      'nor more than the holder may have',
    )
    same((await read(store, run.id)).open, 2, 'none of what was refused is taken')
    same(
      await store.addResponses(run.id, { a: 'again' }, { bytesPerTask: 1 }),
      0,
      'what changes nothing is not refused',
    )
    const many = await Promise.all(
      ['b', 'c'].map(key => store.addResponses(run.id, { [key]: 'x'.repeat(300) }, { bytesPerTask: 1_000 })),
    )
    same([...many].sort(), [1, 'task'], 'of two that come at once, one is taken where there is room for one')
  },
}
