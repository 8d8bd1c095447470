import { expect } from 'chai'
import { definePrompt, defineResource, defineTool } from '../../../core/index.ts'
import { HANDSHAKE_REVISIONS, MODERN_REVISION } from '../../../core/transport.ts'
import { readEvents } from '../../support/event-reader.ts'
import { createGate } from '../../support/gate.ts'
import { legacy, post, type RpcAnswer } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const [LATEST] = HANDSHAKE_REVISIONS
const talk = definePrompt({ name: 'talk', handler: () => 'talk' })
const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  handler: ({ text }) => text ?? '',
})
const chatty = defineTool({
  name: 'chatty',
  handler(_args, { progress, log, session }) {
    progress(1)
    log('emergency', 'unasked')
    return session === undefined ? 'no session' : session.id
  },
})
const held = createGate()
const slow = defineTool({
  name: 'slow',
  async handler() {
    await held.opened
    return 'slow'
  },
})
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const family = defineResource({
  name: 'family',
  uriTemplate: 'test://family/{name}',
  handler: ({ name }) => name ?? '',
})

let url: string
before(async () => {
  const all = [talk, echo, chatty, slow, page, family]
  ;({ url } = await startHost({ stateless: true, toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

type Headers = Record<string, string | undefined>
const hello = (protocolVersion: unknown) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'old-client', version: '1' },
})
const initialize = (protocolVersion: unknown, headers: Headers = {}) =>
  legacy(url, 'initialize', hello(protocolVersion), { revision: undefined, headers })
const at = (revision: string | undefined, method: string, params: Record<string, unknown> = {}) =>
  legacy(url, method, params, { revision })
const call = (revision: string | undefined, name: string, params: Record<string, unknown> = {}) =>
  at(revision, 'tools/call', { name, ...params })

function expectUnsupported({ status, message }: RpcAnswer, requested: string, id: unknown) {
  expect([status, message.id, message.error.code]).to.deep.equal([400, id, -32022])
  expect(message.error.data).to.deep.equal({ supported: [MODERN_REVISION, ...HANDSHAKE_REVISIONS], requested })
}

describe('Legacy protocol on a stateless route: initialize', () => {
  for (const revision of HANDSHAKE_REVISIONS) {
    it(`negotiates ${revision} without a session`, async () => {
      const { status, headers, message } = await initialize(revision)
      expect(status).to.equal(200)
      expect(headers.get('content-type')).to.equal('application/json')
      expect(headers.get('mcp-session-id')).to.equal(null)
      expect(message.result).to.deep.equal({
        protocolVersion: revision,
        capabilities: { prompts: {}, resources: {}, tools: {} },
        serverInfo: { name: 'test-host', version: '1.2.3' },
      })
    })
  }

  it(`answers ${LATEST} to an unknown version and to ${MODERN_REVISION}`, async () => {
    for (const asked of ['2024-10-07', '2099-01-01', 'latest', '', MODERN_REVISION]) {
      const { status, message } = await initialize(asked)
      expect([status, message.result.protocolVersion], asked).to.deep.equal([200, LATEST])
    }
  })

  it('negotiates from the body, unless the version header names a version without handshake', async () => {
    for (const header of [...HANDSHAKE_REVISIONS, '2099-01-01', 'nonsense']) {
      const { status, message } = await initialize('2025-06-18', { 'MCP-Protocol-Version': header })
      expect([status, message.result?.protocolVersion], header).to.deep.equal([200, '2025-06-18'])
    }
    const { status, message } = await initialize('2025-06-18', { 'MCP-Protocol-Version': MODERN_REVISION })
    expect([status, message.result]).to.deep.equal([400, undefined])
  })

  it('answers -32602 without parameters', async () => {
    const incomplete = [
      {},
      hello(5),
      { ...hello(LATEST), clientInfo: undefined },
      { ...hello(LATEST), capabilities: 1 },
    ]
    for (const params of incomplete) {
      const { message } = await legacy(url, 'initialize', params, { revision: undefined })
      expect(message.error.code).to.equal(-32602)
    }
  })

  it('can be repeated without state', async () => {
    expect((await initialize(LATEST)).status).to.equal(200)
    expect((await initialize('2024-11-05')).message.result.protocolVersion).to.equal('2024-11-05')
  })

  it('accepts notifications/initialized and responses with 202 and no body', async () => {
    const bodies = [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/unheard-of', params: {} },
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 'x', error: { code: 1, message: 'no' } },
    ]
    for (const body of bodies) {
      const answer = await post(url, JSON.stringify(body), { 'MCP-Protocol-Version': LATEST })
      expect([answer.status, answer.text, answer.headers.get('content-type')]).to.deep.equal([202, '', null])
    }
  })
})

describe('Legacy protocol on a stateless route: requests', () => {
  for (const revision of [...HANDSHAKE_REVISIONS, undefined]) {
    const name = revision ?? 'no version header'
    it(`${name}: answers ping, calls and lists without fields of ${MODERN_REVISION}`, async () => {
      expect((await at(revision, 'ping')).message.result).to.deep.equal({})
      const answers = [
        await at(revision, 'tools/list'),
        await at(revision, 'resources/list'),
        await at(revision, 'resources/templates/list'),
        await at(revision, 'prompts/list'),
        await at(revision, 'prompts/get', { name: 'talk' }),
        await at(revision, 'resources/read', { uri: 'test://page' }),
        await call(revision, 'echo', { arguments: { text: 'hi' } }),
      ]
      for (const { status, headers, message } of answers) {
        expect(status).to.equal(200)
        expect(headers.get('mcp-session-id')).to.equal(null)
        expect(message.result).to.be.an('object')
        expect(message.result).not.to.have.any.keys('resultType', 'ttlMs', 'cacheScope', '_meta')
      }
      expect(answers.at(-1)?.message.result).to.deep.equal({ content: [{ type: 'text', text: 'hi' }] })
      expect(answers[2]?.message.result.resourceTemplates[0].uriTemplate).to.equal('test://family/{name}')
    })
  }

  it('ignores a session id', async () => {
    const { status, headers, message } = await legacy(url, 'ping', {}, { headers: { 'Mcp-Session-Id': 'made-up' } })
    expect([status, headers.get('mcp-session-id'), message.result]).to.deep.equal([200, null, {}])
    const { message: called } = await legacy(
      url,
      'tools/call',
      { name: 'chatty' },
      { headers: { 'Mcp-Session-Id': 'x' } },
    )
    expect(called.result.content[0].text).to.equal('no session')
  })

  it('answers 400 -32022 to an unsupported version header, with supported and requested versions', async () => {
    for (const version of ['2099-01-01', '2024-10-07', 'v1', '2025-11-25 ,2025-06-18', 'x'.repeat(500)]) {
      expectUnsupported(await legacy(url, 'ping', {}, { revision: version, id: 0 }), version, 0)
    }
    expect((await at(LATEST, 'ping')).status).to.equal(200)
  })

  it('answers -32601 on a 200 to unknown methods and methods of the other era', async () => {
    for (const method of ['no/such', 'server/discover', 'subscriptions/listen', '', 'constructor']) {
      const { status, message } = await legacy(url, method, {}, { id: 'm' })
      expect([status, message.id, message.error.code], method).to.deep.equal([200, 'm', -32601])
    }
  })

  it('answers -32002 to an unknown resource and -32602 to an unknown tool, on a 200', async () => {
    for (const revision of HANDSHAKE_REVISIONS) {
      const missing = await at(revision, 'resources/read', { uri: 'test://nope' })
      expect([missing.status, missing.message.error.code]).to.deep.equal([200, -32002])
      expect(missing.message.error.data).to.deep.equal({ uri: 'test://nope' })
    }
    const { status, message } = await call(LATEST, 'nope')
    expect([status, message.error.code]).to.deep.equal([200, -32602])
  })

  it('ignores headers and _meta keys of newer protocol versions', async () => {
    const headers = { 'Mcp-Method': 'tools/list', 'Mcp-Name': 'other' }
    const params = { name: 'echo', arguments: { text: 'a' }, _meta: { 'io.modelcontextprotocol/clientInfo': 5 } }
    const { status, message } = await legacy(url, 'tools/call', params, { headers })
    expect([status, message.result.content[0].text]).to.deep.equal([200, 'a'])
  })

  it('sends progress for a progress token, but no log messages', async () => {
    const quiet = await call(LATEST, 'chatty')
    expect(quiet.messages).to.have.length(1)
    const { messages } = await call(LATEST, 'chatty', { _meta: { progressToken: 3 } })
    expect(messages.map(({ method }) => method)).to.deep.equal(['notifications/progress', undefined])
    expect(messages[0].params).to.deep.equal({ progressToken: 3, progress: 1 })
  })
})

describe('Legacy protocol on a stateless route: slow call', () => {
  it('is answered on a stream that ends with the response', async () => {
    const headers = { 'Content-Type': 'application/json', Accept: '*/*', 'MCP-Protocol-Version': LATEST }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 8, method: 'tools/call', params: { name: 'slow' } })
    const response = await fetch(url, { method: 'POST', headers, body })
    expect(response.headers.get('content-type')).to.equal('text/event-stream')
    held.open()
    const messages = await readEvents(response).rest()
    expect(messages).to.deep.equal([{ jsonrpc: '2.0', id: 8, result: { content: [{ type: 'text', text: 'slow' }] } }])
  })
})
