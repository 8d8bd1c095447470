// Tests elicitation, sampling and roots requests in sessions with the toolset of test/flow/input-required.test.ts.
import { expect } from 'chai'
import { ALL_CAPABILITIES, answerTo, callTool, questionsIn } from '../fixtures/asking-client.ts'
import { asking, effects } from '../fixtures/asking-toolset.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { legacy, type RpcMessage } from '../support/rpc.ts'
import { nextMessage, openSession, readRest, type SessionClient } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: asking },
    routes: {
      '/': { toolsets: 'all' },
      '/stateless': { toolsets: 'all', stateless: true },
    },
  }))
})
beforeEach(() => {
  effects.length = 0
})
after(stopHosts)

const open = (capabilities: object = ALL_CAPABILITIES, revision = '2025-11-25') =>
  openSession(url, { capabilities, revision })

const reply = (client: SessionClient, { id }: RpcMessage, result: unknown) => client.send({ id, result })
const accept = (client: SessionClient, question: RpcMessage, text: unknown) =>
  reply(client, question, { action: 'accept', content: { text } })

const textOf = ({ result }: RpcMessage) => result.content[0].text

async function expectAskedAnd(stream: StreamExchange, method: string): Promise<RpcMessage> {
  const question = await nextMessage(stream)
  expect([question.method, question.jsonrpc]).to.deep.equal([method, '2.0'])
  expect(question.id).to.satisfy((id: unknown) => typeof id === 'string' || typeof id === 'number')
  return question
}

describe('server requests in sessions', () => {
  it('are sent on the stream of their call; the response gets 202', async () => {
    const client = await open()
    const standalone = await client.get()
    const stream = await client.call('form')
    expect(stream.headers['content-type']).to.equal('text/event-stream')
    const question = await expectAskedAnd(stream, 'elicitation/create')
    expect(question.params).to.deep.equal({
      message: 'Form?',
      requestedSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    })
    const answered = await accept(client, question, 'yes')
    expect([answered.status, answered.text]).to.deep.equal([202, ''])
    const [message, ...more] = await readRest(stream)
    expect([textOf(message), more]).to.deep.equal(['yes', []])
    await client.end()
    expect(await readRest(standalone), 'nothing on another stream').to.deep.equal([])
  })

  it('are sent one after the other as the handler continues', async () => {
    const client = await open()
    const stream = await client.call('three_questions', { topic: 'tea' })
    const messages: string[] = []
    for (const answer of ['green', 'hot', 'now']) {
      const question = await nextMessage(stream)
      messages.push(question.params.message)
      await accept(client, question, answer)
    }
    expect(messages).to.deep.equal(['One, about tea?', 'Two, after green?', 'Three, after hot?'])
    const [{ result }] = await readRest(stream)
    expect(result.structuredContent.answers).to.deep.equal(['green', 'hot', 'now'])
    expect(effects, 'the handler ran once').to.deep.equal(['begun', 'done'])
  })

  it('run concurrently and accept responses in any order', async () => {
    const client = await open()
    const stream = await client.call('together')
    const asked = [await nextMessage(stream), await nextMessage(stream), await nextMessage(stream)]
    const of = (method: string) => asked.find(question => question.method === method)
    expect(new Set(asked.map(({ id }) => id)).size).to.equal(3)
    await reply(client, of('roots/list'), { roots: [{ uri: 'file:///a' }, { uri: 'file:///b' }] })
    await reply(client, of('sampling/createMessage'), {
      role: 'assistant',
      model: 'm-1',
      content: { type: 'text', text: 'hi' },
    })
    await accept(client, of('elicitation/create'), 'me')
    const [{ result }] = await readRest(stream)
    expect(result.structuredContent).to.deep.equal({ who: 'me', model: 'm-1', folders: 2 })
  })

  it('URL mode elicitation has mode, url and its own elicitationId', async () => {
    const client = await open()
    const ids: unknown[] = []
    for (const action of ['accept', 'decline']) {
      const stream = await client.call('visit')
      const { params, ...question } = await expectAskedAnd(stream, 'elicitation/create')
      const { elicitationId, ...rest } = params
      expect(rest).to.deep.equal({ mode: 'url', message: 'Sign in there.', url: 'https://login.example/start' })
      expect(elicitationId).to.be.a('string').and.not.equal('')
      ids.push(elicitationId)
      await reply(client, question, { action })
      expect(textOf((await readRest(stream))[0])).to.equal(action)
    }
    expect(new Set(ids).size).to.equal(2)
  })

  it('work in every protocol version with a handshake', async () => {
    for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
      const client = await open(ALL_CAPABILITIES, revision)
      const stream = await client.call('rooted')
      const question = await expectAskedAnd(stream, 'roots/list')
      await reply(client, question, { roots: [] })
      expect(textOf((await readRest(stream))[0]), revision).to.equal('0 roots')
    }
  })

  it('work in prompts and resources', async () => {
    const client = await open()
    for (const [method, params] of [
      ['prompts/get', { name: 'asking_prompt', arguments: { about: 'it' } }],
      ['resources/read', { uri: 'asks://family/ann' }],
    ] as const) {
      const stream = await client.open(method, params)
      await accept(client, await nextMessage(stream), 'so')
      expect(JSON.stringify((await readRest(stream))[0].result)).to.match(/(it|ann): so/)
    }
  })

  it('work with the same tool for session-based and stateless versions', async () => {
    const modernAnswer = await callTool(url, 'form')
    expect(Object.values(questionsIn(modernAnswer.message))).to.deep.equal(['Form?'])
    const client = await open()
    expect(textOf(await answerTo(client, 'form', { result: { action: 'accept', content: { text: 'x' } } }))).to.equal(
      'x',
    )
  })
})

