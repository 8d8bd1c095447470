// The task lifecycle over HTTP, from tools/call to completion, for clients of 2026-07-28.
import { expect } from 'chai'
import { META } from '../../../core/transport.ts'
import { eventually } from '../../support/eventually.ts'
import { legacy, modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { expectMissing, refusal, TASKS, type TaskClient, taskClient } from './support/task-client.ts'
import { type Bench, createBench, startTasks } from './support/task-tools.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const text = (task: { result: { content: Array<{ text: string }> } }) => task.result.content[0]?.text

let url: string
let bench: Bench
let client: TaskClient

/** Each group of tests has a host of its own. */
function serveTasks() {
  before(async () => {
    bench = createBench()
    ;({ url } = await startTasks(bench))
    client = taskClient(url)
  })
  after(stopHosts)
}

describe('Tasks: tools/call', () => {
  serveTasks()

  it('returns a task immediately', async () => {
    const { status, message } = await client.call('slow', { key: 'a' })
    const { _meta, ...result } = message.result
    expect(status).to.equal(200)
    expect(_meta).to.have.property(META.serverInfo)
    expect(result).to.have.all.keys(
      'resultType',
      'taskId',
      'status',
      'createdAt',
      'lastUpdatedAt',
      'ttlMs',
      'pollIntervalMs',
    )
    expect(result).to.include({ resultType: 'task', status: 'working', ttlMs: 3_600_000, pollIntervalMs: 20 })
    expect(result.createdAt).to.match(ISO)
    expect(result.lastUpdatedAt).to.match(ISO)
    expect(Buffer.from(result.taskId, 'base64url')).to.have.lengthOf.at.least(16)
    const found = await client.get(result.taskId)
    expect(found).to.include({ resultType: 'complete', taskId: result.taskId, status: 'working' })
    bench.open('a')
    const over = await client.until(result.taskId)
    expect(over)
      .to.include({ resultType: 'complete', status: 'completed' })
      .and.not.to.have.any.keys('error', 'inputRequests')
    expect(text(over)).to.equal('done a')
    expect(over.createdAt).to.equal(result.createdAt)
  })

  it('creates no task if the request does not declare the extension', async () => {
    bench.open('b')
    const { message } = await modern(url, 'tools/call', { name: 'slow', arguments: { key: 'b' } })
    expect(message.result).to.include({ resultType: 'complete' })
    expect(text(message)).to.equal('done b')
    expectMissing(await modern(url, 'tools/call', { name: 'required', arguments: { key: 'b' } }))
  })

  it('runs without a task in older protocol versions', async () => {
    const session = await openSession(url, { capabilities: { extensions: { [TASKS]: {} } } })
    for (const name of ['required', 'slow']) {
      const { message } = await session.request('tools/call', { name, arguments: { key: 'b' } })
      expect(message.result).to.deep.equal({ content: [{ type: 'text', text: 'done b' }] })
    }
    await session.end?.()
    expect((await legacy(url, 'tools/call', { name: 'required' })).status, 'no session').to.equal(400)
  })

  it('creates no task for invalid arguments or a tool without `task`', async () => {
    const wrong = await client.call('slow', { key: 1 })
    expect(wrong.message.result).to.include({ resultType: 'complete', isError: true })
    const plain = await client.call('plain', { key: 'c' }, { task: { ttl: 60_000 } })
    expect(plain.message.result).to.include({ resultType: 'complete' }).and.not.to.have.property('taskId')
    bench.open('c')
    const hinted = await client.call('slow', { key: 'c' }, { task: { ttl: 1 } })
    expect(hinted.message.result.ttlMs).to.equal(3_600_000)
    expect((await client.until(hinted.message.result.taskId)).status).to.equal('completed')
  })

  it('is declared by server/discover on routes with the plugin', async () => {
    const { result } = (await modern(url, 'server/discover')).message
    expect(result.capabilities.extensions).to.deep.equal({ [TASKS]: {} })
    expect(result.capabilities).not.to.have.property('tasks')
    const off = (await modern(`${url}/off`, 'server/discover')).message.result
    expect(off.capabilities).not.to.have.property('extensions')
  })

  it('ends `completed` on a tool error and `failed` on a protocol error', async () => {
    const wrong = await client.until(await client.begin('wrong'))
    expect(wrong).to.include({ status: 'completed' }).and.not.to.have.property('error')
    expect(wrong.result).to.deep.include({ isError: true, content: [{ type: 'text', text: 'the printer is on fire' }] })
    const refused = await client.until(await client.begin('refuses'))
    expect(refused).to.include({ status: 'failed' }).and.not.to.have.property('result')
    expect(refused.error).to.deep.equal({
      code: -32602,
      message: 'Invalid params: not like this',
      data: { part: 'all' },
    })
    expect(refused.statusMessage).to.equal('Invalid params: not like this')
  })

  it('reports progress messages as statusMessage, without progress or log notifications', async () => {
    const taskId = await client.begin('reports', { key: 'd' })
    const told = await eventually(
      'the words are there',
      () => client.get(taskId),
      task => task.statusMessage,
    )
    expect(told).to.include({ status: 'working', statusMessage: 'half of it' })
    const listening = await client.listen([taskId])
    bench.open('d')
    const heard = []
    for (let status = ''; status !== 'completed'; status = heard.at(-1).params.status)
      heard.push(await listening.next())
    expect(new Set(heard.map(({ method }) => method))).to.deep.equal(new Set(['notifications/tasks']))
    expect(heard.at(-1).params).not.to.have.property('statusMessage')
    expect(await client.get(taskId)).not.to.have.property('statusMessage')
    listening.drop()
  })

  it('runs with the caller’s identity and without the caller’s headers', async () => {
    const ann = taskClient(url, 'ann')
    const task = await ann.until(await ann.begin('who'))
    const [user, headers, meta] = JSON.parse(text(task) ?? '')
    const issuer = 'urn:mcp-host:plugin:identify'
    expect(user).to.deep.equal({ issuer, subject: 'ann', scopes: [], roles: [], claims: {} })
    expect(headers).to.deep.equal({})
    expect(meta[META.clientInfo]).to.deep.equal({ name: 'test-client', version: '0.0.1' })
  })
})

describe('Tasks: methods', () => {
  serveTasks()

  const METHODS = { 'tasks/get': {}, 'tasks/update': { inputResponses: {} }, 'tasks/cancel': {} }

  it('answer -32602 for unknown and invalid task ids', async () => {
    const unknown = await client.begin('required')
    const other = `${unknown.slice(0, -2)}${unknown.endsWith('AA') ? 'BB' : 'AA'}`
    const long = 'x'.repeat(2_000)
    for (const [method, params] of Object.entries(METHODS)) {
      for (const taskId of [other, 'x', long, '../../x']) {
        const { message } = await client.about(method, taskId, params)
        expect(message.error.code, `${method} ${taskId}`).to.equal(-32602)
        expect(message.error.message).to.include('the task does not exist').and.not.to.include('xx')
      }
      for (const taskId of [undefined, 1, null, {}]) {
        const { message } = await client.send(method, { ...params, taskId })
        expect([-32602, -32020], `${method} ${taskId}`).to.include(message.error.code)
      }
    }
  })

  it('require a client that declares the extension', async () => {
    const taskId = await client.begin('required')
    for (const [method, params] of Object.entries(METHODS)) {
      expectMissing(await modern(url, method, { taskId, ...params }, { headers: { 'Mcp-Name': taskId } }))
    }
    expectMissing(await modern(url, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }))
  })

  it('require the task id in the Mcp-Name header', async () => {
    const taskId = await client.begin('required')
    for (const [method, params] of Object.entries(METHODS)) {
      for (const name of ['other', undefined]) {
        const answer = await client.send(method, { taskId, ...params }, { 'Mcp-Name': name })
        expect(refusal(answer), method).to.deep.equal([400, -32020])
      }
    }
  })

  it('do not include tasks/result and tasks/list', async () => {
    for (const method of ['tasks/result', 'tasks/list']) {
      expect(refusal(await client.send(method, { taskId: 'x' })), method).to.deep.equal([404, -32601])
    }
  })

  it('acknowledge with an empty result, and cancel also after completion', async () => {
    const empty = ({ message }: Awaited<ReturnType<TaskClient['cancel']>>) => {
      const { _meta, ...rest } = message.result
      expect(rest).to.deep.equal({ resultType: 'complete' })
    }
    const over = await client.begin('required')
    await client.until(over)
    empty(await client.cancel(over))
    expect((await client.get(over)).status).to.equal('completed')
    empty(await client.update(over, { 'elicit-1': { action: 'accept' } }))

    const running = await client.begin('slow', { key: 'run' })
    await eventually('it runs', () => bench.began.includes('run'))
    empty(await client.update(running, { unknown: {}, __proto__: {} }))
    empty(await client.cancel(running))
    expect(await client.until(running))
      .to.include({ status: 'cancelled' })
      .and.not.to.have.any.keys('result', 'error')
    await eventually('its handler hears of it', () => bench.aborted.includes('run'))

    const waiting = await client.begin('ask')
    await client.until(waiting, 'input_required')
    empty(await client.cancel(waiting))
    expect(await client.until(waiting))
      .to.include({ status: 'cancelled' })
      .and.not.to.have.property('inputRequests')
    empty(await client.update(waiting, { 'elicit-1': { action: 'accept', content: { name: 'Ann' } } }))
    expect((await client.get(waiting)).status).to.equal('cancelled')
  })

  it('list the caller’s tasks in pages, newest first, and none for anonymous callers', async () => {
    const ann = taskClient(url, 'ann')
    const bob = taskClient(url, 'bob')
    const ids: string[] = []
    for (let index = 0; index < 51; index++) ids.push(await ann.begin('required'))
    const [own, other] = [await ann.send('io.mcp-host/tasks/list', {}), await bob.send('io.mcp-host/tasks/list', {})]
    expect(other.message.result.tasks).to.deep.equal([])
    const { tasks, nextCursor } = own.message.result
    expect(tasks).to.have.lengthOf(50)
    expect(tasks[0])
      .to.include({ tool: 'required', taskId: ids.at(-1) })
      .and.to.have.property('status')
    const { result } = (await ann.send('io.mcp-host/tasks/list', { cursor: nextCursor })).message
    expect([...tasks, ...result.tasks].map(({ taskId }) => taskId)).to.deep.equal([...ids].reverse())
    expect(result).not.to.have.property('nextCursor')
    expect((await client.send('io.mcp-host/tasks/list', {})).message.result.tasks).to.deep.equal([])
    for (const cursor of ['x', 1, '9'.repeat(30)]) {
      expect((await ann.send('io.mcp-host/tasks/list', { cursor })).message.error.code).to.equal(-32602)
    }
  })
})
