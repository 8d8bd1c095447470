// Tests the limit of concurrent calls to an upstream server.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { callTool, questionsIn } from '../../fixtures/asking-client.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate, type Gate } from '../../support/gate.ts'
import { modernRequest, post } from '../../support/rpc.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

/** Maximum queued calls of one user. */
const QUEUED = 32
const TOKEN = 'a token that only the metrics of this test have'
const requestedSchema = { type: 'object', properties: {} } as const

let host: StartedHost
/** Calls that the server runs, in their order. */
let running: string[]
let gates: Map<string, Gate>

async function start(concurrency: number) {
  running = []
  gates = new Map()
  const work = (tag: string) => {
    running.push(tag)
    const gate = createGate()
    gates.set(tag, gate)
    return gate.opened
  }
  const input = { type: 'object', properties: { tag: { type: 'string' } }, required: ['tag'] } as const
  const server = await startHost({
    toolsets: {
      far: [
        defineTool({ name: 'work', input, handler: ({ tag }) => work(tag).then(() => tag) }),
        defineTool({
          name: 'ask',
          async handler(_args, { elicit }) {
            running.push('ask')
            const { action } = await elicit({ message: 'Well?', requestedSchema })
            running.push('answered')
            return action
          },
        }),
      ],
    },
    routes: { '/': { toolsets: 'far' } },
  })
  host = await startHost({
    toolsets: {},
    routes: { '/': { toolsets: 'far' } },
    plugins: {
      'transport-streamable': {},
      who: identifyByHeader(),
      metrics: { path: '/metrics', token: TOKEN },
      upstream: { servers: { far: { url: `${server.url}/`, prefix: '', revision: '2025-11-25', concurrency } } },
    },
  })
}
afterEach(stopHosts)

const work = (tag: string, user = 'ada') => callTool(host.url, 'work', { headers: { 'x-user': user } }, { tag })
const runs = (...tags: string[]) => eventually(`${tags.join()} runs`, () => tags.every(tag => running.includes(tag)))
const finish = (tag: string) => gates.get(tag)?.open()
async function queued(count: number) {
  const line = `mcp_host_upstream_active_calls{upstream="far",state="waiting"} ${count}`
  const headers = { Authorization: `Bearer ${TOKEN}` }
  const read = async () => (await fetch(`${host.url}/metrics`, { headers })).text()
  await eventually(line, async () => (await read()).includes(line))
}

describe('The concurrency of an upstream server', () => {
  it('limits the calls that run, and queues others, fairly between users', async () => {
    await start(2)
    const calls = ['one', 'two'].map(tag => work(tag))
    await runs('one', 'two')
    calls.push(work('three'))
    await queued(1)
    calls.push(work('four', 'ben'))
    await queued(2)
    expect(running).to.have.members(['one', 'two'])
    finish('one')
    await runs('four')
    expect(running).to.have.lengthOf(3)
    finish('two')
    await runs('three')
    for (const tag of ['three', 'four']) finish(tag)
    const texts = (await Promise.all(calls)).map(({ message }) => message.result.content[0].text)
    expect(texts).to.deep.equal(['one', 'two', 'three', 'four'])
  })

  it('refuses calls if the queue of their user is full', async () => {
    await start(1)
    const calls = [work('first')]
    await runs('first')
    for (let count = 0; count < QUEUED; count++) calls.push(work(`queued ${count}`))
    await queued(QUEUED)
    const refused = await work('refused')
    expect(refused.message.error.data).to.include({ reason: 'busy', limit: 'concurrency', retryable: true })
    finish('first')
    for (let count = 0; count < QUEUED; count++) {
      await runs(`queued ${count}`)
      finish(`queued ${count}`)
    }
    await Promise.all(calls)
    expect(running).not.to.include('refused')
  })

  it('does not count a held call, which continues in a free slot', async () => {
    await start(1)
    const { message } = await callTool(host.url, 'ask', { headers: { 'x-user': 'ada' } })
    const other = work('other')
    await runs('other')
    const [key = ''] = Object.keys(questionsIn(message))
    const answers = { [key]: { action: 'accept', content: {} } }
    const retry = callTool(host.url, 'ask', {
      state: message.result.requestState,
      answers,
      headers: { 'x-user': 'ada' },
    })
    await queued(1)
    expect(running).not.to.include('answered')
    finish('other')
    expect((await retry).message.result.content[0].text).to.equal('accept')
    await other
  })

  it('frees the slot of a call that its client cancels', async () => {
    await start(1)
    const controller = new AbortController()
    const { body, headers } = modernRequest('tools/call', { name: 'work', arguments: { tag: 'cancelled' } })
    const cancelled = post(host.url, body, headers, { signal: controller.signal }).catch(() => undefined)
    await runs('cancelled')
    controller.abort()
    await cancelled
    const next = work('next')
    await runs('next')
    finish('next')
    await next
  })
})
