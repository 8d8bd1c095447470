import { expect } from 'chai'
import { defineTool, type ElicitResult } from '../../core/index.ts'
import { ALL_CAPABILITIES, accepted, callTool, questionsIn, type Retry, send } from '../fixtures/asking-client.ts'
import { asking, form } from '../fixtures/asking-toolset.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import type { RpcAnswer } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const plugins = { 'transport-streamable': {}, who: identifyByHeader() }
const routes = { '/': { toolsets: 'asking' }, '/other': { toolsets: 'asking' }, '/t/:set': { toolsets: ':set' } }

let url: string
before(async () => {
  ;({ url } = await startHost({ toolsets: { asking, copy: asking }, routes, plugins }))
})
after(stopHosts)

const stateOf = async (name: string, retry?: Retry, args?: object): Promise<string> =>
  (await callTool(url, name, retry, args)).message.result.requestState

const answers = { 'elicit-1': accepted('a') }

function expectRefused({ status, message, text }: RpcAnswer, words: RegExp) {
  expect([status, message.error?.code], text).to.deep.equal([200, -32602])
  expect(message.error.message).to.match(words)
  expect(message).not.to.have.property('result')
}

describe('requestState validation', () => {
  it('rejects a modified, truncated, extended or spliced requestState with -32602', async () => {
    const [state, other] = [await stateOf('form'), await stateOf('form')]
    const middle = Math.floor(state.length / 2)
    const flip = (at: number) => `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`
    const altered = [
      flip(3),
      flip(middle),
      flip(state.length - 3),
      state.slice(0, -4),
      `${state}AAAA`,
      `${state}=`,
      state.replace('v1.', 'v2.'),
      state.slice(0, middle) + other.slice(middle),
    ]
    for (const forged of altered) {
      expectRefused(
        await callTool(url, 'form', { state: forged, answers }),
        /requestState (was altered|was not issued by this host)/,
      )
    }
  })

  it('rejects a requestState that the host did not issue', async () => {
    for (const state of ['', 'x', 'v1.', 7, true, {}, [], 'x'.repeat(70_000)]) {
      expectRefused(await callTool(url, 'form', { state, answers }), /requestState was not issued by this host/)
    }
  })

  it('rejects an invalid requestState for a tool that needs no more input', async () => {
    expectRefused(await callTool(url, 'never_waits', { state: 'forged' }), /requestState was not issued by this host/)
  })

  it('rejects a requestState issued to another user: different subject, issuer or none', async () => {
    const ann = { 'X-User': 'ann', 'X-Issuer': 'https://a.example' }
    const state = await stateOf('form', { headers: ann })
    const others = [{}, { 'X-User': 'bob', 'X-Issuer': 'https://a.example' }, { 'X-User': 'ann' }]
    for (const headers of [...others, { ...ann, 'X-Issuer': 'https://b.example' }]) {
      expectRefused(await callTool(url, 'form', { state, answers, headers }), /another request, user or server/)
    }
    const { result } = (await callTool(url, 'form', { state, answers, headers: ann })).message
    expect(result.content[0].text).to.equal('a')
    const anonymous = await stateOf('form')
    expectRefused(await callTool(url, 'form', { state: anonymous, answers, headers: ann }), /another request/)
  })

  it('rejects a requestState sent with different arguments', async () => {
    const state = await stateOf('three_questions', {}, { topic: 'bees' })
    for (const args of [{ topic: 'wasps' }, {}, { topic: 'bees', more: 1 }]) {
      expectRefused(await callTool(url, 'three_questions', { state, answers }, args), /another request/)
    }
  })

  it('rejects a requestState sent with another tool that sends the same request', async () => {
    const state = await stateOf('three_questions', {}, { topic: 'bees' })
    expectRefused(await callTool(url, 'other_questions', { state, answers }, { topic: 'bees' }), /another request/)
  })

  it('rejects a requestState on another route or with another route parameter', async () => {
    const state = await stateOf('form')
    expectRefused(await callTool(`${url}/other`, 'form', { state, answers }), /another request/)
    const category = (await callTool(`${url}/t/asking`, 'form')).message.result.requestState
    expectRefused(await callTool(`${url}/t/copy`, 'form', { state: category, answers }), /another request/)
  })

  it('rejects a requestState sent with another method or resource', async () => {
    const state = (await send(url, 'resources/read', { uri: 'asks://family/ann' })).message.result.requestState
    expectRefused(
      await send(url, 'resources/read', { uri: 'asks://family/bob' }, { state, answers }),
      /another request/,
    )
    expectRefused(await send(url, 'prompts/get', { name: 'asking_prompt' }, { state, answers }), /another request/)
  })

  it('rejects a requestState after the tool definition changed', async () => {
    const ask = (description: string) =>
      defineTool({
        name: 'form',
        description,
        handler: async (_args, { elicit }): Promise<ElicitResult> => elicit(form('Form?')),
      })
    const start = (description: string) =>
      startHost({ toolsets: { all: [ask(description)] }, routes: { '/': { toolsets: 'all' } } })
    const [before, same, later] = [await start('As it was.'), await start('As it was.'), await start('As it is.')]
    const state = (await callTool(before.url, 'form')).message.result.requestState
    expectRefused(await callTool(later.url, 'form', { state, answers }), /another request/)
    const { result } = (await callTool(same.url, 'form', { state, answers })).message
    expect(result.structuredContent).to.deep.equal(accepted('a'))
  })

  it('accepts a requestState sealed with a rotated secret, rejects it after the secret is removed', async () => {
    const [older, newer] = ['the older secret, long enough by far', 'the newer secret, long enough by far']
    const start = (...secrets: string[]) =>
      startHost({ secrets, toolsets: { asking }, routes: { '/': { toolsets: 'asking' } } })
    const [first, rotated, forgotten] = [await start(older), await start(newer, older), await start(newer)]
    const state = (await callTool(first.url, 'form')).message.result.requestState
    expect((await callTool(rotated.url, 'form', { state, answers })).message.result.content[0].text).to.equal('a')
    expectRefused(await callTool(forgotten.url, 'form', { state, answers }), /another request, user or server/)
  })
})

