// The contract of task stores, and of shared ones between nodes.

import { type Contract, eventually } from '../../../core/testing/contract.ts'
import { hasEnded, type TaskStore } from '../../../plugins/families/task-store/index.ts'
import { holds, same } from './assertions.ts'
import { rooms, runs } from './task-runs-contract.ts'
import { begin, create, hear, MANY, MINUTE, newTask, offer, read, takenFrom, WIDE } from './task-steps.ts'

/** Maximum delay of the first notification, milliseconds. */
const FIRST_NEWS = 30_000

const tasks: Contract<TaskStore>['oneNode'] = {
  async 'returns nothing for an unknown task'(store) {
    const lease = { id: 'unknown', fence: 1 }
    same(await store.get('unknown'), undefined, 'get gives undefined where nothing is')
    same(await store.list('ann', 10), [], 'list gives nothing where nothing is')
    same(await store.claim([offer()], MINUTE), undefined, 'claim gives undefined where nothing waits')
    same(await store.claim([], MINUTE), undefined, 'claim gives undefined where nothing is offered')
    same(await store.claimLapsed(MINUTE), undefined, 'claimLapsed gives undefined where nothing runs')
    same(await store.renew([lease], MINUTE), [undefined], 'renew gives undefined for a task that is not there')
    same(await store.renew([], MINUTE), [], 'renew of nothing gives nothing')
    same(await store.release(lease), false, 'release gives false where nothing is')
    same(await store.note(lease, 'x'), false, 'note gives false where nothing is')
    same(await store.addRequest(lease, { key: 'k', text: 'x' }), false, 'ask gives false where nothing is')
    same(await store.end(lease, { state: 'completed' }, MINUTE), false, 'end gives false where nothing is')
    same(await store.addResponses('unknown', { k: 'x' }), 0, 'answer gives 0 where nothing is')
    same(await store.cancel('unknown'), false, 'cancel gives false where nothing is')
    same(await store.depths(), [], 'depths gives nothing where nothing is')
    same(await store.get('unknown'), undefined, 'none of these created anything')
  },
  async 'stores a task as it was created'(store) {
    for (const body of ['', '{"text":"naïve 🦆\\r\\n\u2028"}', '\u0000', 'x'.repeat(300_000)]) {
      const task = newTask({ body, holder: 'h'.repeat(128), queue: '/a {b}:c naïve' })
      same(await store.create(task, WIDE), 'created', 'create keeps any text')
      const {
        id,
        holder,
        queue,
        state,
        fence,
        runs: claims,
        requests,
        open,
        owner: _,
        createdAt,
        updatedAt,
        until,
        ...rest
      } = await read(store, task.id)
      same([id, holder, queue, rest.body], [task.id, task.holder, task.queue, body], 'get gives the texts as they were')
      same(
        [state, fence, claims, requests, open],
        ['queued', 0, 0, [], 0],
        'a new task is queued, with no fence, runs or questions',
      )
      same([rest.note, rest.outcome], [undefined, undefined], 'a new task has neither note nor outcome')
      same(until - createdAt, MINUTE, 'until is its ttl after its creation')
      same(updatedAt, createdAt, 'it was updated when it was created')
      same(await store.create(task, WIDE), 'created', 'create of what is there is done: its answer may have been lost')
      same((await store.list(task.holder, 10)).filter(one => one.id === id).length, 1, 'and keeps it once')
      holds(Math.abs(createdAt - Date.now()) < MINUTE, 'createdAt is in milliseconds since the epoch')
    }
  },
  async 'lists the tasks of an owner in pages, newest first'(store) {
    const ids: string[] = []
    for (let index = 0; index < 5; index++) ids.push(await create(store))
    await create(store, { holder: 'bob' })
    const newest = [...ids].reverse()
    const first = await store.list('ann', 3)
    same(
      first.map(({ id }) => id),
      newest.slice(0, 3),
      'list gives the newest of this holder first, at most so many',
    )
    const next = await store.list('ann', 3, first[2]?.serial)
    same(
      next.map(({ id }) => id),
      newest.slice(3),
      '`before` goes on after what was listed',
    )
    same((await store.list('ann', 10)).length, 5, 'list gives those of this holder alone')
    holds(!('body' in (first[0] ?? {})) && !('requests' in (first[0] ?? {})), 'a summary is without the large parts')
    await store.cancel(ids[0] ?? '')
    same((await store.list('ann', 10)).at(-1)?.state, 'cancelled', 'list gives those that have ended too')
  },
  async 'expires a task after its ttl'(store, expiry) {
    const ttl = expiry.ms
    const inTime = expiry.start()
    const id = await create(store, { ttl })
    const running = await inTime(begin(store, { ttl, queue: 'other' }))
    await inTime(read(store, id))
    await expiry.wait(async () => !(await store.get(id)) && !(await store.get(running.id)))
    same(await store.get(id), undefined, `a task of ${ttl} ms is gone after it`)
    same(await store.get(running.id), undefined, 'one that runs is gone as well')
    same(await store.claim([offer()], MINUTE), undefined, 'what is past its time is claimed by nobody')
    same(await store.renew([running], MINUTE), [undefined], 'the lease of what is past its time is lost')
    same(await store.end(running, { state: 'completed' }, MINUTE), false, 'what is past its time does not end')
    same(await store.cancel(id), false, 'what is past its time is not cancelled')
    same(await store.list('ann', 10), [], 'what is past its time is not listed')
  },
  async 'enforces the task limits'(store) {
    const bounds = { openPerHolder: 2, keptPerHolder: 3, kept: 4 }
    const tryIt = (holder: string) => store.create(newTask({ holder }), bounds)
    const first = await create(store, {}, bounds)
    await create(store, {}, bounds)
    same(await tryIt('ann'), 'holder', 'a holder has no more open tasks than openPerHolder')
    await store.cancel(first)
    same(await tryIt('ann'), 'created', 'one that ended is open no more')
    await store.cancel((await store.list('ann', 1))[0]?.id ?? '')
    same(await tryIt('ann'), 'holder', 'a holder has no more tasks than keptPerHolder')
    same(await tryIt('bob'), 'created', 'another holder has bounds of its own')
    same(await tryIt('eve'), 'full', 'all have no more than `kept`')
    same((await store.list('ann', 10)).length, 3, 'what was refused is not kept')
  },
  async 'frees capacity after tasks expire'(store, expiry) {
    const bounds = { openPerHolder: 1, keptPerHolder: 1, kept: 1 }
    same(await store.create(newTask({ ttl: expiry.ms }), bounds), 'created', 'the first is kept')
    const last = newTask()
    let outcome: string = 'holder'
    await expiry.wait(async () => {
      outcome = await store.create(last, bounds)
      return outcome === 'created'
    })
    same(outcome, 'created', 'what is past its time counts for nobody')
  },
  async 'cancels a queued or running task once'(store) {
    const waiting = await create(store, { queue: 'other' })
    same(await store.cancel(waiting), true, 'cancel ends a task that waits')
    same((await read(store, waiting)).state, 'cancelled', 'it is cancelled')
    same(await takenFrom(store, offer({ queue: 'other' })), undefined, 'what was cancelled is claimed by nobody')
    const running = await begin(store)
    same(await store.cancel(running.id), true, 'cancel ends a task that runs')
    same(await store.cancel(running.id), false, 'what has ended is not cancelled')
    same(
      await store.end(running, { state: 'completed', outcome: 'x' }, MINUTE),
      false,
      'a run that was cancelled does not end',
    )
    same(await store.renew([running], MINUTE), [undefined], 'the lease of a run that was cancelled is lost')
    const { state, outcome, fence } = await read(store, running.id)
    same([state, outcome], ['cancelled', undefined], 'cancelled it stays')
    holds(fence > running.fence, 'cancel makes the fence larger')
  },
  async 'reports the number of queued and running tasks per queue'(store) {
    for (let index = 0; index < 3; index++) await create(store)
    await create(store, { queue: 'other' })
    await takenFrom(store)
    const depths = [...(await store.depths())].sort((a, b) => (a.queue < b.queue ? -1 : 1))
    same(
      depths.map(({ queue, queued, running }) => [queue, queued, running]),
      [
        ['jobs', 2, 1],
        ['other', 1, 0],
      ],
      'depths gives each queue with those that wait and those that run',
    )
    holds(
      depths.every(({ waited }) => waited >= 0 && waited < MINUTE),
      '`waited` is in milliseconds',
    )
  },
  async 'notifies of every change after it is stored'(store) {
    const { told, stop } = hear(store)
    const { id, fence } = await begin(store)
    await store.note({ id, fence }, 'half')
    await store.addRequest({ id, fence }, { key: 'k', text: 'x' })
    await store.addResponses(id, { k: 'y' })
    await store.release({ id, fence })
    const again = await store.claim([offer()], MINUTE)
    await store.end({ id, fence: again?.fence ?? 0 }, { state: 'failed', outcome: 'x' }, MINUTE)
    await eventually(() => told.some(({ state }) => state === 'failed'))
    same(
      told.every(news => news.id === id && news.queue === 'jobs'),
      true,
      'news names the task and its queue',
    )
    const states = told.map(({ state }) => state).filter((state, index, all) => state !== all[index - 1])
    same(states, ['queued', 'running', 'queued', 'running', 'failed'], 'news comes in the order of the changes')
    stop()
    const count = told.length
    const seen = hear(store)
    await create(store)
    await eventually(() => seen.told.length > 0)
    same(told.length, count, 'nobody is told who stopped')
    seen.stop()
  },
}

