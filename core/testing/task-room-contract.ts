// What every task store promises of room: what may be read without the large parts, what is forgotten once a task is over, and
// how many bytes there may be. For task-store-contract.ts.
import { SMALL_OUTCOME, type TaskBounds, type TaskStore } from '../tasks/task-store.ts'
import { holds, type Promises, same } from './contract.ts'
import { begin, create, MINUTE, newTask, offer, read, WIDE } from './task-steps.ts'

/** Bytes of a text that is more than half of what a holder may have. */
const LARGE = 40_000
const ROOM = { bytesPerHolder: 64_000 }
const NARROW: TaskBounds = { ...WIDE, ...ROOM }

export const rooms: Promises<TaskStore>['alone'] = {
  async 'returns a task without its body, questions and outcome from look and list'(store) {
    same(await store.look('unknown'), undefined, 'look gives undefined where nothing is')
    for (const owner of ['naïve 🦆', '', 'o'.repeat(128)]) {
      const id = await create(store, { owner, body: 'first line\nx' })
      const { body: _, questions: __, ...rest } = await read(store, id)
      same(rest.owner, owner, 'get gives the owner as it was')
      same(await store.look(id), rest, 'look gives what get does, without the body and the questions')
      same((await store.list('ann', 1))[0], rest, 'and so does list')
      const run = await store.claim([offer()], MINUTE)
      holds(run, 'claim takes the task that waits')
      await store.note(run, 'half')
      await store.ask(run, { key: 'k', text: 'x' })
      const now = await store.look(id)
      same([now?.state, now?.note, now?.open], ['running', 'half', 1], 'look gives it as it is now')
      await store.end(run, { state: 'completed', outcome: 'done' }, MINUTE)
      const over = await store.look(id)
      same([over?.state, over?.owner], ['completed', owner], 'look gives the owner of what is over')
      holds(!('outcome' in (over ?? {})), 'look gives no outcome')
    }
  },
  async 'deletes the body and the questions of a finished task'(store) {
    const end = async (how: 'end' | 'cancel') => {
      const run = await begin(store, { body: 'x'.repeat(LARGE) })
      await store.ask(run, { key: 'k', text: 'x' })
      await store.answer(run.id, { k: 'y' })
      await (how === 'end' ? store.end(run, { state: 'completed', outcome: 'z' }, MINUTE) : store.cancel(run.id))
      const { body, questions, outcome } = await read(store, run.id)
      same([body, questions], ['', []], `after ${how} body and questions are forgotten`)
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
    for (const key of ['a', 'b', 'c']) await store.ask(run, { key, text: '?' })
    const text = 'x'.repeat(600)
    same(await store.answer(run.id, { a: text }, { bytesPerTask: 1_000 }), 1, 'an answer that fits is taken')
    const both = { b: text, c: 'short' }
    same(
      await store.answer(run.id, both, { bytesPerTask: 1_000 }),
      'task',
      'all answers have no more than bytesPerTask',
    )
    same(await store.answer(run.id, { b: 'x'.repeat(70_000) }, ROOM), 'holder', 'nor more than the holder may have')
    same((await read(store, run.id)).open, 2, 'none of what was refused is taken')
    same(await store.answer(run.id, { a: 'again' }, { bytesPerTask: 1 }), 0, 'what changes nothing is not refused')
    const many = await Promise.all(
      ['b', 'c'].map(key => store.answer(run.id, { [key]: 'x'.repeat(300) }, { bytesPerTask: 1_000 })),
    )
    same([...many].sort(), [1, 'task'], 'of two that come at once, one is taken where there is room for one')
  },
}
