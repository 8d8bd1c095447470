import { expect } from 'chai'
import { accepted, callTool, questionsIn, send } from '../fixtures/asking-client.ts'
import { asking, effects, wording } from '../fixtures/asking-toolset.ts'
import { legacy, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

let url: string
const unhandled: unknown[] = []
const noteUnhandled = (reason: unknown) => void unhandled.push(reason)

before(async () => {
  process.on('unhandledRejection', noteUnhandled)
  ;({ url } = await startHost({ toolsets: { asking }, routes: { '/': { toolsets: 'asking' } } }))
})
after(async () => {
  process.off('unhandledRejection', noteUnhandled)
  await stopHosts()
})
beforeEach(() => {
  effects.length = 0
})

const textOf = ({ result }: RpcMessage) => result.content[0].text

describe('input_required results (elicitation, sampling, roots)', () => {
  it('returns the elicitation request under its key with a sealed requestState', async () => {
    const { status, message } = await callTool(url, 'three_questions', {}, { topic: 'bees' })
    expect(status).to.equal(200)
    const { resultType, inputRequests, requestState } = message.result
    expect(resultType).to.equal('input_required')
    const requestedSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
    const params = { message: 'One, about bees?', requestedSchema }
    expect(inputRequests).to.deep.equal({ 'elicit-1': { method: 'elicitation/create', params } })
    expect(requestState).to.match(/^v1\.[\w-]+$/)
    expect(message.result).to.have.all.keys('resultType', 'inputRequests', 'requestState', '_meta')
  })

  it('runs the handler again from the start with each response until no input is missing', async () => {
    const first = (await callTool(url, 'three_questions')).message
    const one = { state: first.result.requestState, answers: { 'elicit-1': accepted('a') } }
    const second = (await callTool(url, 'three_questions', one)).message
    expect(questionsIn(second)).to.deep.equal({ 'elicit-2': 'Two, after a?' })
    const two = { state: second.result.requestState, answers: { 'elicit-2': accepted('b') } }
    const third = (await callTool(url, 'three_questions', two)).message
    expect(questionsIn(third)).to.deep.equal({ 'elicit-3': 'Three, after b?' })
    expect(effects).to.deep.equal(['begun', 'begun', 'begun'])
    const three = { state: third.result.requestState, answers: { 'elicit-3': accepted('c') } }
    const last = (await callTool(url, 'three_questions', three)).message
    expect(last.result.structuredContent.answers).to.deep.equal(['a', 'b', 'c'])
    expect(last.result.resultType).to.equal('complete')
    expect(effects).to.deep.equal(['begun', 'begun', 'begun', 'begun', 'done'])
  })

  it('passes decline and cancel to the handler as responses', async () => {
    for (const action of ['decline', 'cancel']) {
      const state = (await callTool(url, 'form')).message.result.requestState
      const { message } = await callTool(url, 'form', { state, answers: { 'elicit-1': { action } } })
      expect(textOf(message)).to.equal(action)
    }
  })

  it('sends URL mode elicitation', async () => {
    const { result } = (await callTool(url, 'visit')).message
    const params = { mode: 'url', message: 'Sign in there.', url: 'https://login.example/start' }
    expect(result.inputRequests).to.deep.equal({ 'elicit-1': { method: 'elicitation/create', params } })
    const retry = { state: result.requestState, answers: { 'elicit-1': { action: 'accept' } } }
    expect(textOf((await callTool(url, 'visit', retry)).message)).to.equal('accept')
  })

  it('returns a tool error for older protocol versions on a stateless route', async () => {
    const stateless = { '/': { toolsets: 'asking', stateless: true } }
    const older = await startHost({ toolsets: { asking }, routes: stateless })
    const { result } = (await legacy(older.url, 'tools/call', { name: 'form', arguments: {} })).message
    expect(result.isError).to.equal(true)
    expect(result.content[0].text).to.match(/a 2025-11-25/)
  })
})

describe('concurrent input requests', () => {
  const said = { who: accepted('Ada'), what: { role: 'assistant', content: { type: 'text', text: 'Hi' }, model: 'm' } }
  const folders = { roots: [{ uri: 'file:///a' }, { uri: 'file:///b' }] }

  it('are returned in one result', async () => {
    const { message } = await callTool(url, 'together')
    expect(questionsIn(message)).to.deep.equal({ who: 'Who?', what: 'sampling/createMessage', where: 'roots/list' })
    const retry = { state: message.result.requestState, answers: { ...said, where: folders } }
    const { result } = (await callTool(url, 'together', retry)).message
    expect(result.structuredContent).to.deep.equal({ who: 'Ada', model: 'm', folders: 2 })
  })

  it('keeps the received responses and requests the missing ones again', async () => {
    const state = (await callTool(url, 'together')).message.result.requestState
    const partly = (await callTool(url, 'together', { state, answers: said })).message
    expect(questionsIn(partly)).to.deep.equal({ where: 'roots/list' })
    const retry = { state: partly.result.requestState, answers: { where: folders } }
    const { result } = (await callTool(url, 'together', retry)).message
    expect(result.structuredContent).to.deep.equal({ who: 'Ada', model: 'm', folders: 2 })
  })

  it('default keys combine the request kind and its ordinal', async () => {
    expect(questionsIn((await callTool(url, 'two_forms')).message)).to.deep.equal({
      'elicit-1': 'A?',
      'elicit-2': 'B?',
    })
  })

  it('fails the tool when two requests use the same key', async () => {
    const { result } = (await callTool(url, 'same_key')).message
    expect(result).to.include({ isError: true, resultType: 'complete' })
  })
})

describe('input responses', () => {
  const again = async (tool: string, answers: unknown) => {
    const state = (await callTool(url, tool)).message.result.requestState
    return (await callTool(url, tool, { state, answers })).message
  }

  it('requests a missing response again', async () => {
    for (const answers of [undefined, {}, { 'elicit-9': accepted('a') }, [], 'text', null]) {
      expect(questionsIn(await again('form', answers)), JSON.stringify(answers)).to.deep.equal({ 'elicit-1': 'Form?' })
    }
  })

  it('requests a form response again when it does not match its schema', async () => {
    const wrong = [accepted(5), { action: 'accept' }, { action: 'accept', content: {} }, { action: 'maybe' }, 'yes', []]
    for (const answer of wrong) {
      const message = await again('form', { 'elicit-1': answer })
      expect(questionsIn(message), JSON.stringify(answer)).to.deep.equal({ 'elicit-1': 'Form?' })
    }
  })

  it('requests an invalid sampling or roots response again', async () => {
    for (const answer of [{}, { model: 'm', role: 'assistant' }, { content: { type: 'text', text: 'a' } }, 'text']) {
      expect(questionsIn(await again('sampled', { 'sample-1': answer }))).to.have.all.keys('sample-1')
    }
    for (const answer of [{}, { roots: 'all' }, { roots: [{}] }, { roots: [null] }]) {
      expect(questionsIn(await again('rooted', { 'roots-1': answer }))).to.have.all.keys('roots-1')
    }
  })

  it('sends the new request when its message changed since', async () => {
    wording.question = 'Old words?'
    const state = (await callTool(url, 'reworded')).message.result.requestState
    wording.question = 'New words?'
    const { message } = await callTool(url, 'reworded', { state, answers: { 'elicit-1': accepted('to the old') } })
    expect(questionsIn(message)).to.deep.equal({ 'elicit-1': 'New words?' })
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accepted('to the new') } }
    expect(textOf((await callTool(url, 'reworded', retry)).message)).to.equal('to the new')
  })

  it('ignores a response to a request that was not sent yet', async () => {
    const message = await again('three_questions', { 'elicit-1': accepted('a'), 'elicit-2': accepted('early') })
    expect(questionsIn(message)).to.deep.equal({ 'elicit-2': 'Two, after a?' })
  })

  it('accepts responses without a requestState in the first round only', async () => {
    const answers = { 'elicit-1': accepted('a'), 'elicit-2': accepted('b') }
    const inTurn = (await callTool(url, 'three_questions', { answers })).message
    expect(questionsIn(inTurn)).to.deep.equal({ 'elicit-2': 'Two, after a?' })
    const together = (await callTool(url, 'two_forms', { answers })).message
    expect(together.result.structuredContent).to.deep.equal(['a', 'b'])
  })

  it('fails the call when the requestState would exceed 64 KiB', async () => {
    const { error, id } = await again('three_questions', { 'elicit-1': accepted('x'.repeat(70_000)) })
    expect(error).to.deep.include({ code: -32603 })
    expect(error.message).to.match(/requestState/)
    expect(id).to.be.a('number')
    expect(questionsIn((await callTool(url, 'form')).message)).to.have.all.keys('elicit-1')
  })
})

