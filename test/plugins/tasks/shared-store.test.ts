// The task store on a store that several nodes share: concurrent claims, lost replies and missed changes.

import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import type { Bus } from '../../../core/store/bus.ts'
import { createMemoryStore } from '../../../core/store/memory-store.ts'
import type { Query, ReadAnswers, Step, Store } from '../../../core/store/store.ts'
import { createTaskStore } from '../../../plugins/families/task-store/index.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { begin, create, hear, MINUTE, newTask, offer, read, WIDE } from '../../support/contracts/task-steps.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** A store whose replies take some turns of the event loop. `lose`: the reply of the next change is lost. */
function createSlowStore() {
  const memory = createMemoryStore()
  const random = createSeededRandom(3)
  const seen = { trips: 0, lose: false }
  async function trip<Value>(work: () => Value): Promise<Value> {
    seen.trips++
    for (let turns = random.below(3); turns >= 0; turns--) await turn()
    const reply = work()
    await turn()
    return reply
  }
  const store: Store = {
    shared: true,
    async transact(partition: string, steps: readonly Step[]) {
      const outcome = await trip(() => memory.transact(partition, steps))
      if (!seen.lose) return outcome
      seen.lose = false
      throw new HostError('unavailable', { detail: 'the reply is lost' })
    },
    read: <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
      trip(() => memory.read(partition, queries)) as Promise<ReadAnswers<Queries>>,
  }
  return { store, seen }
}

