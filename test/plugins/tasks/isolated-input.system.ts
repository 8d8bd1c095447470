// Input requests of tasks of isolated tools, which run in processes.
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession, readRest } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { taskClient } from './support/task-client.ts'
import { createBench, startTasks } from './support/task-tools.ts'

const TOOLS = fileURLToPath(new URL('support/isolated-tools.ts', import.meta.url))
const accept = (name: unknown) => ({ action: 'accept', content: { name } })
const text = (task: { result: { content: Array<{ text: string }> } }) => task.result.content[0]?.text

describe('Tasks: an isolated task that waits for input', () => {
  afterEach(stopHosts)

  it('holds no process of the tool, which runs again with the responses', async () => {
    const { url } = await startTasks(createBench(), {}, undefined, { toolsets: { all: TOOLS } })
    const [ann, bob] = [taskClient(url, 'ann'), taskClient(url, 'bob')]
    const waiting = [await ann.begin('asks'), await ann.begin('asks')]
    for (const id of waiting) {
      await eventually(
        'both questions are there',
        () => ann.get(id),
        task => Object.keys(task['inputRequests'] ?? {}).length === 2,
      )
    }
    const plain = await modern(url, 'tools/call', { name: 'computes', arguments: {} })
    expect(text(plain.message)).to.equal('in a thread')
    expect(text(await bob.until(await bob.begin('computes')))).to.equal('in a thread')
    for (const id of waiting) {
      await ann.update(id, { 'elicit-1': accept('Ann'), 'two-1': accept('Bob') })
      const asking = await eventually(
        'the third question is there',
        () => ann.get(id),
        task => Object.keys(task['inputRequests'] ?? {}).includes('elicit-2'),
      )
      expect(Object.keys(asking['inputRequests'])).to.deep.equal(['elicit-2'])
      await ann.update(id, { 'elicit-2': { action: 'decline' } })
      expect(text((await ann.until(id)) as never)).to.equal('Ann, Bob, decline')
    }
  })

  it('holds no process in a session either, and its progress only grows', async () => {
    const { url } = await startTasks(createBench(), {}, undefined, { toolsets: { all: TOOLS } })
    const session = await openSession(url, { capabilities: { elicitation: {} } })
    const stream = await session.call('asks')
    const progress: number[] = []
    for (const name of ['Ann', 'Bob', 'Eve']) {
      let question = await nextMessage(stream)
      for (; question.method === 'notifications/progress'; question = await nextMessage(stream)) {
        progress.push(question.params.progress)
      }
      expect(question.method).to.equal('elicitation/create')
      expect(text((await session.request('tools/call', { name: 'computes' })).message)).to.equal('in a thread')
      await session.send({ id: question.id, result: accept(name) })
    }
    const rest = await readRest(stream)
    progress.push(...rest.slice(0, -1).map(({ params }) => params.progress))
    expect(text(rest.at(-1))).to.equal('Ann, Bob, Eve')
    expect(progress).to.deep.equal([1, 2, 3])
  })

  it('is asked once, and not after its end', async () => {
    const { url } = await startTasks(createBench(), {}, undefined, { toolsets: { all: TOOLS } })
    const client = taskClient(url)
    const taskId = await client.begin('hurries')
    expect(Object.keys((await client.until(taskId, 'input_required'))['inputRequests'])).to.deep.equal(['elicit-1'])
    await client.update(taskId, { 'elicit-1': accept('Ann') })
    const over = await client.until(taskId, 'input_required', 'completed', 'failed')
    expect([over['status'], text(over as never)]).to.deep.equal(['completed', 'done'])
  })
})
