// Tasks on several nodes with a shared store: front and worker roles, node loss and shutdown.

import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import type { TaskStore } from '../../../plugins/families/task-store/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { stopHosts } from '../../support/start-host.ts'
import { createMemoryTaskStore } from './support/memory-task-store.ts'
import { refusal, type TaskClient, taskClient } from './support/task-client.ts'
import { type Bench, createBench, startTasks, type TaskOptions } from './support/task-tools.ts'

const text = (task: { result?: { content: Array<{ text: string }> } }) => task.result?.content[0]?.text
const LEASE = '600ms'

/** One store for several hosts, and for each a way to it that can be cut: nothing goes through then, in neither direction. */
function sharedStore(clock: ManualClock) {
  const store: TaskStore = { ...createMemoryTaskStore(undefined, clock.now), shared: true }
  const away = () => Promise.reject(new HostError('unavailable', { detail: 'the store is away' }))
  return {
    store,
    way() {
      let isCut = false
      const listeners = new Set<Parameters<TaskStore['watch']>[0]>()
      store.watch(news => {
        if (!isCut) for (const tell of listeners) tell(news)
      })
      const through = Object.fromEntries(
        Object.entries(store).map(([name, part]) => [
          name,
          typeof part === 'function' && name !== 'watch'
            ? (...args: unknown[]) => (isCut ? away() : (part as (...args: unknown[]) => unknown)(...args))
            : part,
        ]),
      )
      const watch: TaskStore['watch'] = tell => {
        listeners.add(tell)
        return () => void listeners.delete(tell)
      }
      return {
        store: { ...through, watch } as TaskStore,
        cut: () => {
          isCut = true
        },
        mend: () => {
          isCut = false
          for (const tell of listeners) tell(undefined)
        },
      }
    },
  }
}

/** Two nodes: each with a bench and a way to the store of its own. */
async function startTwo(first: TaskOptions = {}, second: TaskOptions = {}) {
  const clock = createManualClock()
  const shared = sharedStore(clock)
  const node = async (options: TaskOptions) => {
    const bench: Bench = createBench()
    const way = shared.way()
    const { url, host } = await startTasks(bench, { lease: LEASE, ...options }, way.store, {}, { clock })
    return { bench, way, url, host, client: taskClient(url, 'ann') }
  }
  return { clock, shared, one: await node(first), other: await node(second) }
}

/** Advances the clock until a state. */
const advanceUntil = <Found>(
  clock: ManualClock,
  what: string,
  look: () => Found | Promise<Found>,
  holds: (found: Found) => unknown = Boolean,
) =>
  eventually(
    what,
    async () => {
      const found = await look()
      if (!holds(found)) await clock.advance(100)
      return found
    },
    holds,
  )

const end = (clock: ManualClock, client: TaskClient, taskId: string) =>
  advanceUntil(
    clock,
    'the task ends',
    () => client.get(taskId),
    ({ status }) => status !== 'working',
  )

describe('Tasks: front and worker roles', () => {
  afterEach(stopHosts)

  it('the front accepts calls and forwards input, and the worker runs the task', async () => {
    const { one: front, other: worker } = await startTwo({ role: 'front' }, { role: 'worker' })
    const taskId = await front.client.begin('ask-then-wait', { key: '1' })
    const asking = await front.client.until(taskId, 'input_required')
    const { acknowledged, next, drop } = await front.client.listen([taskId])
    expect(acknowledged).to.deep.equal({ taskIds: [taskId] })
    const { inputRequests } = asking
    expect((await next()).params).to.deep.include({ taskId, status: 'input_required', inputRequests })
    await front.client.update(taskId, { 'elicit-1': { action: 'accept', content: { name: 'Ann' } } })
    await eventually('the worker goes on', () => worker.bench.began.length === 1)
    worker.bench.open('1')
    expect(text(await front.client.until(taskId))).to.equal('done 1 for Ann')
    const heard = []
    for (let over = false; !over; over = heard.at(-1).params.status === 'completed') heard.push(await next())
    const { _meta, ...params } = heard.at(-1).params
    const { _meta: _own, resultType: _type, ...found } = await front.client.get(taskId)
    expect(params).to.deep.equal(found)
    drop()
    expect(front.bench.began).to.deep.equal([])
  })

  it('the worker refuses clients of every protocol version with a reference to the front', async () => {
    const { other: worker } = await startTwo({ role: 'front' }, { role: 'worker' })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const answers = await Promise.all(
      ['POST', 'GET', 'DELETE', 'PUT'].map(method =>
        fetch(worker.url, {
          method,
          ...(method === 'POST' && { body, headers: { 'Content-Type': 'application/json' } }),
        }),
      ),
    )
    for (const answer of answers) {
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
      expect(((await answer.json()) as { error: { message: string } }).error.message).to.include('role worker')
    }
  })

  it('a task is queued until a worker starts, and cancellation reaches the worker', async () => {
    const { one: front, other: worker } = await startTwo({ role: 'front' }, { role: 'worker' })
    worker.way.cut()
    const taskId = await front.client.begin('slow', { key: '1' })
    expect((await front.client.get(taskId)).status).to.equal('working')
    worker.way.mend()
    await eventually('the worker takes it', () => worker.bench.began.length === 1)
    await front.client.cancel(taskId)
    expect((await front.client.get(taskId)).status).to.equal('cancelled')
    await eventually('its handler hears of it', () => worker.bench.aborted.length === 1)
  })
})

