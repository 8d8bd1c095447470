// Tests held calls whose response arrives at a node that does not run the call.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import type { Bus } from '../../../core/store/bus.ts'
import { callTool, questionsIn } from '../../fixtures/asking-client.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modernRequest } from '../../support/rpc.ts'
import { postOpen, readRest, readWhole } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { startNeighbours, type TestNeighbour } from '../../support/worker-processes.ts'

const accept = { action: 'accept', content: { name: 'Ada' } }
const ada = { 'x-user': 'ada' }
const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } } as const

let origin: StartedHost
let neighbours: readonly TestNeighbour[]
let nodes: readonly StartedHost[]
/** Events of the tools, in order. */
let done: string[]
let finish: () => void

async function startOrigin() {
  done = []
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  origin = await startHost({
    toolsets: {
      old: [
        defineTool({
          name: 'ask',
          async handler(_args, { elicit }) {
            const { action, content } = await elicit({ message: 'Your name?', requestedSchema })
            done.push('ask')
            return `${action} ${content?.['name']}`
          },
        }),
        defineTool({
          name: 'interview',
          async handler(_args, { elicit }) {
            const first = await elicit({ message: 'Your name?', requestedSchema })
            done.push('first')
            const second = await elicit({ message: 'Your age?', requestedSchema })
            done.push(`second: ${second.action}`)
            return `${first.action} ${second.action}`
          },
        }),
        defineTool({
          name: 'work',
          async handler(_args, { elicit, progress, log, signal }) {
            signal.addEventListener('abort', () => done.push('cancelled'))
            await elicit({ message: 'Begin?', requestedSchema })
            done.push('begun')
            log('debug', 'hidden')
            log('warning', 'shown')
            progress(1, 2, 'half')
            progress(1.5)
            await finished
            return 'worked'
          },
        }),
      ],
    },
    routes: { '/': { toolsets: 'old' } },
  })
}

/** A node that receives no messages of other nodes. */
const deaf = (neighbour: TestNeighbour): TestNeighbour =>
  Object.create(neighbour, {
    bus: { value: (node: string): Bus => Object.create(neighbour.bus(node), { receive: { value: () => undefined } }) },
  })

/** A node that delays the results of calls until a cancellation arrives. */
const slow = (neighbour: TestNeighbour): TestNeighbour =>
  Object.create(neighbour, {
    bus: {
      value(name: string): Bus {
        const bus = neighbour.bus(name)
        let release = () => {}
        const cancelled = new Promise<void>(resolve => {
          release = resolve
        })
        const send: Bus['send'] = async (node, text, share) => {
          if (text.includes('"kind":"ended"')) await cancelled
          return bus.send(node, text, share)
        }
        const receive: Bus['receive'] = listener =>
          bus.receive(text => {
            listener(text)
            if (text.includes('"kind":"cancel"')) release()
          })
        return Object.create(bus, { send: { value: send }, receive: { value: receive } })
      },
    },
  })

interface NodeOptions {
  readonly change?: (neighbour: TestNeighbour) => TestNeighbour
  readonly clock?: ReturnType<typeof createManualClock>
}

async function startNodes({ change = one => one, clock }: NodeOptions = {}) {
  const [first, ...others] = startNeighbours(2)
  neighbours = [...(first ? [change(first)] : []), ...others]
  const config = {
    toolsets: {},
    routes: { '/': { toolsets: 'old', stateless: true }, '/other': { toolsets: 'old', stateless: true } },
    plugins: {
      'transport-streamable': {},
      who: identifyByHeader(),
      upstream: { servers: { old: { url: `${origin.url}/`, prefix: '', revision: '2025-11-25' as const } } },
    },
  }
  nodes = await Promise.all(
    neighbours.map(neighbour => startHost(config, undefined, { neighbours: neighbour, ...(clock && { clock }) })),
  )
}

beforeEach(startOrigin)
afterEach(stopHosts)

const urlOf = (index: number) => nodes[index]?.url ?? ''

/** Starts a call at the first node. Returns the retry with the client's responses. */
async function ask(tool: string) {
  const { message } = await callTool(urlOf(0), tool, { headers: ada })
  const answers = Object.fromEntries(Object.keys(questionsIn(message)).map(key => [key, accept]))
  return { state: message.result.requestState as string, answers, headers: ada }
}

const textOf = ({ message }: Awaited<ReturnType<typeof callTool>>): string => message.result.content[0].text

/** Sends the response for the tool `work` to the second node. Resolves when the tool continues. */
async function work(meta: Record<string, unknown> = {}) {
  const { state, answers } = await ask('work')
  const params = { name: 'work', arguments: {}, requestState: state, inputResponses: answers }
  const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
  const { body, headers } = modernRequest('tools/call', params, { meta: { ...capabilities, ...meta } })
  const opening = postOpen(urlOf(1), body, { ...headers, ...ada })
  await eventually('the call continues', () => done.includes('begun'))
  return { opening }
}