async function racing(...stores: readonly TaskStore[]) {
  const [store] = stores as [TaskStore]
  const race = <Value>(act: (one: TaskStore, index: number) => Promise<Value>) =>
    Promise.all(Array.from({ length: MANY }, (_, index) => act(stores[index % stores.length] as TaskStore, index)))
  const count = (found: readonly unknown[], wanted: unknown) => found.filter(one => one === wanted).length

  const bounds = { ...WIDE, openPerHolder: 20 }
  const made = await race(one => one.create(newTask(), bounds))
  same([count(made, 'created'), count(made, 'holder')], [20, MANY - 20], 'bounds hold for those that create at once')
  const claimed = await race(one => takenFrom(one, offer({ running: 15 })))
  const ids = claimed.filter(id => id !== undefined)
  same([ids.length, new Set(ids).size], [15, 15], 'of many that claim at once each gets another task, up to `running`')
  const [id = ''] = ids
  const { fence } = await read(store, id)
  await store.addRequest({ id, fence }, { key: 'k', text: 'x' })
  const answered = await race((one, index) => one.addResponses(id, { k: `${index}` }))
  same(count(answered, 1), 1, 'of many that answer one question, one does')
  const { requests } = await read(store, id)
  same(requests[0]?.response, `${answered.indexOf(1)}`, 'what is there is of the one that was told so')
  const ended = await race(async (one, index) =>
    index % 2 ? one.end({ id, fence }, { state: 'completed', outcome: `${index}` }, MINUTE) : one.cancel(id),
  )
  const { state } = await read(store, id)
  same(hasEnded(state), true, 'it has ended')
  const cancelled = ended.filter((done, index) => done && index % 2 === 0).length
  same(cancelled, state === 'cancelled' ? 1 : 0, 'of many that end and cancel one task, one is first')
}