describe('handlers that continue after an input request', () => {
  it('cannot replace the input_required result by swallowing the rejection', async () => {
    const { messages, message } = await callTool(url, 'swallow')
    expect(questionsIn(message)).to.deep.equal({ 'elicit-1': 'Listen?' })
    expect(messages).to.have.length(1)
    expect(effects).to.deep.equal(['swallowed true, aborted true'])
  })

  it('defers an input request made too late to the next round', async () => {
    const { message } = await callTool(url, 'swallow_and_ask_on')
    expect(questionsIn(message)).to.deep.equal({ 'elicit-1': 'First?' })
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accepted('a') } }
    const second = (await callTool(url, 'swallow_and_ask_on', retry)).message
    expect(questionsIn(second)).to.deep.equal({ 'elicit-2': 'Second?' })
  })

  it('run their finally blocks in each round', async () => {
    const state = (await callTool(url, 'tidy')).message.result.requestState
    expect(effects).to.deep.equal(['tidied'])
    const { message } = await callTool(url, 'tidy', { state, answers: { 'elicit-1': accepted('clean') } })
    expect([textOf(message), effects]).to.deep.equal(['clean', ['tidied', 'tidied']])
  })

  it('return their own result when they did not await the request', async () => {
    expect(textOf((await callTool(url, 'never_waits')).message)).to.equal('did not wait')
  })

  it('leave no unhandled rejection when the client cannot be asked', async () => {
    for (const capabilities of [{}, { elicitation: {} }]) {
      for (const name of ['never_waits', 'swallow', 'same_key', 'two_forms', 'together', 'tidy']) {
        await callTool(url, name, { capabilities })
      }
    }
    // What is not handled is told once the microtasks of a turn are over.
    await new Promise(resolve => setImmediate(resolve))
    expect(unhandled).to.deep.equal([])
  })
})

describe('input requests from prompts/get and resources/read', () => {
  it('are allowed in a prompt, a resource and a resource template', async () => {
    const cases: Array<[string, Record<string, unknown>, string]> = [
      ['prompts/get', { name: 'asking_prompt', arguments: { about: 'bees' } }, 'bees: said'],
      ['resources/read', { uri: 'asks://one' }, 'said'],
      ['resources/read', { uri: 'asks://family/ann' }, 'ann: said'],
    ]
    for (const [method, params, expected] of cases) {
      const asked = (await send(url, method, params)).message
      expect(questionsIn(asked)).to.have.all.keys('elicit-1')
      const retry = { state: asked.result.requestState, answers: { 'elicit-1': accepted('said') } }
      const { result } = (await send(url, method, params, retry)).message
      expect(result.messages?.[0].content.text ?? result.contents[0].text).to.equal(expected)
    }
  })

  it('are rejected with an error in completion/complete', async () => {
    const ref = { type: 'ref/prompt', name: 'asking_prompt' }
    const { message } = await send(url, 'completion/complete', { ref, argument: { name: 'about', value: 'b' } })
    expect(message.error.code).to.equal(-32603)
    expect(message).not.to.have.property('result')
  })
})
