// Task ownership by user and URL, and limits on the number of tasks.

import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { createMemoryTaskStore } from './support/memory-task-store.ts'
import { refusal, type TaskClient, taskClient } from './support/task-client.ts'
import { createBench, startTasks } from './support/task-tools.ts'

/** A store that counts what it is asked. */
function countingStore() {
  const store = createMemoryTaskStore()
  const counts: Record<string, number> = {}
  const count =
    <Args extends unknown[], Value>(name: string, act: (...args: Args) => Value) =>
    (...args: Args): Value => {
      counts[name] = (counts[name] ?? 0) + 1
      return act(...args)
    }
  const counted = {
    ...store,
    get: count('get', store.get),
    getSummary: count('look', store.getSummary),
    addResponses: count('answer', store.addResponses),
    cancel: count('cancel', store.cancel),
  }
  return { store: counted, counts }
}

describe('Tasks: ownership', () => {
  const bench = createBench()
  const { store, counts } = countingStore()
  let url: string
  let ann: TaskClient
  before(async () => {
    ;({ url } = await startTasks(bench, {}, store))
    ann = taskClient(url, 'ann')
  })
  after(stopHosts)

  it('limits a task to its user, and others get the same response as for unknown ids', async () => {
    const taskId = await ann.begin('ask')
    await ann.until(taskId, 'input_required')
    const strangers: Record<string, TaskClient> = {
      'another user': taskClient(url, 'bob'),
      'one whose name begins so': taskClient(url, 'annie'),
      nobody: taskClient(url),
      'the same at another address': taskClient(`${url}/other`, 'ann'),
    }
    const unknown = `${taskId.slice(0, -2)}zz`
    for (const [who, stranger] of Object.entries(strangers)) {
      for (const [method, params] of Object.entries({
        'tasks/get': {},
        'tasks/update': { inputResponses: { 'elicit-1': { action: 'decline' } } },
        'tasks/cancel': {},
      })) {
        const answers = []
        const costs = []
        for (const id of [taskId, unknown]) {
          const begun = { ...counts }
          const { status, message } = await stranger.about(method, id, params)
          answers.push([status, message.error])
          costs.push(['look', 'get'].map(name => (counts[name] ?? 0) - (begun[name] ?? 0)))
        }
        expect(answers[0], `${who}: ${method}`).to.deep.equal(answers[1])
        expect(answers[0]?.[1]).to.include({ code: -32602 })
        expect(costs, `${who}: ${method}`).to.deep.equal([
          [1, 0],
          [1, 0],
        ])
      }
      const listening = await stranger.listen([taskId])
      expect(listening.acknowledged, who).to.deep.equal({})
      listening.drop()
    }
    expect([counts['answer'], counts['cancel']]).to.deep.equal([undefined, undefined])
    expect((await ann.get(taskId)).status).to.equal('input_required')
    await ann.cancel(taskId)
  })

  it('lets anyone with the id access an anonymous task, on the same URL', async () => {
    const taskId = await taskClient(url).begin('required')
    expect((await taskClient(url).until(taskId)).status).to.equal('completed')
    expect((await ann.about('tasks/get', taskId)).message.error.code).to.equal(-32602)
    expect((await taskClient(`${url}/other`).about('tasks/get', taskId)).message.error.code).to.equal(-32602)
  })

  it('uses random task ids', async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => taskClient(url).begin('required')))
    expect(new Set(ids)).to.have.lengthOf(12)
    for (const id of ids) expect(Buffer.from(id.slice(0, 32), 'base64url')).to.have.lengthOf(24)
    expect(new Set(ids.map(id => id.slice(0, 4)))).to.have.lengthOf.above(9)
  })
})