const twoNodes: Contract<TaskStore>['twoNodes'] = {
  async 'shares tasks between nodes'(one, other) {
    holds(one.shared && other.shared, 'the stores of two nodes say that they are shared')
    const id = await create(one)
    same((await read(other, id)).state, 'queued', 'what one node creates the other has')
    const taken = await other.claim([offer()], MINUTE)
    same(taken?.id, id, 'what one node creates the other claims')
    const lease = { id, fence: taken?.fence ?? 0 }
    same(await one.claim([offer()], MINUTE), undefined, 'what one node claimed the other does not get')
    same(await one.claimLapsed(MINUTE), undefined, 'nor while its lease lasts')
    await other.addRequest(lease, { key: 'k', text: 'x' })
    same(await one.addResponses(id, { k: 'y' }), 1, 'what one node asks is answered at the other')
    same((await read(other, id)).requests[0]?.response, 'y', 'the node that asked has the answer')
    same(await one.cancel(id), true, 'what one node runs the other cancels')
    same(await other.end(lease, { state: 'completed' }, MINUTE), false, 'the node that runs it learns of that')
  },
  async 'notifies both nodes of every change'(one, other) {
    const heard = [hear(one), hear(other)]
    // Subscriptions can start late, and earlier notifications are not repeated.
    let last = ''
    await eventually(async () => {
      last = await create(one)
      await eventually(() => heard.every(({ told }) => told.some(({ id }) => id === last)))
      return heard.every(({ told }) => told.some(({ id }) => id === last))
    }, FIRST_NEWS)
    for (const { told } of heard)
      holds(
        told.some(({ id }) => id === last),
        'both nodes are told of a new task',
      )
    await other.cancel(last)
    const ends = () => heard.every(({ told }) => told.some(({ id, state }) => id === last && state === 'cancelled'))
    await eventually(ends)
    holds(ends(), 'both nodes are told of its end')
    for (const { stop } of heard) stop()
  },
  'lets one of many concurrent create, claim, answer, end or cancel calls on both nodes succeed': racing,
}

export const taskStoreChecks: Contract<TaskStore> = {
  oneNode: {
    ...tasks,
    ...runs,
    ...rooms,
    'lets one of many concurrent create, claim, answer, end or cancel calls succeed': store => racing(store),
  },
  twoNodes,
}
