// Tests validation of elicitation, sampling and roots responses in sessions, and requests to clients without the
// capability.
import { expect } from 'chai'
import { ALL_CAPABILITIES, answerTo } from '../fixtures/asking-client.ts'
import { asking } from '../fixtures/asking-toolset.ts'
import type { RpcMessage } from '../support/rpc.ts'
import { nextMessage, openSession, readRest, type SessionClient } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

let url: string
before(async () => {
  ;({ url } = await startHost({ toolsets: { all: asking }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const open = (capabilities: object = ALL_CAPABILITIES) => openSession(url, { capabilities })

const accept = (client: SessionClient, { id }: RpcMessage, text: unknown) =>
  client.send({ id, result: { action: 'accept', content: { text } } })

const textOf = ({ result }: RpcMessage) => result.content[0].text

describe('elicitation, sampling and roots responses in sessions', () => {
  it('passes decline and cancel to the handler', async () => {
    const client = await open()
    for (const action of ['decline', 'cancel']) {
      expect(textOf(await answerTo(client, 'form', { result: { action } }))).to.equal(action)
    }
  })

  it('turns an error response into a result with isError', async () => {
    const client = await open()
    const { result } = await answerTo(client, 'form', { error: { code: -1, message: 'User rejected' } })
    expect(result.isError).to.equal(true)
    expect(result.content[0].text).to.include('User rejected')
  })

  const misfits: Array<[string, string, unknown]> = [
    ['form', 'content that violates its schema', { action: 'accept', content: { text: 5 } }],
    ['form', 'content that lacks a required field', { action: 'accept', content: {} }],
    ['form', 'no content', { action: 'accept' }],
    ['form', 'an unknown action', { action: 'maybe' }],
    ['form', 'a response that is not an object', 'yes'],
    ['rooted', 'roots that are not a list', { roots: {} }],
    ['rooted', 'a root without uri', { roots: [{}] }],
    ['sampled', 'no model', { role: 'assistant', content: { type: 'text', text: '' } }],
    ['sampled', 'no content', { role: 'assistant', model: 'm' }],
  ]
  for (const [tool, what, result] of misfits) {
    it(`rejects ${what} from ${tool} with isError before the handler receives it`, async () => {
      const { result: answered } = await answerTo(await open(), tool, { result })
      expect(answered.isError).to.equal(true)
      expect(answered.content[0].text).to.include('does not match the request')
    })
  }

  it('accepts a response once and ignores unexpected ones with 202', async () => {
    const [client, other] = [await open(), await open()]
    const stream = await client.call('form')
    const question = await nextMessage(stream)
    for (const [from, id] of [
      [client, 'unknown'],
      [client, 0],
      [other, question.id],
    ] as const) {
      expect((await from.send({ id, result: { action: 'decline' } })).status).to.equal(202)
    }
    await accept(client, question, 'first')
    expect((await accept(client, question, 'second')).status).to.equal(202)
    expect(textOf((await readRest(stream))[0])).to.equal('first')
  })
})

describe('client capability checks in sessions', () => {
  const lacking: Array<[string, object]> = [
    ['form', {}],
    ['form', { elicitation: { url: {} } }],
    ['visit', {}],
    ['visit', { elicitation: {} }],
    ['visit', { elicitation: { form: {} } }],
    ['sampled', { elicitation: {}, roots: {} }],
    ['sampled_with_tools', { sampling: {} }],
    ['sampled_with_context', { sampling: { tools: {} } }],
    ['rooted', { sampling: {} }],
  ]
  for (const [tool, capabilities] of lacking) {
    it(`${tool} with ${JSON.stringify(capabilities)} returns isError without sending a request`, async () => {
      const client = await open(capabilities)
      const { messages, message } = await client.request('tools/call', { name: tool })
      expect(messages).to.have.length(1)
      expect(message.result.isError).to.equal(true)
      expect(message.result.content[0].text).to.match(/requires a client that declares/)
    })
  }

  it('an empty elicitation capability allows form mode', async () => {
    const stream = await (await open({ elicitation: {} })).call('form')
    expect((await nextMessage(stream)).method).to.equal('elicitation/create')
    stream.drop()
  })
})