describe('Tasks: node loss', () => {
  afterEach(stopHosts)

  it('reruns idempotent tasks on another node, fails others, and ignores late results', async () => {
    const { clock, one, other } = await startTwo({}, { role: 'front' })
    const ids = [await other.client.begin('again', { key: 'safe' }), await other.client.begin('slow', { key: 'once' })]
    await eventually('both run', () => one.bench.began.length === 2)
    // A third that may run tasks, and has nothing to do as yet.
    const third = await startThird(clock, other)
    one.way.cut()
    const failed = await end(clock, third.client, ids[1] ?? '')
    expect(failed).to.include({ status: 'failed' })
    expect(failed.error).to.deep.include({ code: -32603, data: { reason: 'node-lost' } })
    expect(failed.statusMessage).to.include('was lost')
    await advanceUntil(clock, 'the safe one runs again', () => third.bench.began.includes('safe'))
    await advanceUntil(clock, 'and is given up where it ran', () => one.bench.aborted.includes('safe'))
    expect(third.bench.began).to.deep.equal(['safe'])
    for (const key of ['safe', 'once']) one.bench.open(key)
    one.way.mend()
    third.bench.open('safe')
    expect(text(await third.client.until(ids[0] ?? ''))).to.equal('done safe')
    expect((await third.client.get(ids[1] ?? '')).status).to.equal('failed')
  })

  async function startThird(clock: ManualClock, { way }: Awaited<ReturnType<typeof startTwo>>['other']) {
    const bench = createBench()
    const { url } = await startTasks(bench, { lease: LEASE }, way.store, {}, { clock })
    return { bench, client: taskClient(url, 'ann') }
  }

  it('keeps input responses for the next run, without repeating requests', async () => {
    const { clock, one, other } = await startTwo({}, { role: 'front' })
    const taskId = await other.client.begin('ask-then-wait', { key: '1' })
    await other.client.until(taskId, 'input_required')
    await other.client.update(taskId, { 'elicit-1': { action: 'accept', content: { name: 'Ann' } } })
    await eventually('it runs', () => one.bench.began.length === 1)
    const third = await startThird(clock, other)
    one.way.cut()
    await advanceUntil(clock, 'it runs again', () => third.bench.began.length === 1)
    third.bench.open('1')
    expect(text(await third.client.until(taskId))).to.equal('done 1 for Ann')
  })
})

describe('Tasks: shutdown', () => {
  afterEach(stopHosts)

  it('releases retryable tasks, drains others in the grace period, and fails the rest', async () => {
    const { clock, one, other } = await startTwo({}, { role: 'front' })
    const [safe, quick, long] = [
      await other.client.begin('again', { key: 'safe' }),
      await other.client.begin('slow', { key: 'quick' }),
      await other.client.begin('slow', { key: 'long' }),
    ]
    await eventually('all run', () => one.bench.began.length === 3)
    const closed = one.host.close({ grace: 1_000 })
    await eventually('the safe one is given up', () => one.bench.aborted.includes('safe'))
    expect((await other.client.get(safe)).status).to.equal('working')
    one.bench.open('quick')
    expect(text(await other.client.until(quick))).to.equal('done quick')
    expect((await other.client.get(long)).status).to.equal('working')
    await closed
    const failed = await other.client.get(long)
    expect(failed).to.include({ status: 'failed' })
    expect(failed.error.data).to.deep.equal({ reason: 'node-lost' })
    const bench = createBench()
    await startTasks(bench, { lease: LEASE }, other.way.store, {}, { clock })
    await eventually('the safe one runs at the next', () => bench.began.includes('safe'))
    bench.open('safe')
    expect(text(await other.client.until(safe))).to.equal('done safe')
  })

  it('keeps all of twenty tasks and runs non-retryable tasks at most once', async () => {
    const { clock, shared, one, other } = await startTwo({ perUser: 20 }, { role: 'front' })
    const keys = Array.from({ length: 20 }, (_, index) => `${index}`)
    const tool = (key: string) => (Number(key) % 2 ? 'again' : 'slow')
    const ids = new Map<string, string>()
    for (const key of keys) ids.set(key, await other.client.begin(tool(key), { key }))
    await eventually('some run', () => one.bench.began.length >= 8)
    for (const key of keys.slice(0, 4)) one.bench.open(key)
    for (const key of keys.slice(0, 4)) await other.client.until(ids.get(key) ?? '')
    await one.host.close({ grace: 0 })
    const bench = createBench()
    for (const key of keys) bench.open(key)
    await startTasks(bench, { lease: LEASE, perUser: 20 }, shared.way().store, {}, { clock })
    const ends: Record<string, number> = {}
    for (const key of keys) {
      const { status } = await end(clock, other.client, ids.get(key) ?? '')
      ends[`${tool(key)} ${status}`] = (ends[`${tool(key)} ${status}`] ?? 0) + 1
      const runs = [...one.bench.began, ...bench.began].filter(began => began === key).length
      if (tool(key) === 'slow') expect(runs, key).to.be.at.most(1)
      if (status === 'completed') expect(runs, key).to.be.at.least(1)
    }
    expect(ends['again completed']).to.equal(10)
    expect((ends['slow completed'] ?? 0) + (ends['slow failed'] ?? 0)).to.equal(10)
  })
})