describe('A held call of another node', () => {
  it('continues there, and its result is returned once', async () => {
    await startNodes()
    const retry = await ask('ask')
    const both = await Promise.all([1, 0].map(index => callTool(urlOf(index), 'ask', retry)))
    expect(both.map(({ message }) => message.result.isError ?? false)).to.have.members([false, true])
    expect(both.map(textOf)).to.include('accept Ada')
    expect(textOf(await callTool(urlOf(1), 'ask', retry))).to.include('MH2952')
    expect(done).to.deep.equal(['ask'])
  })

  it('can send further requests', async () => {
    await startNodes()
    const first = await ask('interview')
    const { message } = await callTool(urlOf(1), 'interview', first)
    const [key = ''] = Object.keys(questionsIn(message))
    const second = { ...first, state: message.result.requestState, answers: { [key]: accept } }
    expect(textOf(await callTool(urlOf(1), 'interview', second))).to.equal('accept accept')
  })

  it('continues only for its user, tool, arguments and route', async () => {
    await startNodes()
    const retry = await ask('ask')
    const attempts = [
      callTool(urlOf(1), 'ask', { ...retry, headers: { 'x-user': 'mallory' } }),
      callTool(urlOf(1), 'ask', { ...retry, headers: {} }),
      callTool(urlOf(1), 'interview', retry),
      callTool(urlOf(1), 'ask', retry, { other: true }),
      callTool(`${urlOf(1)}/other`, 'ask', retry),
    ]
    for (const { message } of await Promise.all(attempts)) expect(message.error?.code).to.equal(-32_602)
    expect(textOf(await callTool(urlOf(1), 'ask', retry))).to.equal('accept Ada')
  })

  it('reports progress and log messages at the level of the client', async () => {
    await startNodes()
    const { opening } = await work({ progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'info' })
    finish()
    const { messages } = await readWhole(opening)
    const notices = messages.slice(0, -1).map(({ params }) => params)
    expect(notices).to.have.deep.members([
      { level: 'warning', data: 'shown' },
      { progressToken: 'p', progress: 1, total: 2, message: 'half' },
      { progressToken: 'p', progress: 1.5 },
    ])
    expect(messages.at(-1)?.result.content[0].text).to.equal('worked')
  })

  it('is cancelled by the end of the request', async () => {
    await startNodes()
    const { opening } = await work()
    ;(await opening).drop()
    await eventually('the call is cancelled', () => done.includes('cancelled'))
  })

  it('is cancelled if the client disconnects while the next elicitation is in transit', async () => {
    await startNodes({ change: slow })
    const { state, answers } = await ask('interview')
    const params = { name: 'interview', arguments: {}, requestState: state, inputResponses: answers }
    const { body, headers } = modernRequest('tools/call', params, {
      meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } },
    })
    const client = new AbortController()
    const request = fetch(urlOf(1), {
      method: 'POST',
      body,
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(headers as Record<string, string>),
        ...ada,
      },
      signal: client.signal,
    })
    await eventually('the call continues', () => done.includes('first'))
    client.abort()
    await request.catch(() => undefined)
    await eventually('the call is given up', () => done.includes('second: cancel'))
  })

  it('ends before its node shuts down', async () => {
    await startNodes()
    const { opening } = await work()
    const closing = nodes[0]?.host.close({ grace: 60_000, handOver: false })
    finish()
    const { message } = await readWhole(opening)
    expect(message.result.content[0].text).to.equal('worked')
    expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
  })

  it('returns an error if the node has ended', async () => {
    await startNodes()
    const retry = await ask('ask')
    neighbours[0]?.end()
    expect(textOf(await callTool(urlOf(1), 'ask', retry))).to.match(/may have been executed.*MH2952/)
    const line = nodes[1]?.log.find(({ code }) => code === 'MH2952')
    expect(line).to.include({ upstream: 'old', upstreamTool: 'ask' })
  })

  it('returns an error if the node does not respond', async () => {
    const clock = createManualClock()
    await startNodes({ change: deaf, clock })
    const retry = await ask('ask')
    let text: string | undefined
    callTool(urlOf(1), 'ask', retry).then(answer => {
      text = textOf(answer)
    })
    await eventually('the error', async () => {
      await clock.advance(1_000)
      return text !== undefined
    })
    expect(text).to.include('MH2952')
    expect(done).to.deep.equal([])
  })

  it('returns an error if the node ends during the call', async () => {
    const clock = createManualClock()
    await startNodes({ clock })
    const { opening } = await work()
    neighbours[0]?.end()
    let last: string | undefined
    opening.then(readRest).then(messages => {
      last = messages.at(-1)?.result.content[0].text
    })
    await eventually('the error', async () => {
      await clock.advance(1_000)
      return last !== undefined
    })
    expect(last).to.include('MH2952')
  })
})
