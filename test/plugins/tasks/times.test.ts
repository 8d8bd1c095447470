// Task expiry and time limits, caller tokens, and configuration errors.

import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { type Config, defineTool } from '../../../core/index.ts'
import { plugin, withPlugins } from '../../fixtures/plugins.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { createMemoryTaskStore } from './support/memory-task-store.ts'
import { taskClient } from './support/task-client.ts'
import { createBench, startTasks, type TaskOptions } from './support/task-tools.ts'

const BEGINS_OUTSIDE = fileURLToPath(new URL('../../isolated/begins-outside.ts', import.meta.url))

/** A store of several nodes that can lose all that it has, and tells that something may have been missed. */
function sharedMemory(now?: () => number) {
  const store = createMemoryTaskStore(undefined, now)
  const lost = new Set<string>()
  const kept = new Set<string>()
  const listeners = new Set<Parameters<typeof store.watch>[0]>()
  const tellMissed = () => {
    for (const tell of listeners) tell(undefined)
  }
  return {
    ...store,
    shared: true,
    create: ((task, bounds) => {
      kept.add(task.id)
      return store.create(task, bounds)
    }) as typeof store.create,
    get: (async id => (lost.has(id) ? undefined : store.get(id))) as typeof store.get,
    getSummary: (async id => (lost.has(id) ? undefined : store.getSummary(id))) as typeof store.getSummary,
    watch: (tell => {
      listeners.add(tell)
      return store.watch(tell)
    }) as typeof store.watch,
    tellMissed,
    forget() {
      for (const id of kept) lost.add(id)
      tellMissed()
    },
  }
}

describe('Tasks: expiry', () => {
  afterEach(stopHosts)

  it('occurs after ttlMs, which is extended on completion', async () => {
    const bench = createBench()
    const clock = createManualClock()
    const { url } = await startTasks(bench, { ttl: '3s' }, undefined, {}, { clock })
    const client = taskClient(url)
    const taskId = await client.begin('slow', { key: '1' })
    const before = await client.get(taskId)
    expect(before.ttlMs).to.equal(3_000)
    await eventually('it runs', () => bench.began.length === 1)
    bench.open('1')
    const over = await client.until(taskId)
    expect(over.ttlMs).to.be.at.least(before.ttlMs)
    const left = Date.parse(over.createdAt) + over.ttlMs - clock.now()
    await clock.advance(left - 1)
    expect((await client.get(taskId)).status).to.equal('completed')
    await clock.advance(1)
    expect((await client.about('tasks/get', taskId)).message.error.code).to.equal(-32602)
    expect((await client.cancel(taskId)).message.error.code).to.equal(-32602)
  })

  it('fails a task beyond its time limit, aborts the handler, and notifies subscribers', async () => {
    const bench = createBench()
    const clock = createManualClock()
    const { url } = await startTasks(bench, { ttl: '2s' }, undefined, {}, { clock })
    const client = taskClient(url)
    const taskId = await client.begin('slow', { key: '1' })
    const listening = await client.listen([taskId])
    await eventually('it runs', () => bench.began.length === 1)
    await clock.advance(2_000)
    const heard = []
    for (let over = false; !over; over = heard.at(-1).params.status === 'failed') heard.push(await listening.next())
    expect(heard.at(-1).params.error).to.include({ code: -32603 })
    expect(heard.at(-1).params.statusMessage).to.include('took too long')
    await eventually('its handler hears of it', () => bench.aborted.length === 1)
    listening.drop()
  })

  it('expires queued tasks and notifies subscribers', async () => {
    const bench = createBench()
    const clock = createManualClock()
    const { url } = await startTasks(bench, { ttl: '2s', role: 'front' }, sharedMemory(clock.now), {}, { clock })
    const client = taskClient(url)
    const taskId = await client.begin('slow', { key: '1' })
    const listening = await client.listen([taskId])
    const heard = [await listening.next()]
    // The host checks a task a moment after its expiry.
    await clock.advance(5_000)
    for (let over = false; !over; over = heard.at(-1).params.status === 'failed') heard.push(await listening.next())
    expect(heard.at(-1).params).to.include({ taskId, status: 'failed' }).and.to.have.property('statusMessage')
    expect(heard.at(-1).params.error).to.deep.include({ code: -32603, data: { reason: 'task-lost' } })
    expect([heard.length, bench.began.length]).to.deep.equal([2, 0])
    expect((await client.about('tasks/get', taskId)).message.error.code).to.equal(-32602)
    listening.drop()
  })

  it('notifies subscribers once if the store lost all tasks, except finished ones', async () => {
    const bench = createBench()
    const store = sharedMemory()
    const { url } = await startTasks(bench, {}, store)
    const client = taskClient(url)
    const [waits, over] = [await client.begin('slow', { key: '1' }), await client.begin('slow', { key: '2' })]
    await eventually('both run', () => bench.began.length === 2)
    bench.open('2')
    await client.until(over)
    const listening = await client.listen([waits, over])
    const heard = [await listening.next(), await listening.next()]
    expect(heard.map(({ params }) => params.status).sort()).to.deep.equal(['completed', 'working'])
    store.forget()
    const told = await listening.next()
    expect(told.params).to.include({ taskId: waits, status: 'failed' })
    store.tellMissed()
    const next = await client.begin('slow', { key: '3' })
    expect(next).to.be.a('string')
    listening.drop()
  })

  it('is independent of the caller’s token, which is not stored', async () => {
    const bench = createBench()
    const store = createMemoryTaskStore()
    const bodies: string[] = []
    const kept = {
      ...store,
      create: ((task, bounds) => {
        bodies.push(task.body)
        return store.create(task, bounds)
      }) as typeof store.create,
    }
    const expiresAt = Date.now() + 300
    const identify = plugin(
      host =>
        host.authenticate(async (ctx, next) => {
          const token = ctx.get('authorization')
          if (token !== '') ctx.state.user = { subject: 'ann', scopes: ['a'], roles: [], claims: {}, expiresAt }
          await next()
        }),
      { provides: ['user'] },
    )
    const { url } = await startTasks(bench, {}, kept, { plugins: { identify } })
    const client = taskClient(url)
    const secret = { Authorization: 'Bearer a-secret', 'Mcp-Name': 'slow', Cookie: 'session=a-secret' }
    const { message } = await client.send('tools/call', { name: 'slow', arguments: { key: '1' } }, secret)
    const { taskId } = message.result
    await eventually('the token has expired, and it runs', () => Date.now() > expiresAt && bench.began.length === 1)
    bench.open('1')
    const over = async () =>
      (await client.send('tasks/get', { taskId }, { ...secret, 'Mcp-Name': taskId })).message.result
    await eventually('it ends', over, task => task?.status === 'completed')
    const issuer = 'urn:mcp-host:plugin:identify'
    expect(bench.seen[0]?.user).to.deep.equal({ issuer, subject: 'ann', scopes: ['a'], roles: [], claims: {} })
    expect(bodies).to.have.lengthOf(1)
    for (const word of ['a-secret', 'Bearer', 'expiresAt', 'authorization', 'cookie']) {
      expect(bodies[0]?.toLowerCase()).not.to.include(word.toLowerCase())
    }
  })
})