describe('Tasks: limits', () => {
  afterEach(stopHosts)

  it('refuse open tasks beyond the user limit with 429 until some end', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench, { openPerUser: 3 })
    const [ann, bob] = [taskClient(url, 'ann'), taskClient(url, 'bob')]
    const ids = []
    for (const key of ['1', '2', '3']) ids.push(await ann.begin('slow', { key }))
    const refused = await ann.call('slow', { key: '4' })
    expect(refusal(refused)).to.deep.equal([429, -32600])
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/)
    await bob.begin('slow', { key: '5' })
    await ann.cancel(ids[0] ?? '')
    await ann.begin('slow', { key: '6' })
    expect(bench.began).not.to.include('4')
  })

  it('count finished tasks until they expire, with a total limit', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench, { openPerUser: 1, kept: 12 })
    const ann = taskClient(url, 'ann')
    for (let count = 0; count < 10; count++) await ann.until(await ann.begin('required'))
    expect(refusal(await ann.call('required'))).to.deep.equal([429, -32600])
    for (const user of ['bob', 'eve']) await taskClient(url, user).begin('required')
    expect(refusal(await taskClient(url, 'dan').call('required'))).to.deep.equal([503, -32603])
  })

  it('queue running tasks beyond the user and tool limits, and cancel queued ones', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench, { perUser: 1, perTool: 2 })
    const [ann, bob, eve] = [taskClient(url, 'ann'), taskClient(url, 'bob'), taskClient(url, 'eve')]
    const ids = []
    for (const key of ['a1', 'a2', 'a3']) ids.push(await ann.begin('slow', { key }))
    await eventually('the first runs', () => bench.began.length === 1)
    const others = [await bob.begin('slow', { key: 'b1' }), await eve.begin('slow', { key: 'e1' })]
    await eventually('one of another user runs beside it', () => bench.began.length === 2)
    expect(bench.began).to.deep.equal(['a1', 'b1'])
    expect((await eve.get(others[1] ?? '')).status).to.equal('working')
    await ann.cancel(ids[1] ?? '')
    bench.open('a1')
    await eventually('the next by turns', () => bench.began.length === 3)
    expect(bench.began).to.deep.equal(['a1', 'b1', 'a3'])
    bench.open('b1')
    await eventually('the last', () => bench.began.length === 4)
    expect(bench.began).to.deep.equal(['a1', 'b1', 'a3', 'e1'])
    for (const key of ['a3', 'e1']) bench.open(key)
    expect((await ann.until(ids[2] ?? '')).status).to.equal('completed')
    expect(bench.began).not.to.include('a2')
  })

  it('limit running tasks per process, except tasks that wait for input until they continue', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench, { concurrent: 1 })
    const client = taskClient(url)
    const asking = await client.begin('ask')
    await client.until(asking, 'input_required')
    await client.begin('slow', { key: '1' })
    await eventually('one runs beside the one that asks', () => bench.began.length === 1)
    const next = await client.begin('slow', { key: '2' })
    await client.update(asking, { 'elicit-1': { action: 'accept', content: { name: 'Ann' } } })
    bench.open('1')
    await client.until(asking)
    bench.open('2')
    expect((await client.until(next)).status).to.equal('completed')
  })

  it('keep the slot of a cancelled handler until it ends', async () => {
    const bench = createBench()
    const { url } = await startTasks(bench)
    const client = taskClient(url)
    const first = await client.begin('stubborn', { key: '1' })
    await eventually('it runs', () => bench.began.length === 1)
    await client.cancel(first)
    expect((await client.until(first)).status).to.equal('cancelled')
    const second = await client.begin('stubborn', { key: '2' })
    await client.begin('required')
    expect(bench.began).to.deep.equal(['1'])
    for (const key of ['1', '2']) bench.open(key)
    expect((await client.until(second)).status).to.equal('completed')
  })

  it('refuse oversized calls, and fail oversized results', async () => {
    const { url } = await startTasks(createBench(), { maxSize: '8kb' })
    const client = taskClient(url)
    expect(refusal(await client.call('large', { text: 'x'.repeat(9_000) }))).to.deep.equal([413, -32000])
    const fits = await client.until(await client.begin('large', { size: 7_000 }))
    expect(fits.status).to.equal('completed')
    const large = await client.until(await client.begin('large', { size: 9_000 }))
    expect(large).to.include({ status: 'failed' })
    expect(large.error.code).to.equal(-32603)
    expect(large.error.message).to.match(/8192 bytes/)
  })

  it('refuse new tasks when the in-memory store is full, until tasks expire', async () => {
    let now = Date.now()
    const store = createMemoryTaskStore(64_000, () => now)
    const bench = createBench()
    const { url } = await startTasks(bench, { ttl: '1m' }, store)
    const client = taskClient(url)
    const [text, begun, refused] = ['x'.repeat(8_000), [] as string[], new Map<string, number>()]
    for (let index = 0; index < 24; index++) {
      // Each less than one holder may have.
      const one = taskClient(url, `user ${index}`)
      const answer = await one.call('slow', { key: 'never', text })
      if (answer.status === 200) begun.push(answer.message.result.taskId)
      else refused.set(`user ${index}`, answer.status)
    }
    expect([...new Set(refused.values())]).to.deep.equal([503])
    expect(begun.length).to.be.within(4, 8)
    now += 120_000
    expect((await client.until(await client.begin('large', { size: 1, text }))).status).to.equal('completed')
  })
})

