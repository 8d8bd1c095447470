import { expect } from 'chai'
import { defineTool, HostError } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { createGate } from '../../support/gate.ts'
import { post, type RpcMessage } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const held = createGate()
const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  handler: ({ text }) => text ?? '',
})
const slow = defineTool({
  name: 'slow',
  async handler() {
    await held.opened
    return 'slow'
  },
})
const first = defineTool({
  name: 'first',
  handler(_args, { progress }) {
    progress(1)
    held.open()
    return 'first'
  },
})

/** Refuses one method, as a plugin that limits users does. */
const refusePing = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.onCall(async (call, next) => {
      if (call.method !== 'ping') return next()
      // Every other call of the batch is answered by then.
      await new Promise(resolve => setImmediate(resolve))
      throw new HostError('tooManyRequests', { headers: { 'Retry-After': '1' } })
    })
  },
})

let url: string
before(async () => {
  const all = [echo, slow, first]
  ;({ url } = await startHost({ stateless: true, toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const VERSION = { 'MCP-Protocol-Version': '2025-03-26' }
const request = (id: unknown, method = 'ping', params?: object) => ({ jsonrpc: '2.0', id, method, params })
const toolCall = (id: unknown, name: string, more: object = {}) => request(id, 'tools/call', { name, ...more })
const note = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }
const response = { jsonrpc: '2.0', id: 'theirs', result: {} }
const send = (batch: unknown, headers: Record<string, string> = VERSION) => post(url, JSON.stringify(batch), headers)

async function expectRefused(batch: unknown, headers: Record<string, string> = VERSION) {
  const { status, message } = await send(batch, headers)
  expect([status, message.error.code]).to.deep.equal([400, -32600])
  return message
}

describe('Batch in 2025-03-26', () => {
  it('is answered by an array with one response per request', async () => {
    const ids = [0, 'a', '', -3, 7]
    const { status, headers, message } = await send(
      ids.map(id => toolCall(id, 'echo', { arguments: { text: `${id}` } })),
    )
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/json'])
    expect(message.map(({ id }: RpcMessage) => id)).to.have.deep.members(ids)
    for (const { id, result } of message) expect(result.content[0].text).to.equal(`${id}`)
  })

  it('is accepted without a version header', async () => {
    expect((await send([request(1)], {})).message).to.deep.equal([{ jsonrpc: '2.0', id: 1, result: {} }])
  })

  it('with one request is answered by an array', async () => {
    expect((await send([request(5)])).message).to.deep.equal([{ jsonrpc: '2.0', id: 5, result: {} }])
  })

  it('answers only requests in a mix with notifications and responses, and includes errors', async () => {
    const { status, message } = await send([note, request(1), response, request(2, 'no/such'), toolCall(3, 'nope')])
    expect(status).to.equal(200)
    const outcome = Object.fromEntries(message.map(({ id, error }: RpcMessage) => [id, error?.code ?? 'fine']))
    expect(outcome).to.deep.equal({ 1: 'fine', 2: -32601, 3: -32602 })
  })

  it('with only notifications and responses gets 202 without a body', async () => {
    for (const batch of [[note], [response], [note, response, note]]) {
      const { status, text } = await send(batch)
      expect([status, text]).to.deep.equal([202, ''])
    }
  })

  it('with slow or notifying calls is answered on one stream, in order of completion', async () => {
    const calls = [toolCall('b', 'slow'), toolCall('a', 'first', { _meta: { progressToken: 't' } })]
    const { headers, messages } = await send(calls)
    expect(headers.get('content-type')).to.equal('text/event-stream')
    expect(messages.map(({ method, id }) => method ?? id)).to.deep.equal(['notifications/progress', 'a', 'b'])
  })

  it('is limited to 50 entries and must not be empty', async () => {
    const ids = Array.from({ length: 51 }, (_, index) => index)
    const { message } = await send(ids.slice(0, 50).map(id => request(id)))
    expect(message).to.have.length(50)
    await expectRefused(ids.map(id => request(id)))
    await expectRefused(Array(51).fill(note))
    await expectRefused([])
  })

  it('must not contain initialize at any position', async () => {
    const init = request(1, 'initialize', { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: {} })
    for (const batch of [[init], [request(2), init], [note, init, note]]) {
      for (const headers of [VERSION, {}]) await expectRefused(batch, headers as Record<string, string>)
    }
  })

  it('with an invalid message is refused completely', async () => {
    for (const entry of [1, null, 'x', [], {}, [request(2)], { jsonrpc: '2.0', id: null, method: 'ping' }]) {
      await expectRefused([request(1), entry])
    }
  })

  it('is answered with 200 and an error entry if one call has an HTTP error status', async () => {
    const plugins = { 'transport-streamable': {}, refusePing: refusePing() }
    const limited = await startHost({
      stateless: true,
      toolsets: { all: [echo] },
      routes: { '/': { toolsets: 'all' } },
      plugins,
    })
    const alone = await post(limited.url, JSON.stringify(request(1)), VERSION)
    expect([alone.status, alone.headers.get('retry-after')]).to.deep.equal([429, '1'])
    for (const batch of [
      [request(1), toolCall(2, 'echo')],
      [toolCall(2, 'echo'), request(1)],
    ]) {
      const { status, headers, message } = await post(limited.url, JSON.stringify(batch), VERSION)
      expect([status, headers.get('retry-after')]).to.deep.equal([200, null])
      const codes = Object.fromEntries(message.map(({ id, error }: RpcMessage) => [id, error?.code]))
      expect(codes).to.deep.equal({ 1: -32600, 2: undefined })
    }
  })

  it('refuses calls of a newer protocol version in its entries', async () => {
    const params = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }
    expect((await send([request(1, 'tools/list', params)])).status).to.equal(400)
  })
})

describe('Batch in other protocol versions', () => {
  it('is refused with 400 -32600, with a null id only where the version has null ids', async () => {
    const withNull = ['2024-11-05', '2025-06-18']
    for (const version of withNull) {
      expect(await expectRefused([request(1)], { 'MCP-Protocol-Version': version }), version).to.have.property(
        'id',
        null,
      )
    }
    for (const version of ['2025-11-25', '2026-07-28']) {
      const message = await expectRefused([request(1)], { 'MCP-Protocol-Version': version })
      expect(message, version).not.to.have.property('id')
    }
  })
})