/** Delivers to all nodes except those that are cut off. */
function createBus() {
  const listeners = new Set<(text: string | undefined) => void>()
  const cut = { off: false }
  const bus = {
    shared: true,
    publish(text: string) {
      if (!cut.off) for (const listener of listeners) listener(text)
    },
    subscribe(listener: (text: string | undefined) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  } as Bus
  return { bus, cut }
}

function openNodes(count: number) {
  const clock = createManualClock()
  const { store, seen } = createSlowStore()
  const { bus, cut } = createBus()
  const nodes = Array.from({ length: count }, () => createTaskStore(store, { clock, bus }))
  return { nodes, seen, clock, cut, node: nodes[0] as (typeof nodes)[number] }
}

describe('Task store: concurrent claims', () => {
  const TASKS = 100
  for (const holders of [1, 5, TASKS]) {
    it(`of eight nodes take each of ${TASKS} tasks of ${holders} holders once, in few round trips`, async () => {
      const { nodes, node, seen } = openNodes(8)
      for (let index = 0; index < TASKS; index++) await create(node, { holder: `holder ${index % holders}` })
      seen.trips = 0
      const claimed = await Promise.all(
        nodes.map(async one => {
          const ids: string[] = []
          for (let task = await one.claim([offer()], MINUTE); task; task = await one.claim([offer()], MINUTE))
            ids.push(task.id)
          return ids
        }),
      )
      expect(new Set(claimed.flat())).to.have.property('size', TASKS)
      expect(claimed.flat()).to.have.length(TASKS)
      expect(claimed.every(ids => ids.length > 0)).to.equal(true)
      expect(seen.trips).to.be.below(TASKS * 20)
    })
  }

  it('never exceed the limits of a queue and a holder', async () => {
    const { nodes, node } = openNodes(8)
    for (let index = 0; index < 60; index++) await create(node, { holder: `holder ${index % 6}` })
    const narrow = offer({ running: 10, runningPerHolder: 2 })
    const claimed = (await Promise.all(nodes.flatMap(one => [1, 2, 3].map(() => one.claim([narrow], MINUTE))))).filter(
      task => task !== undefined,
    )
    const counts = claimed.map(({ holder }) => claimed.filter(other => other.holder === holder).length)
    expect(claimed).to.have.length(10)
    expect(Math.max(...counts)).to.be.at.most(2)
  })
})

describe('Task store: expired tasks', () => {
  it('stay in the index if they are created again while another node deletes them', async () => {
    const memory = createMemoryStore()
    const task = newTask()
    expect(await createTaskStore(memory, { clock: createManualClock() }).create(task, WIDE)).to.equal('created')
    // Reads from before the task was created again.
    const stale = new Map<string, unknown>([
      ['ends', { members: [{ member: task.id, score: 0 }], size: 1, now: 0 }],
      ['task', undefined],
    ])
    const take = (name: string) => {
      const answer = stale.get(name)
      stale.delete(name)
      return [answer]
    }
    const read = (partition: string, queries: readonly Query[]) => {
      const [query] = queries
      const name = query && 'sortedSet' in query ? query.sortedSet : query && 'record' in query ? 'task' : ''
      return stale.has(name) ? take(name) : memory.read(partition, queries)
    }
    const late = createTaskStore({ ...memory, read } as Store, { clock: createManualClock() })
    expect(await late.create(newTask(), { ...WIDE, kept: 1 })).to.equal('full')
    expect(stale.size).to.equal(0)
  })
})

describe('Task store: lost reply', () => {
  it('of a claim gives the task to the next claim of the same node', async () => {
    const { nodes, node, seen } = openNodes(2)
    const id = await create(node)
    seen.lose = true
    const error = await rejectionOf(node.claim([offer()], MINUTE))
    expect(HostError.is(error)).to.equal(true)
    expect(await nodes[1]?.claim([offer()], MINUTE)).to.equal(undefined)
    const task = await node.claim([offer()], MINUTE)
    expect([task?.id, task?.state, task?.runs]).to.deep.equal([id, 'running', 1])
    expect(await node.end({ id, fence: task?.fence ?? 0 }, { state: 'completed' }, MINUTE)).to.equal(true)
  })

  it('of another operation is repeated, with the same result', async () => {
    const { node, seen } = openNodes(1)
    const lost = <Value>(work: () => Promise<Value>) => {
      seen.lose = true
      return work()
    }
    const task = newTask()
    expect(await lost(() => node.create(task, WIDE))).to.equal('created')
    expect(await node.list('ann', 10)).to.have.length(1)
    const run = await node.claim([offer()], MINUTE)
    const lease = { id: task.id, fence: run?.fence ?? 0 }
    expect(await lost(() => node.note(lease, 'half'))).to.equal(true)
    expect(await lost(() => node.addRequest(lease, { key: 'k', text: '?' }))).to.equal(true)
    expect(await lost(() => node.addResponses(task.id, { k: 'yes' }))).to.equal(1)
    expect(await lost(() => node.release(lease))).to.equal(true)
    const { state, note, requests } = await read(node, task.id)
    expect([state, note, requests]).to.deep.equal(['queued', 'half', [{ key: 'k', text: '?', response: 'yes' }]])
    const again = await node.claim([offer()], MINUTE)
    const next = { id: task.id, fence: again?.fence ?? 0 }
    expect(await lost(() => node.end(next, { state: 'completed' }, MINUTE))).to.equal(true)
    const other = await create(node)
    expect(await lost(() => node.cancel(other))).to.equal(true)
  })
})

describe('Task store: changes on other nodes', () => {
  it('are reported once and in order if the bus fails', async () => {
    const { nodes, node, clock, cut } = openNodes(2)
    const heard = hear(node)
    await eventually(
      'the first position',
      () => heard.missed(),
      missed => missed === 1,
    )
    const other = nodes[1] as typeof node
    const first = await create(other)
    cut.off = true
    const second = await create(other)
    const third = await create(other)
    await clock.advance(1_000)
    await eventually(
      'all changes',
      () => heard.told.length,
      told => told >= 3,
    )
    cut.off = false
    const fourth = await create(other)
    await eventually(
      'all changes',
      () => heard.told.length,
      told => told >= 4,
    )
    expect(heard.told.map(({ id }) => id)).to.deep.equal([first, second, third, fourth])
    expect(heard.missed()).to.equal(1)
    heard.stop()
  })

  it('that are more than the log holds are reported as missed', async () => {
    const { nodes, node, clock, cut } = openNodes(2)
    const heard = hear(node)
    await eventually(
      'the first position',
      () => heard.missed(),
      missed => missed === 1,
    )
    cut.off = true
    const other = nodes[1] as typeof node
    const run = await begin(other)
    for (let count = 0; count < 1_001; count++) await other.note(run, `${count}`)
    await clock.advance(1_000)
    await eventually(
      'a gap',
      () => heard.missed(),
      missed => missed > 1,
    )
    expect([heard.missed(), heard.told.length]).to.deep.equal([2, 0])
    heard.stop()
  })
})