describe('Tasks: store outage', () => {
  afterEach(stopHosts)

  it('refuses new tasks with 503 and runs nothing', async () => {
    const { one } = await startTwo()
    one.way.cut()
    expect(refusal(await one.client.call('slow', { key: '1' }))).to.deep.equal([503, -32603])
    one.way.mend()
    expect(refusal(await one.client.call('plain', { key: '1' }))).to.deep.equal([200, undefined])
    expect(one.bench.began).to.deep.equal([])
  })

  it('cancels a task that was stored although its response was lost', async () => {
    const shared = sharedStore(createManualClock())
    const lossy: TaskStore = {
      ...shared.store,
      async create(...args) {
        await shared.store.create(...args)
        throw new HostError('unavailable')
      },
    }
    const { url } = await startTasks(createBench(), { role: 'front' }, lossy)
    const client = taskClient(url, 'ann')
    expect(refusal(await client.call('slow', { key: '1' }))).to.deep.equal([503, -32603])
    const own = async () => (await client.send('io.mcp-host/tasks/list', {})).message.result.tasks
    const [task] = await eventually('it is cancelled', own, tasks => tasks[0]?.status === 'cancelled')
    expect(task).to.include({ tool: 'slow' })
  })

  it('stores the end of a running task after recovery', async () => {
    const { clock, one } = await startTwo({}, { role: 'front' })
    const taskId = await one.client.begin('slow', { key: '1' })
    await eventually('it runs', () => one.bench.began.length === 1)
    one.way.cut()
    one.bench.open('1')
    expect(refusal(await one.client.about('tasks/get', taskId))).to.deep.equal([503, -32603])
    one.way.mend()
    expect(text(await end(clock, one.client, taskId))).to.equal('done 1')
  })

  it('stores the end of many tasks, without treating live nodes as lost', async () => {
    const { clock, one, other } = await startTwo()
    other.way.cut()
    const ids = [await one.client.begin('slow', { key: '1' }), await one.client.begin('slow', { key: '2' })]
    await eventually('both run', () => one.bench.began.length === 2)
    one.way.cut()
    one.bench.open('1')
    await clock.advance(5 * 600)
    // The other node reaches the store first. The node that runs the tasks follows in less than a lease.
    other.way.mend()
    await clock.advance(500)
    one.way.mend()
    expect(text(await end(clock, one.client, ids[0] ?? ''))).to.equal('done 1')
    one.bench.open('2')
    expect(text(await one.client.until(ids[1] ?? ''))).to.equal('done 2')
    expect([...one.bench.began, ...other.bench.began].sort()).to.deep.equal(['1', '2'])
  })
})

describe('Tasks: queue without worker', () => {
  afterEach(stopHosts)

  it('is logged once, with its name and a fix', async () => {
    const clock = createManualClock()
    const memory = createMemoryTaskStore(undefined, clock.now)
    let looks = 0
    const store: TaskStore = {
      ...memory,
      shared: true,
      // As after a minute.
      async depths() {
        looks += 1
        return (await memory.depths()).map(depth => ({ ...depth, waited: depth.waited + 61_000 }))
      },
    }
    const { url, log } = await startTasks(createBench(), { role: 'front', lease: LEASE }, store, {}, { clock })
    await taskClient(url, 'ann').begin('slow', { key: '1' })
    const told = () => log.filter(({ code }) => code === 'MH2515')
    await advanceUntil(clock, 'it is told', () => told().length > 0)
    const seen = looks
    await advanceUntil(clock, 'some looks later', () => looks > seen + 3)
    expect(told()).to.have.lengthOf(1)
    expect(JSON.stringify(told()[0])).to.include('slow').and.include('--role worker')
  })
})
