// Input requests of tasks: `inputRequests` in tasks/get and responses in tasks/update.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { refusal, type TaskClient, taskClient } from './support/task-client.ts'
import { type Bench, createBench, form, startTasks } from './support/task-tools.ts'

const accept = (name: unknown) => ({ action: 'accept', content: { name } })
const text = (task: { result: { content: Array<{ text: string }> } }) => task.result.content[0]?.text

describe('Tasks: input requests', () => {
  let url: string
  let bench: Bench
  let client: TaskClient
  before(async () => {
    bench = createBench()
    ;({ url } = await startTasks(bench, { maxSize: '16kb' }))
    client = taskClient(url)
  })
  after(stopHosts)

  it('set the status `input_required` until they are answered', async () => {
    const taskId = await client.begin('ask')
    const asking = await client.until(taskId, 'input_required')
    const params = { message: 'Who?', requestedSchema: form }
    expect(asking.inputRequests).to.deep.equal({ 'elicit-1': { method: 'elicitation/create', params } })
    expect(asking).not.to.have.any.keys('result', 'error', 'requestState')
    expect((await client.get(taskId)).inputRequests).to.deep.equal(asking.inputRequests)
    await client.update(taskId, { 'elicit-1': accept('Ann') })
    const over = await client.until(taskId)
    expect(text(over)).to.equal('hello Ann')
    expect(over).not.to.have.property('inputRequests')
  })

  it('accept responses one at a time and keep the others open', async () => {
    const taskId = await client.begin('ask-twice')
    const asking = await eventually(
      'both questions are there',
      () => client.get(taskId),
      task => Object.keys(task.inputRequests ?? {}).length === 2,
    )
    const keys = Object.fromEntries(
      Object.entries<{ params: { message: string } }>(asking.inputRequests).map(([key, { params }]) => [
        params.message,
        key,
      ]),
    )
    await client.update(taskId, { [keys['Two?'] ?? '']: accept('Bob') })
    const left = await client.get(taskId)
    expect(left.status).to.equal('input_required')
    expect(Object.keys(left.inputRequests)).to.deep.equal([keys['One?']])
    await client.update(taskId, { [keys['One?'] ?? '']: accept('Ann') })
    expect(text(await client.until(taskId))).to.equal('Ann and Bob')
  })

  it('repeat under another key after an invalid response', async () => {
    const taskId = await client.begin('ask')
    const wrong = [accept(7), { action: 'accept' }, 'Ann', null, { action: 'maybe' }]
    const keys: string[] = []
    for (const answer of wrong) {
      const asking = await eventually(
        'a question of a new key is there',
        () => client.get(taskId),
        task => task.inputRequests && !Object.keys(task.inputRequests).some(key => keys.includes(key)),
      )
      keys.push(...Object.keys(asking.inputRequests))
      await client.update(taskId, { [keys.at(-1) ?? '']: answer })
    }
    const asking = await client.until(taskId, 'input_required')
    const [key = ''] = Object.keys(asking.inputRequests)
    expect(new Set([...keys, key])).to.have.lengthOf(wrong.length + 1)
    await client.update(taskId, { [keys[0] ?? '']: accept('late'), [key]: accept('Ann') })
    expect(text(await client.until(taskId))).to.equal('hello Ann')
  })

  it('ignore unknown responses and accept only the first one', async () => {
    const taskId = await client.begin('ask-then-wait', { key: 'first' })
    await client.until(taskId, 'input_required')
    for (const responses of [{}, { unknown: accept('x') }, { toString: accept('x') }, { 'elicit-2': accept('x') }]) {
      const { message } = await client.update(taskId, responses)
      expect(message.result).to.include({ resultType: 'complete' })
    }
    expect((await client.get(taskId)).status).to.equal('input_required')
    await client.update(taskId, { 'elicit-1': accept('Ann') })
    await client.update(taskId, { 'elicit-1': accept('Bob') })
    bench.open('first')
    expect(text(await client.until(taskId))).to.equal('done first for Ann')
  })

  it('reject responses that are not an object, or too many', async () => {
    const taskId = await client.begin('ask')
    await client.until(taskId, 'input_required')
    for (const responses of [undefined, null, 'x', [accept('x')], 1]) {
      const answer = await client.update(taskId, responses as never)
      expect(answer.message.error?.code, JSON.stringify(responses)).to.equal(-32602)
    }
    expect(refusal(await client.update(taskId, { 'elicit-1': accept('x'.repeat(17_000)) }))).to.deep.equal([
      413, -32000,
    ])
    expect((await client.get(taskId)).status).to.equal('input_required')
  })

  it("support sampling and roots under the handler's keys", async () => {
    const taskId = await client.begin('ask-all')
    const first = await client.until(taskId, 'input_required')
    expect(first.inputRequests['sample-1'].method).to.equal('sampling/createMessage')
    const content = { type: 'text', text: 'x' }
    await client.update(taskId, { 'sample-1': { model: 'm', role: 'assistant', content } })
    const second = await eventually(
      'it asks for roots',
      () => client.get(taskId),
      task => task.inputRequests?.['places-1'],
    )
    expect(second.inputRequests).to.deep.equal({ 'places-1': { method: 'roots/list', params: {} } })
    await client.update(taskId, { 'places-1': { roots: [{ uri: 'file:///a' }] } })
    expect(text(await client.until(taskId))).to.equal('m file:///a')
  })

  it('are not sent to clients without the capability', async () => {
    const silent = taskClient(url, undefined, {})
    const over = await silent.until(await silent.begin('ask'))
    expect(over).to.deep.include({ status: 'completed' })
    expect(over.result.isError).to.equal(true)
    expect(text(over)).to.include('elicitation')
  })
})

