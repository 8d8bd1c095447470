// Task limits per caller across URLs, IPv6 networks and cancellations.

import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { FairQueue, META, type Queued } from '../../../core/transport.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { createMemoryTaskStore } from './support/memory-task-store.ts'
import { TASKS, type TaskClient, taskClient } from './support/task-client.ts'
import { type Bench, createBench, form, startTasks } from './support/task-tools.ts'

const TENANTS = { '/t/:tenant': { toolsets: 'all' } }

/** How many answers had each status. */
function countsOf(statuses: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describe('Tasks: fairness between callers', () => {
  afterEach(stopHosts)

  it('counts a user across route parameters, and lists tasks per URL', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench, { openPerUser: 3, perUser: 1, kept: 40 }, undefined, { routes: TENANTS })
    const statuses = []
    for (let tenant = 0; tenant < 40; tenant++) {
      statuses.push((await taskClient(`${url}/t/x${tenant}`, 'eve').call('slow', { key: `e${tenant}` })).status)
    }
    expect(countsOf(statuses)).to.deep.equal({ 200: 3, 429: 37 })
    const bob = await taskClient(`${url}/t/bob`, 'bob').begin('slow', { key: 'bob' })
    await eventually('the task of another runs', () => bench.began.includes('bob'))
    expect(bench.began).to.have.members(['e0', 'bob'])
    const lists = await Promise.all(['x0', 'x1', 'x9', 'bob'].map(at => taskClient(`${url}/t/${at}`, 'eve').listed()))
    expect(lists.map(({ length }) => length)).to.deep.equal([1, 1, 0, 0])
    expect(await taskClient(`${url}/t/bob`, 'bob').listed()).to.deep.equal([bob])
    const foreign = await taskClient(`${url}/t/x1`, 'eve').about('tasks/get', lists[0]?.[0] ?? '')
    expect(foreign.message.error.code).to.equal(-32602)
  })

  it('counts an anonymous IPv6 network as one caller', async () => {
    const bench = createBench()
    const behind = { http: { port: 0, trustProxy: 1 } }
    const { url } = await startTasks(bench, { openPerUser: 2, perUser: 1, kept: 40 }, undefined, behind)
    const meta = { [META.clientCapabilities]: { extensions: { [TASKS]: {} } } }
    const call = async (ip: string, key: string) => {
      const headers = { 'X-Forwarded-For': ip }
      return (await modern(url, 'tools/call', { name: 'slow', arguments: { key } }, { meta, headers })).status
    }
    const statuses = []
    for (let host = 1; host <= 12; host++) {
      statuses.push(await call(`2001:db8:1:2::${host.toString(16)}`, `e${host}`))
    }
    expect(countsOf(statuses)).to.deep.equal({ 200: 2, 429: 10 })
    expect(await call('2001:db8:1:3::1', 'other')).to.equal(200)
    expect(await call('192.0.2.7', 'four')).to.equal(200)
    await eventually('one of each runs', () => bench.began.length === 3)
    expect(bench.began).to.have.members(['e1', 'other', 'four'])
  })

  it('releases the tool slot while a task waits for input', async () => {
    const bench = createBench()
    const confirm = defineTool({
      name: 'confirm',
      task: 'optional',
      input: { type: 'object', properties: { key: { type: 'string' }, ask: { type: 'boolean' } } } as const,
      async handler({ key = '', ask = true }, ctx) {
        bench.began.push(key)
        await bench.gate(key).opened
        if (ask) await ctx.elicit({ message: 'Sure?', requestedSchema: form })
        return 'done'
      },
    })
    const toolsets = { all: [...bench.tools, confirm] }
    const { url } = await startTasks(bench, { perTool: 2, perUser: 1, lease: '20s' }, undefined, { toolsets })
    const asking = []
    for (const user of ['a', 'b', 'c', 'd']) asking.push(await taskClient(url, user).begin('confirm', { key: user }))
    const bob = taskClient(url, 'bob')
    const task = await bob.begin('confirm', { key: 'bob', ask: false })
    await eventually('as many run as may', () => bench.began.length === 2)
    for (const [index, user] of ['a', 'b', 'c', 'd'].entries()) {
      bench.open(user)
      await taskClient(url, user).until(asking[index] ?? '', 'input_required')
    }
    bench.open('bob')
    expect((await bob.until(task)).status).to.equal('completed')
  })

  /** A tool that asks, and then waits at its gate whatever the answer is. */
  function createAsking(bench: Bench) {
    const running: string[] = []
    let most = 0
    const asking = defineTool({
      name: 'asking',
      task: 'optional',
      input: { type: 'object', properties: { key: { type: 'string' } } } as const,
      async handler({ key = '' }, ctx) {
        await ctx.elicit({ message: 'Sure?', requestedSchema: form }).catch(() => undefined)
        bench.began.push(key)
        running.push(key)
        most = Math.max(most, running.length)
        await bench.gate(key).opened
        running.splice(running.indexOf(key), 1)
        return `done ${key}`
      },
    })
    return { tools: { all: [...bench.tools, asking] }, running, most: () => most }
  }

  it('limits the handlers that continue after a response, and other callers get slots in turn', async () => {
    const bench = createBench()
    const { tools, running, most } = createAsking(bench)
    const options = { perUser: 2, perTool: 3, concurrent: 4, lease: '20s' } as const
    const { url } = await startTasks(bench, options, undefined, { toolsets: tools })
    const users = { eve: taskClient(url, 'eve'), ann: taskClient(url, 'ann') }
    const asked: Array<{ readonly client: TaskClient; readonly id: string }> = []
    for (const [name, count] of [
      ['eve', 8],
      ['ann', 2],
    ] as const) {
      for (let number = 0; number < count; number++) {
        asked.push({ client: users[name], id: await users[name].begin('asking', { key: `${name} ${number}` }) })
      }
    }
    for (const { client, id } of asked) await client.until(id, 'input_required')
    for (const { client, id } of asked) await client.update(id, { 'elicit-1': { action: 'decline' } })
    await eventually('as many of the tool run as can', () => running.length === 3)
    expect([...running].map(key => key.split(' ')[0]).sort()).to.deep.equal(['ann', 'eve', 'eve'])
    const bob = taskClient(url, 'bob')
    const other = await bob.begin('slow', { key: 'bob' })
    await eventually('a task of another tool begins', () => bench.began.includes('bob'))
    const late = await bob.begin('slow', { key: 'late' })
    const [first, second] = running.filter(key => key.startsWith('eve'))
    bench.open(first ?? '')
    await eventually('another of the tool continues', () => running.length === 3 && !running.includes(first ?? ''))
    expect(bench.began).not.to.include('late')
    bench.open(second ?? '')
    await eventually('a new task is next', () => bench.began.includes('late'))
    for (const key of ['bob', 'late']) bench.open(key)
    for (const id of [other, late]) expect((await bob.until(id)).status).to.equal('completed')
    for (let number = 0; number < 8; number++) bench.open(`eve ${number}`)
    for (let number = 0; number < 2; number++) bench.open(`ann ${number}`)
    for (const { client, id } of asked) expect((await client.until(id)).status).to.equal('completed')
    expect([most(), running.length]).to.deep.equal([3, 0])
  })

  it('limits handlers that continue after their cancellation', async () => {
    const bench = createBench()
    const { tools, running } = createAsking(bench)
    const { url } = await startTasks(bench, { perUser: 1, lease: '20s' }, undefined, { toolsets: tools })
    const eve = taskClient(url, 'eve')
    const cancelled = await eve.begin('asking', { key: 'cancelled' })
    await eve.until(cancelled, 'input_required')
    const task = await eve.begin('slow', { key: 'other tool' })
    const answered = await eve.begin('asking', { key: 'answered' })
    await eve.until(answered, 'input_required')
    await eve.update(answered, { 'elicit-1': { action: 'decline' } })
    await eventually('both run', () => bench.began.length === 2)
    await eve.cancel(cancelled)
    const last = await eve.begin('slow', { key: 'last' })
    bench.open('other tool')
    await eve.until(task)
    await eventually('the last one runs', () => bench.began.includes('last'))
    expect(running).to.deep.equal(['answered'])
    bench.open('answered')
    await eventually('the cancelled handler continues', () => running.includes('cancelled'))
    for (const key of ['cancelled', 'last']) bench.open(key)
    for (const id of [answered, last]) expect((await eve.until(id)).status).to.equal('completed')
    await eventually('all handlers have ended', () => running.length === 0)
  })

  it('limits handlers of a caller that ignore their cancellation', async () => {
    const bench = createBench()
    let running = 0
    let most = 0
    const deaf = defineTool({
      name: 'deaf',
      task: 'optional',
      input: { type: 'object', properties: { key: { type: 'string' } } } as const,
      async handler({ key = '' }) {
        bench.began.push(key)
        if (key !== 'bob') most = Math.max(most, ++running)
        await bench.gate(key).opened
        if (key !== 'bob') running--
        return `done ${key}`
      },
    })
    const toolsets = { all: [...bench.tools, deaf] }
    const { url } = await startTasks(bench, { perUser: 2, concurrent: 6 }, undefined, { toolsets })
    const [eve, bob] = [taskClient(url, 'eve'), taskClient(url, 'bob')]
    const firsts = [await eve.begin('deaf', { key: '0' }), await eve.begin('deaf', { key: '1' })]
    await eventually('two run', () => bench.began.length === 2)
    for (const id of firsts) await eve.cancel(id)
    for (let count = 2; count < 20; count++) await eve.cancel(await eve.begin('deaf', { key: String(count) }))
    const [next, last] = [await eve.begin('deaf', { key: 'next' }), await eve.begin('deaf', { key: 'last' })]
    const other = await bob.begin('deaf', { key: 'bob' })
    await eventually('the one of another runs', () => bench.began.includes('bob'))
    expect(bench.began).to.deep.equal(['0', '1', 'bob'])
    bench.open('bob')
    expect((await bob.until(other)).status).to.equal('completed')
    bench.open('0')
    await eventually('one more, in the place of the one that ended', () => bench.began.includes('next'))
    expect(bench.began).not.to.include('last')
    for (const key of ['1', 'next', 'last']) bench.open(key)
    for (const id of [next, last]) expect((await eve.until(id)).status).to.equal('completed')
    expect([most, running]).to.deep.equal([2, 0])
    expect(bench.began).to.have.lengthOf(5)
  })

  it('survives a store error of a subscription, without notifying the caller', async () => {
    const bench = createBench()
    const store = createMemoryTaskStore()
    const get: typeof store.get = async id => {
      const record = await store.get(id)
      return record?.outcome === undefined ? record : { ...record, outcome: 'no JSON' }
    }
    const { url, log } = await startTasks(bench, {}, { ...store, get })
    const eve = taskClient(url, 'eve')
    const broken = await eve.begin('required')
    const sound = await eve.begin('slow', { key: 'sound' })
    const listening = await eve.listen([broken, sound])
    await eventually('the log says so', () => log.some(({ code }) => code === 'MH2511'))
    const heard = await listening.next()
    expect(heard.params.taskId).to.equal(sound)
    expect((await taskClient(url, 'bob').call('plain', { key: 'b' })).status).to.equal(200)
    listening.drop()
  })

  it('finds the next task without a test of each queued task of a caller at its limit', () => {
    interface Entry extends Queued {
      readonly owner: string
    }
    const tasks = new FairQueue<Entry>()
    for (let at = 0; at < 500; at++) {
      for (const isResuming of [true, false]) tasks.add('eve', { owner: 'eve', isResuming })
    }
    const ofBob = { owner: 'bob', isResuming: false }
    tasks.add('bob', ofBob)
    let tests = 0
    const fits = ({ owner }: Entry) => {
      tests++
      return owner === 'bob'
    }
    expect([tasks.next(fits), tests]).to.deep.equal([ofBob, 3])
  })
})
