// Task limits per caller across URLs, IPv6 networks and cancellations.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { createMemoryTaskStore } from '../../../core/tasks/memory-task-store.ts'
import { META } from '../../../core/transport.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { TASKS, taskClient } from './support/task-client.ts'
import { createBench, form, startTasks } from './support/task-tools.ts'

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
    for (let host = 1; host <= 40; host++) {
      statuses.push(await call(`2001:db8:1:2::${host.toString(16)}`, `e${host}`))
    }
    expect(countsOf(statuses)).to.deep.equal({ 200: 2, 429: 38 })
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
    await eventually('the log says so', () => log.some(({ message }) => message?.includes('could not be told')))
    const heard = await listening.next()
    expect(heard.params.taskId).to.equal(sound)
    expect((await taskClient(url, 'bob').call('plain', { key: 'b' })).status).to.equal(200)
    listening.drop()
  })
})