describe('client capability checks before input requests', () => {
  const missing: Array<[string, object, object]> = [
    ['form', {}, { elicitation: { form: {} } }],
    ['form', { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    ['visit', {}, { elicitation: { url: {} } }],
    ['visit', { elicitation: {} }, { elicitation: { url: {} } }],
    ['visit', { elicitation: { form: {} } }, { elicitation: { url: {} } }],
    ['sampled', { elicitation: {} }, { sampling: {} }],
    ['sampled_with_tools', { sampling: {} }, { sampling: { tools: {} } }],
    ['sampled_with_context', { sampling: { tools: {} } }, { sampling: { context: {} } }],
    ['rooted', { sampling: {} }, { roots: {} }],
    ['form_and_visit', {}, { elicitation: { form: {}, url: {} }, roots: {} }],
  ]
  for (const [tool, capabilities, requiredCapabilities] of missing) {
    it(`${tool} with ${JSON.stringify(capabilities)} fails with 400 and -32021, naming the missing capability`, async () => {
      const { status, message } = await callTool(url, tool, { capabilities })
      expect([status, message.error.code]).to.deep.equal([400, -32021])
      expect(message.error.data).to.deep.equal({ requiredCapabilities })
      expect(message.id).to.be.a('number')
    })
  }

  it('rejects prompts and resources that need an undeclared capability', async () => {
    for (const [method, params] of [
      ['prompts/get', { name: 'asking_prompt' }],
      ['resources/read', { uri: 'asks://one' }],
    ] as const) {
      const { status, message } = await send(url, method, params, { capabilities: {} })
      expect([status, message.error.code]).to.deep.equal([400, -32021])
    }
  })

  it('sends no other input request of the same round', async () => {
    const { status, message } = await callTool(url, 'together', { capabilities: { elicitation: {}, sampling: {} } })
    expect([status, message.error.code, message.error.data]).to.deep.equal([
      400,
      -32021,
      { requiredCapabilities: { roots: {} } },
    ])
  })

  it('treats an empty elicitation capability as form mode; URL mode and others must be declared', async () => {
    const enough: Array<[string, object]> = [
      ['form', { elicitation: {} }],
      ['form', { elicitation: { form: {} } }],
      ['visit', { elicitation: { url: {} } }],
      ['sampled', { sampling: {} }],
      ['sampled_with_tools', { sampling: { tools: {} } }],
      ['sampled_with_context', { sampling: { context: {} } }],
      ['rooted', { roots: {} }],
      ['together', ALL_CAPABILITIES],
    ]
    for (const [tool, capabilities] of enough) {
      const { message } = await callTool(url, tool, { capabilities })
      expect(Object.keys(questionsIn(message)), tool).not.to.deep.equal([])
    }
  })
})
