import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import {
  initializeMessage,
  nextMessage,
  openSession,
  postMessage,
  type SessionClient,
} from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const { tool: puppet, call } = createPuppet()
const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  handler: ({ text }) => text,
})
const rooted = defineTool({ name: 'rooted', handler: async (_args, { roots }) => (await roots()).roots.length })

let url: string
before(async () => {
  ;({ url } = await startHost({ toolsets: { all: [echo, puppet, rooted] }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const request = (id: string | number, method = 'ping', params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
const echoed = (id: string | number, text: string) =>
  request(id, 'tools/call', { name: 'echo', arguments: { text }, _meta: { progressToken: id } })
const open = (revision = '2025-03-26', capabilities: object = {}) => openSession(url, { revision, capabilities })

async function expectRefused(client: SessionClient, batch: unknown, words: RegExp) {
  const { status, message } = await client.send(JSON.stringify(batch))
  expect([status, message.error.code]).to.deep.equal([400, -32600])
  expect(message.error.message).to.match(words)
  expect((await client.request('ping')).status, 'the session lives on').to.equal(200)
}

describe('Batch in a 2025-03-26 session', () => {
  it('is answered by one array with each response, in any order', async () => {
    const client = await open()
    const batch = [request('p'), echoed(2, 'two'), echoed(0, 'zero'), request('x', 'no/such')]
    const { status, headers, text } = await client.send(batch)
    expect([status, headers['content-type']]).to.deep.equal([200, 'application/json'])
    const byId = new Map(JSON.parse(text).map((message: { id: unknown }) => [message.id, message]))
    expect([...byId.keys()]).to.have.members(['p', 2, 0, 'x'])
    expect(byId.get('p')).to.have.deep.property('result', {})
    expect(byId.get(2)).to.have.nested.property('result.content[0].text', 'two')
    expect(byId.get(0)).to.have.nested.property('result.content[0].text', 'zero')
    expect(byId.get('x')).to.have.nested.property('error.code', -32601)
  })

  it('with one request is answered by an array with one response', async () => {
    const { text } = await (await open()).send([request(1)])
    expect(JSON.parse(text)).to.deep.equal([{ jsonrpc: '2.0', id: 1, result: {} }])
  })

  it('with only notifications and responses gets 202 without a body', async () => {
    const client = await open()
    const batch = [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 'ask-9', result: {} },
    ]
    const { status, text } = await client.send(batch)
    expect([status, text]).to.deep.equal([202, ''])
  })

  it('can contain responses to server requests and cancellations, with immediate effect', async () => {
    const client = await open('2025-03-26', { roots: {} })
    const asking = await client.call('rooted')
    const question = await nextMessage(asking)
    const running = client.call('puppet', { name: 'stopped' }, { id: 'stop me' })
    const { ctx } = await call('stopped')
    await client.send([
      { jsonrpc: '2.0', id: question.id, result: { roots: [] } },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'stop me' } },
    ])
    expect((await nextMessage(asking)).result.content[0].text).to.equal('0')
    expect(ctx.signal.aborted).to.equal(true)
    expect(await (await running).whole).to.equal(true)
  })

  it('switches to a stream that ends with its last response if a call notifies', async () => {
    const client = await open()
    const sent = client.send([
      echoed(1, 'quick'),
      request(2, 'tools/call', { name: 'puppet', arguments: { name: 'b' }, _meta: { progressToken: 't' } }),
    ])
    const { ctx, finish } = await call('b')
    ctx.progress(1)
    finish('slow')
    const { headers, messages } = await sent
    expect(headers['content-type']).to.equal('text/event-stream')
    expect(messages.map(({ id, method }) => id ?? method)).to.have.members([1, 'notifications/progress', 2])
  })

  it('continues if one of its requests is cancelled', async () => {
    const client = await open()
    const sent = client.send([request(1, 'tools/call', { name: 'puppet', arguments: { name: 'c' } }), request(2)])
    await call('c')
    await client.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    expect((await sent).messages.flat().map(({ id }) => id)).to.deep.equal([2])
  })

  it('with a duplicate id answers both, one with an error', async () => {
    const { text } = await (await open()).send([
      request(1, 'tools/call', { name: 'echo', arguments: { text: 'a' } }),
      request(1),
    ])
    const answers = JSON.parse(text) as Array<{ id: unknown; error?: { code: number } }>
    expect(answers.map(({ id }) => id)).to.deep.equal([1, 1])
    expect(answers.flatMap(({ error }) => error?.code ?? [])).to.deep.equal([-32600])
  })

  it('is limited to 50 entries and must not be empty', async () => {
    const client = await open()
    const many = Array.from({ length: 51 }, (_, index) => request(index))
    expect(JSON.parse((await client.send(many.slice(1))).text)).to.have.length(50)
    await expectRefused(client, many, /at most 50/)
    await expectRefused(client, [], /empty/)
  })

  it('with an invalid message is refused completely', async () => {
    await expectRefused(await open(), [request(1), { id: 2 }], /jsonrpc/)
  })

  it('must not contain initialize, with or without a session', async () => {
    const batch = [{ jsonrpc: '2.0', ...initializeMessage({ revision: '2025-03-26' }) }]
    await expectRefused(await open(), batch, /initialize/)
    for (const messages of [batch, [...batch, request(1)]]) {
      const { status, message, headers } = await postMessage(url, messages)
      expect([status, message.error.code, headers['mcp-session-id']]).to.deep.equal([400, -32600, undefined])
    }
  })

  it('requires the session id', async () => {
    expect((await postMessage(url, [request(1)])).status).to.equal(400)
    expect((await postMessage(url, [request(1)], { 'Mcp-Session-Id': 'unknown' })).status).to.equal(404)
  })
})

describe('Batch in a session of another protocol version', () => {
  for (const revision of ['2025-11-25', '2025-06-18', '2024-11-05']) {
    it(`is refused in ${revision} with 400 -32600, for any version header`, async () => {
      const client = await open(revision)
      await expectRefused(client, [request(1)], /only protocol version 2025-03-26/)
      for (const version of [undefined, '2025-03-26']) {
        const { status, message } = await client.send([request(1)], { 'MCP-Protocol-Version': version })
        expect([status, message.error.code], version).to.deep.equal([400, -32600])
      }
    })
  }
})
