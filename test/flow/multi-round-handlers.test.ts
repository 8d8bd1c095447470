// Tests handlers that end with requests to the client and continue with the responses and their own state.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { type InputRequest, InputRequired, roundOf } from '../../core/transport.ts'
import { ALL_CAPABILITIES, accepted, callTool, questionsIn } from '../fixtures/asking-client.ts'
import { legacy } from '../support/rpc.ts'
import { nextMessage, openSession, readRest } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const requestedSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const
const form = (message: string): InputRequest => ({ method: 'elicitation/create', params: { message, requestedSchema } })

const runs: unknown[] = []
const twoRounds = defineTool({
  name: 'two_rounds',
  concurrency: 1,
  input: { type: 'object', properties: { topic: { type: 'string' } } },
  async handler(_, ctx) {
    const round = roundOf(ctx)
    runs.push(round)
    if (!round) return new InputRequired({ q: form('One?') }, { step: 1 })
    if ((round.state as { step: number }).step === 1) return new InputRequired({ q: form('Two?') }, { step: 2, round })
    return { round }
  },
})
const endless = defineTool({
  name: 'endless',
  handler: async () => new InputRequired({ q: form('Again?') }, undefined),
})
const formAndVisit = defineTool({
  name: 'form_and_visit',
  handler: async () =>
    new InputRequired(
      {
        form: form('A?'),
        visit: { method: 'elicitation/create', params: { mode: 'url', message: 'B?', url: 'https://b.example' } },
      } as Record<string, InputRequest>,
      1,
    ),
})
const sync = defineTool({
  name: 'sync',
  handler: (_, ctx) =>
    roundOf(ctx) ? 'done' : (new InputRequired({ r: { method: 'roots/list', params: {} } }, 1) as object),
})

let url: string
before(async () => {
  const toolsets = { all: [twoRounds, endless, formAndVisit, sync] }
  const routes = { '/': { toolsets: 'all' }, '/stateless': { toolsets: 'all', stateless: true } }
  ;({ url } = await startHost({ toolsets, routes }))
})
beforeEach(() => {
  runs.length = 0
})
after(stopHosts)

describe('Rounds of a 2026-07-28 client', () => {
  it('continue with the state of the handler and the responses', async () => {
    const first = (await callTool(url, 'two_rounds')).message
    expect(questionsIn(first)).to.deep.equal({ q: 'One?' })
    const state = first.result.requestState
    const second = (await callTool(url, 'two_rounds', { state, answers: { q: accepted('a') } })).message
    expect(questionsIn(second)).to.deep.equal({ q: 'Two?' })
    const next = { state: second.result.requestState, answers: { q: accepted('b') } }
    const last = (await callTool(url, 'two_rounds', next)).message
    const round1 = { state: { step: 1 }, responses: { q: accepted('a') } }
    const round = { state: { step: 2, round: round1 }, responses: { q: accepted('b') } }
    expect(last.result.structuredContent).to.deep.equal({ round })
    expect(runs).to.deep.equal([undefined, round1, round])
  })

  it('send the requests again, without a run, if a response is missing or invalid', async () => {
    const state = (await callTool(url, 'two_rounds')).message.result.requestState
    for (const answers of [undefined, {}, { q: accepted(5) }, { p: accepted('a') }]) {
      expect(questionsIn((await callTool(url, 'two_rounds', { state, answers })).message)).to.deep.equal({ q: 'One?' })
    }
    expect(runs).to.deep.equal([undefined])
  })

  it('belong to their arguments', async () => {
    const state = (await callTool(url, 'two_rounds', {}, { topic: 'a' })).message.result.requestState
    const other = await callTool(url, 'two_rounds', { state, answers: { q: accepted('a') } }, { topic: 'b' })
    expect(other.message.error.message).to.match(/requestState was altered/)
  })

  it('need the capabilities of their requests', async () => {
    const { message } = await callTool(url, 'two_rounds', { capabilities: { roots: {} } })
    expect(message.error.data).to.deep.equal({ requiredCapabilities: { elicitation: { form: {} } } })
    const both = await callTool(url, 'form_and_visit', { capabilities: { roots: {} } })
    expect(both.message.error.data).to.deep.equal({ requiredCapabilities: { elicitation: { form: {}, url: {} } } })
  })

  it('work for a handler that is not async', async () => {
    const state = (await callTool(url, 'sync')).message.result.requestState
    const { message } = await callTool(url, 'sync', { state, answers: { r: { roots: [] } } })
    expect(message.result.content[0].text).to.equal('done')
  })
})

describe('Rounds of a client with a session', () => {
  it('are sent on the stream of the call', async () => {
    const client = await openSession(url, { capabilities: ALL_CAPABILITIES, revision: '2025-11-25' })
    const stream = await client.call('two_rounds')
    for (const text of ['a', 'b']) {
      const { id, method } = await nextMessage(stream)
      expect(method).to.equal('elicitation/create')
      await client.send({ id, result: accepted(text) })
    }
    const [message] = await readRest(stream)
    expect(message?.result.structuredContent.round.responses).to.deep.equal({ q: accepted('b') })
    expect(runs).to.have.lengthOf(3)
    await client.end()
  })

  it('are limited in number', async () => {
    const client = await openSession(url, { capabilities: ALL_CAPABILITIES, revision: '2025-11-25' })
    const stream = await client.call('endless')
    let asked = 0
    let message = await nextMessage(stream)
    for (; message.method !== undefined; message = await nextMessage(stream)) {
      asked++
      await client.send({ id: message.id, result: accepted('a') })
    }
    expect([asked, message.result.isError]).to.deep.equal([32, true])
    await client.end()
  })

  it('are a tool error on a stateless route', async () => {
    const { result } = (await legacy(`${url}/stateless`, 'tools/call', { name: 'two_rounds', arguments: {} })).message
    expect(result.isError).to.equal(true)
    expect(result.content[0].text).to.match(/cannot receive requests on a stateless route/)
  })
})