describe('Tasks: a task that waits for input', () => {
  afterEach(stopHosts)

  it('holds no slot of its tool, for tasks and for plain calls', async () => {
    const bench = createBench()
    const ask = defineTool({
      name: 'confirm',
      task: 'optional',
      concurrency: 1,
      input: { type: 'object', properties: { ask: { type: 'boolean' } } } as const,
      handler: async ({ ask = true }, { elicit }) =>
        ask ? (await elicit({ message: 'Sure?', requestedSchema: form })).action : 'done',
    })
    const { url } = await startTasks(bench, {}, undefined, { toolsets: { all: [ask] } })
    const [ann, bob] = [taskClient(url, 'ann'), taskClient(url, 'bob')]
    const waiting = []
    for (let count = 0; count < 4; count++) waiting.push(await ann.begin('confirm'))
    for (const id of waiting) await ann.until(id, 'input_required')
    const plain = await modern(url, 'tools/call', { name: 'confirm', arguments: { ask: false } })
    expect(text(plain.message)).to.equal('done')
    expect(text(await bob.until(await bob.begin('confirm', { ask: false })))).to.equal('done')
    expect(text(await ann.until(await ann.begin('confirm', { ask: false })))).to.equal('done')
    for (const id of waiting) await ann.update(id, { 'elicit-1': { action: 'decline' } })
    for (const id of waiting) expect(text(await ann.until(id))).to.equal('decline')
  })

  it('uses none of the time of the call', async () => {
    const clock = createManualClock()
    const bench = createBench()
    const { url } = await startTasks(bench, {}, undefined, { tools: { callTimeout: '1m' } }, { clock })
    const client = taskClient(url)
    const taskId = await client.begin('ask-then-wait', { key: '1' })
    await client.until(taskId, 'input_required')
    await clock.advance(10 * 60_000)
    expect((await client.get(taskId)).status).to.equal('input_required')
    await client.update(taskId, { 'elicit-1': accept('Ann') })
    await eventually('it goes on', () => bench.began.length === 1)
    await clock.advance(59_000)
    expect((await client.get(taskId)).status).to.equal('working')
    await clock.advance(2_000)
    const over = await client.until(taskId)
    expect(text(over as never)).to.include('stopped after 60000 ms')
  })
})

describe('Tasks: input requests before the task', () => {
  let url: string
  let client: TaskClient
  before(async () => {
    ;({ url } = await startTasks(createBench()))
    client = taskClient(url)
  })
  after(stopHosts)

  it('precede the task, which is created after the response', async () => {
    const first = (await client.call('before')).message.result
    expect(first).to.include({ resultType: 'input_required' }).and.not.to.have.property('taskId')
    const { requestState } = first
    const again = { requestState, inputResponses: { 'elicit-1': accept('Ann') } }
    const { result } = (await client.call('before', {}, again)).message
    expect(result).to.include({ resultType: 'task', status: 'working' })
    expect(result).not.to.have.any.keys('requestState', 'inputRequests')
    expect(text(await client.until(result.taskId))).to.equal('before Ann')
  })

  it('run in the call with its responses for clients without tasks', async () => {
    const meta = { [META.clientCapabilities]: { elicitation: {} } }
    const call = (more: object = {}) => modern(url, 'tools/call', { name: 'before', arguments: {}, ...more }, { meta })
    const { requestState, resultType } = (await call()).message.result
    expect(resultType).to.equal('input_required')
    const { message } = await call({ requestState, inputResponses: { 'elicit-1': accept('Ann') } })
    expect(message.result).to.include({ resultType: 'complete' })
    expect(text(message)).to.equal('before Ann')
  })
})