describe('Tasks: configuration errors', () => {
  const later = defineTool({ name: 'later', task: 'optional', handler: () => 'x' })
  const withTasks = (tasks: TaskOptions) => withPlugins({ tasks }, { toolsets: { all: [later] } })

  it('fails startup for a role without a shared store, and for invalid options', async () => {
    for (const role of ['front', 'worker'] as const) {
      await expectStopped(withTasks({ role }), 'tasks are kept in this process only')
    }
    const store = plugin(host => host.provide('taskStore', { ...createMemoryTaskStore(), shared: 'host' }), {
      provides: ['taskStore'],
    })
    const ofFile = withPlugins({ tasks: { role: 'front' }, store }, { toolsets: { all: [later] } })
    await expectStopped(ofFile, 'tasks are kept in a file of this host only')
    for (const lease of ['100ms', '21s', '1h']) await expectStopped(withTasks({ lease }), /300ms.*20s/)
    await expectStopped(withTasks({ perUser: 0 }), 'perUser')
    await expectStopped(withTasks({ ttl: 'soon' }), 'ttl')
  })

  it('fails startup with several processes and separate stores', async () => {
    const config: Config = {
      server: { name: 'tests', version: '1' },
      secrets: ['a secret for tests that is long enough to be one'],
      ...withTasks({}),
      routes: { '/': { toolsets: 'all', stateless: true } },
    }
    const error = await rejectionOf(createHost(config, { processes: 2, purpose: 'inspect' }))
    expect(String(error))
      .to.match(/cluster-redis/)
      .and.include('without --workers')
    await createHost(config, { processes: 1, purpose: 'inspect' })
  })

  it('fails startup for an isolated tool with `task.before`', async () => {
    await expectStopped(withPlugins({ tasks: {} }, { toolsets: { all: BEGINS_OUTSIDE } }), /`isolate`.*`task\.before`/)
  })

  it('fails startup for a tool with `task.before` that tools.limits isolates', async () => {
    const tools = { limits: { 'be*': { isolate: true } } } as const
    const before = BEGINS_OUTSIDE.replace('begins-outside', 'before-task')
    await expectStopped(
      withPlugins({ tasks: {} }, { toolsets: { all: before }, tools }),
      /"before".*isolated.*`task\.before`/,
    )
  })

  it('names the plugin if a tool has `task` but the plugin is disabled', async () => {
    await expectStopped(
      withPlugins({}, { toolsets: { all: [later] } }),
      'tool "later" has `task`, which no plugin reads',
    )
  })

  it('warns that a restart loses tasks in a single process', async () => {
    const { log } = await startHost(withTasks({}))
    expect(log.some(({ code }) => code === 'MH2502')).to.equal(true)
    await stopHosts()
  })
})