describe('Tasks: tools of one name, and tools from configureSession', () => {
  afterEach(stopHosts)
  after(async () => {
    await stopReloading()
    await removeFolders()
  })

  it('run with what configureSession offered to their call', async () => {
    const tool = (name: string) => defineTool({ name, task: 'required', handler: () => `ran ${name}` })
    const [extra, secret] = [tool('extra'), tool('secret')]
    const seen: unknown[] = []
    const { url } = await startTasks(createBench(), {}, undefined, {
      toolsets: { gold: tool('gold') },
      configureSession({ headers }, session) {
        if (headers['x-api-key'] === 'of gold') session.addToolset('gold')
        if (headers['x-team'] === 'blue') session.add(extra)
        if (headers['x-api-key'] === 'of secret') session.add(secret)
      },
      async runSession({ headers }, _session, run) {
        seen.push([headers['x-team'], headers['x-api-key']])
        await run()
      },
    })
    const client = (headers: object) => taskClient(url, 'ann', {}, headers)
    for (const [name, headers] of [
      ['gold', { 'X-Api-Key': 'of gold', 'X-Team': 'red' }],
      ['extra', { 'X-Team': 'blue' }],
    ] as const) {
      const task = await client(headers).until(await client(headers).begin(name))
      expect(task['result']?.content[0].text, name).to.equal(`ran ${name}`)
      expect(task['status']).to.equal('completed')
    }
    expect(seen).to.deep.include(['red', undefined])
    const refused = await client({ 'X-Api-Key': 'of secret' }).call('secret')
    expect(refused.message.error).to.include({ code: -32602 })
    expect(refused.message.error.message).to.include('a credential in a header')
    expect(await client({}).listed()).to.deep.equal([])
  })

  it('have a queue for each category, with its own concurrency', async () => {
    const bench = createBench()
    const slow = (category: string) =>
      defineTool({
        name: 'slow',
        task: 'optional',
        concurrency: 1,
        async handler() {
          bench.began.push(category)
          await bench.gate(category).opened
          return category
        },
      })
    const toolsets = { a: slow('a'), b: slow('b') }
    const routes = { '/t/:category': { toolsets: ':category' } }
    const { url } = await startTasks(bench, {}, undefined, { toolsets, routes })
    const [one, other] = [taskClient(`${url}/t/a`), taskClient(`${url}/t/b`)]
    const [first, second] = [await one.begin('slow'), await other.begin('slow')]
    await eventually('both run', () => bench.began.length === 2)
    for (const category of ['a', 'b']) bench.open(category)
    expect((await one.until(first))['result'].content[0].text).to.equal('a')
    expect((await other.until(second))['result'].content[0].text).to.equal('b')
  })

  it('stay readable by their owner after one category loses the tool', async () => {
    const config = (tools: string) => `import { defineConfig, defineTool } from HERE
const tool = name => defineTool({ name, task: 'required', handler: () => 'done' })
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { a: [${tools}], b: [tool('same')] },
  routes: { '/:category': { toolsets: ':category' } },
  plugins: { 'transport-streamable': {}, tasks: { pollInterval: '20ms' } },
})
`
    const { url, write, reload } = await startReloading({ 'mcp.config.ts': config("tool('same'), tool('other')") })
    const client = taskClient(`${url}/a`)
    const taskId = await client.begin('same')
    expect((await client.until(taskId))['status']).to.equal('completed')
    await write('mcp.config.ts', config("tool('other')"))
    expect((await reload()).taken).to.include('toolsets.a')
    expect((await client.get(taskId))?.['status']).to.equal('completed')
  })
})
