// Large tasks over HTTP: storage limits per user, oversized results and the cost of subscriptions.

import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import type { TaskStore } from '../../../plugins/families/task-store/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { stopHosts } from '../../support/start-host.ts'
import { createMemoryTaskStore } from './support/memory-task-store.ts'
import { refusal, taskClient } from './support/task-client.ts'
import { createBench, form, startTasks } from './support/task-tools.ts'

const BYTES = 400_000
const TEXT = 'x'.repeat(30_000)

describe('Tasks: storage limits', () => {
  after(stopHosts)

  it('refuse a user beyond their share, leave space to others, and shrink cancelled tasks', async () => {
    const { url } = await startTasks(createBench(), {}, createMemoryTaskStore(BYTES))
    const [eve, bob] = [taskClient(url, 'eve'), taskClient(url, 'bob')]
    for (let index = 0; index < 30; index++) {
      await eve.cancel(await eve.begin('slow', { key: `cancelled ${index}`, text: TEXT }))
    }
    let begun = 0
    let answer = await eve.call('slow', { key: 'open', text: TEXT })
    for (; answer.status === 200 && begun < 50; answer = await eve.call('slow', { key: 'open', text: TEXT })) begun++
    expect(refusal(answer)).to.deep.equal([429, -32600])
    expect(begun).to.be.within(1, 3)
    expect((await bob.until(await bob.begin('required', { key: 'hi' }))).status).to.equal('completed')
  })

  it('fail a task whose result does not fit', async () => {
    const { url } = await startTasks(createBench(), {}, createMemoryTaskStore(BYTES))
    const eve = taskClient(url, 'eve')
    const ids: string[] = []
    for (let index = 0; index < 12; index++) ids.push(await eve.begin('large', { size: 20_000 }))
    const ended = await Promise.all(ids.map(id => eve.until(id)))
    const failed = ended.filter(({ status }) => status === 'failed')
    expect(failed.length).to.be.within(8, 9)
    for (const { error } of failed) {
      expect(error.message).to.include('could not be stored')
      expect(error.data).to.deep.equal({ reason: 'no-room' })
    }
  })

  it('limit concurrent input responses to maxSize', async () => {
    const seen = createGate()
    const survey = defineTool({
      name: 'survey',
      task: 'optional',
      async handler(_, ctx) {
        const ask = (message: string) => ctx.elicit({ message, requestedSchema: form })
        await Promise.all(Array.from({ length: 10 }, (_, index) => ask(`Who is ${index}?`)))
        seen.open()
        return 'ok'
      },
    })
    const bench = createBench()
    const { url } = await startTasks({ ...bench, tools: [survey] }, { maxSize: '64kb' })
    const eve = taskClient(url, 'eve')
    const id = await eve.begin('survey')
    const asked = await eventually(
      'ten questions',
      async () => Object.keys((await eve.get(id))['inputRequests'] ?? {}),
      keys => keys.length === 10,
    )
    const answer = { action: 'accept', content: { name: 'x'.repeat(30_000) } }
    const answers = await Promise.all(asked.map(key => eve.update(id, { [key]: answer })))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).to.deep.equal([200, 200, ...Array.from({ length: 8 }, () => 413)])
    expect(Object.keys((await eve.get(id))['inputRequests'])).to.have.length(8)
  })

  it('read subscribed tasks one at a time, shared by all streams', async () => {
    const store = createMemoryTaskStore()
    const counts = { look: 0, get: 0, inFlight: 0, most: 0 }
    const counted: TaskStore = {
      ...store,
      getSummary(id) {
        counts.look++
        return store.getSummary(id)
      },
      async get(id) {
        counts.get++
        counts.most = Math.max(counts.most, ++counts.inFlight)
        await new Promise(resolve => setImmediate(resolve))
        counts.inFlight--
        return store.get(id)
      },
    }
    const { url } = await startTasks(createBench(), {}, counted)
    const eve = taskClient(url, 'eve')
    const ids: string[] = []
    for (let index = 0; index < 20; index++) ids.push(await eve.begin('large', { size: 10_000, text: TEXT }))
    for (const id of ids) await eve.until(id)
    const waits = await eve.begin('slow', { key: 'open', text: TEXT })
    Object.assign(counts, { look: 0, get: 0, most: 0 })
    const streams = await Promise.all(Array.from({ length: 5 }, () => eve.listen([...ids, waits])))
    for (const stream of streams) {
      const heard = new Set<string>()
      while (heard.size < 21) heard.add((await stream.next()).params.taskId)
    }
    expect(counts.most).to.equal(1)
    expect(counts.get).to.be.within(20, 100)
    for (const stream of streams) stream.drop()
  })
})