describe('calls that await a client response', () => {
  it('stop when the client cancels; a late response is accepted and ignored', async () => {
    const client = await open()
    const stream = await client.call('tidy', {}, { id: 'tidy' })
    const question = await nextMessage(stream)
    await client.send({ method: 'notifications/cancelled', params: { requestId: 'tidy', reason: 'changed my mind' } })
    expect(await readRest(stream)).to.deep.equal([])
    expect((await accept(client, question, 'late')).status).to.equal(202)
    expect(effects, 'the handler could clean up').to.deep.equal(['tidied'])
  })

  it('stop when the session ends, and the handler can clean up', async () => {
    const client = await open()
    const stream = await client.call('tidy')
    await nextMessage(stream)
    await client.end()
    expect(await readRest(stream)).to.deep.equal([])
    expect(effects).to.deep.equal(['tidied'])
  })

  it('fail for a client without a session on a stateless route', async () => {
    const { message } = await legacy(`${url}/stateless`, 'tools/call', { name: 'form' })
    expect(message.result.isError).to.equal(true)
    expect(message.result.content[0].text).to.include('stateless')
  })

  it('do not use the time of the call; the request is cancelled after ten minutes', async () => {
    const clock = createManualClock()
    const config = {
      toolsets: { all: asking },
      routes: { '/': { toolsets: 'all' } },
      tools: { callTimeout: '50ms' },
    } as const
    const limited = await startHost(config, undefined, { clock })
    const client = await openSession(limited.url, { capabilities: ALL_CAPABILITIES })
    const patient = await client.call('form')
    const asked = await nextMessage(patient)
    const stream = await client.call('form')
    const question = await nextMessage(stream)
    await clock.advance(599_000)
    await accept(client, asked, 'late')
    expect((await readRest(patient)).map(textOf)).to.deep.equal(['late'])
    await clock.advance(2_000)
    const [withdrawn, answer, ...more] = await readRest(stream)
    expect(question.method).to.equal('elicitation/create')
    expect([withdrawn.method, withdrawn.params.requestId]).to.deep.equal(['notifications/cancelled', question.id])
    expect([answer.result.isError, more]).to.deep.equal([true, []])
  })
})
