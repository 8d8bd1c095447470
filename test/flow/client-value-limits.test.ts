// Tests the size limits of client-supplied values: client info, capabilities, ids, progress tokens, URIs and names in
// errors.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import {
  MAX_BATCH,
  MAX_CLIENT_FACT,
  MAX_CLIENT_VALUES,
  MAX_ID,
  MAX_SHOWN,
  MAX_URI,
  MAX_WATCHED,
  MAX_WATCHED_BYTES,
  MAX_WATCHED_BYTES_PER_OWNER,
  WATCH_COST,
} from '../../core/mcp/client-limits.ts'
import { META } from '../../core/transport.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { legacy, modern, type RpcAnswer, type RpcMessage } from '../support/rpc.ts'
import {
  initialize,
  listen,
  nextMessage,
  openSession,
  postMessage,
  readWhole,
  type SessionClient,
} from '../support/session-client.ts'
import { connectSse } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { itThorough } from '../support/thorough.ts'

const puppet = createPuppet()
let host: Services
let url: string
before(async () => {
  const look = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(given) {
      given.onReady(() => {
        const services = given.services
        host = services
      })
    },
  })
  const started = await startHost({
    toolsets: {
      all: [
        puppet.tool,
        defineTool({ name: 'echo', handler: () => 'echoed' }),
        defineResource({
          name: 'note',
          uriTemplate: 'note://{name}',
          handler: () => 'text',
          complete: { name: () => [] },
        }),
        definePrompt({ name: 'ask', arguments: { about: {} }, handler: () => 'text' }),
      ],
    },
    routes: {
      '/': { toolsets: 'all' },
      '/alone': { toolsets: 'all', stateless: true, plugins: { 'transport-sse': false } },
    },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, look: look() },
  })
  url = started.url
})
after(stopHosts)

const text = (bytes: number) => 'x'.repeat(bytes)
/** As JSON, so many bytes. */
const infoOf = (bytes: number) => ({ name: text(bytes - 27), version: '1.0' })
const handshake = (clientInfo: unknown, capabilities: unknown = {}) => ({
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities, clientInfo },
})
/** Little text, and much more than that when it is read. */
const crowd = (values: number) => ({ experimental: { list: Array(values - 3).fill(0) } })

describe('client info and capabilities: size limits', () => {
  it(`accepts ${MAX_CLIENT_FACT} bytes and ${MAX_CLIENT_VALUES} values, opens no session beyond`, async () => {
    expect(JSON.stringify(infoOf(MAX_CLIENT_FACT))).to.have.length(MAX_CLIENT_FACT)
    expect((await postMessage(url, handshake(infoOf(MAX_CLIENT_FACT)))).message.result).to.be.an('object')
    expect((await postMessage(url, handshake(infoOf(100), crowd(MAX_CLIENT_VALUES)))).message.result).to.be.an('object')
    const sessions = host.sessions.count
    const tooMuch = [
      handshake(infoOf(MAX_CLIENT_FACT + 1)),
      handshake(infoOf(3_500_000)),
      handshake(infoOf(100), { experimental: { large: { text: text(MAX_CLIENT_FACT) } } }),
      handshake(infoOf(100), crowd(MAX_CLIENT_VALUES + 1)),
      handshake(infoOf(100), crowd(1_000_000)),
    ]
    let longest = 0
    for (const message of tooMuch) {
      for (const at of [url, `${url}/alone`]) {
        const answer = await postMessage(at, message)
        longest = Math.max(longest, answer.text.length)
        expect([answer.message.error.code, answer.message.id]).to.deep.equal([-32602, 1])
        expect(answer.headers['mcp-session-id']).to.equal(undefined)
      }
    }
    expect(host.sessions.count).to.equal(sessions)
    expect(longest).to.be.below(1_000)
  })

  it('rejects oversized client info on HTTP+SSE and then accepts a valid initialize', async () => {
    const client = await connectSse(url)
    await client.post(handshake(infoOf(MAX_CLIENT_FACT + 1)))
    expect((await client.next()).error.code).to.equal(-32602)
    expect((await client.request('initialize', handshake(infoOf(100)).params)).result).to.be.an('object')
    client.stream.drop()
  })

  it('rejects oversized client info in a 2026-07-28 request with 400', async () => {
    for (const meta of [
      { [META.clientInfo]: infoOf(MAX_CLIENT_FACT + 1) },
      { [META.clientCapabilities]: crowd(MAX_CLIENT_VALUES + 1) },
    ]) {
      const { status, message } = await modern(url, 'tools/list', {}, { meta, id: 7 })
      expect([status, message.error.code, message.id]).to.deep.equal([400, -32602, 7])
    }
    const fits = { [META.clientInfo]: infoOf(MAX_CLIENT_FACT) }
    expect((await modern(url, 'tools/list', {}, { meta: fits })).status).to.equal(200)
  })
})

describe('request ids and progress tokens: size limits', () => {
  const longest = text(MAX_ID)
  const tooLong = [text(MAX_ID + 1), '€'.repeat(MAX_ID / 3 + 1), text(3_000_000)]

  it(`rejects a request id over ${MAX_ID} bytes without repeating it`, async () => {
    const session = await openSession(url)
    expect((await session.request('ping', {}, { id: longest })).message.id).to.equal(longest)
    expect((await modern(url, 'tools/list', {}, { id: longest })).message.id).to.equal(longest)
    for (const id of tooLong) {
      for (const answer of [await modern(url, 'tools/list', {}, { id }), await session.request('ping', {}, { id })]) {
        expect([answer.status, answer.message.error.code, 'id' in answer.message]).to.deep.equal([400, -32600, false])
        expect(answer.text.length).to.be.below(500)
      }
    }
  })

  it('rejects an oversized id in a batch and in a response', async () => {
    const session = await openSession(url, { revision: '2025-03-26' })
    const batch = [
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', id: tooLong[0], method: 'ping' },
    ]
    expect((await session.send(batch)).status).to.equal(400)
    expect((await session.send({ id: tooLong[0], result: {} })).status).to.equal(400)
  })

  it('rejects an oversized progress token with 400 and the request id', async () => {
    const session = await openSession(url)
    const call = (progressToken: unknown) =>
      session.request('tools/call', { name: 'echo', arguments: {}, _meta: { progressToken } }, { id: 5 })
    expect((await call(longest)).message.result.content[0].text).to.equal('echoed')
    for (const token of tooLong) {
      const { status, message } = await call(token)
      expect([status, message.error.code, message.id]).to.deep.equal([400, -32602, 5])
    }
    const inMeta = await modern(url, 'tools/call', { name: 'echo' }, { meta: { progressToken: tooLong[0] }, id: 6 })
    expect([inMeta.status, inMeta.message.error.code, inMeta.message.id]).to.deep.equal([400, -32602, 6])
  })
})

describe('client-supplied URIs: size and subscription limits', () => {
  const uriOf = (bytes: number, start = '') => `note://${start}`.padEnd(bytes, 'x')

  it(`rejects a URI over ${MAX_URI} bytes in every method that takes one`, async () => {
    const session = await openSession(url)
    const methods = (uri: string): Array<[string, object]> => [
      ['resources/read', { uri }],
      ['resources/subscribe', { uri }],
      ['resources/unsubscribe', { uri }],
      ['completion/complete', { ref: { type: 'ref/resource', uri }, argument: { name: 'name', value: '' } }],
    ]
    for (const [method, params] of methods(uriOf(MAX_URI))) {
      expect((await session.request(method, params)).message.result, method).to.be.an('object')
    }
    for (const size of [MAX_URI + 1, 3_000_000]) {
      for (const [method, params] of methods(uriOf(size))) {
        const { message, text: all } = await session.request(method, params, { id: 9 })
        expect([message.error.code, message.id], method).to.deep.equal([-32602, 9])
        expect(all.length).to.be.below(500)
      }
      const { status, message } = await readWhole(listen(url, { resourceSubscriptions: [uriOf(size)] }))
      expect([status, message.error.code]).to.deep.equal([200, -32602])
    }
  })

  it(`limits the subscriptions of a session to ${MAX_WATCHED_BYTES} bytes; unsubscribing frees space`, async () => {
    const session = await openSession(url)
    const watch = async (uri: string, method = 'resources/subscribe') =>
      (await session.request(method, { uri })).message.error?.code
    const most = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    let watched = 0
    while (watched <= most && (await watch(uriOf(MAX_URI, `${watched}-`))) === undefined) watched++
    expect(watched).to.equal(most)
    // Again: nothing new.
    expect(await watch(uriOf(MAX_URI, '0-'))).to.equal(undefined)
    expect(await watch(uriOf(MAX_URI, '0-'), 'resources/unsubscribe')).to.equal(undefined)
    expect(await watch(uriOf(MAX_URI, 'another-'))).to.equal(undefined)
    expect(await watch(uriOf(MAX_URI, 'one more-'))).to.equal(-32600)
    await session.end()
  })

  itThorough(`limits the subscriptions of an owner to ${MAX_WATCHED_BYTES_PER_OWNER} bytes`, async () => {
    const open = () => openSession(url, { revision: '2025-03-26' })
    /** Subscribes to URIs in batches. Returns the errors. */
    const watch = async (session: SessionClient, uris: readonly string[]): Promise<RpcMessage[]> => {
      const errors: RpcMessage[] = []
      for (let sent = 0; sent < uris.length; sent += MAX_BATCH) {
        const { messages } = await session.send(
          uris.slice(sent, sent + MAX_BATCH).map((uri, index) => ({
            jsonrpc: '2.0',
            id: sent + index,
            method: 'resources/subscribe',
            params: { uri },
          })),
        )
        errors.push(...messages.flat().flatMap(({ error }) => error ?? []))
      }
      return errors
    }
    const many = (count: number, bytes: number, name: string) =>
      Array.from({ length: count }, (_, index) => uriOf(bytes, `${name}-${index}-`))
    const each = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    const most = Math.floor(MAX_WATCHED_BYTES_PER_OWNER / (MAX_URI + WATCH_COST))
    const full = Math.floor(most / each)
    const sessions: SessionClient[] = []
    for (let index = 0; index < full; index++) {
      const session = await open()
      sessions.push(session)
      expect(await watch(session, many(each, MAX_URI, `${index}`))).to.deep.equal([])
    }
    const last = await open()
    sessions.push(last)
    const refused = await watch(last, many(each, MAX_URI, 'last'))
    expect(refused).to.have.length(each - (most % each))
    expect(new Set(refused.map(({ code }) => code))).to.deep.equal(new Set([-32600]))
    expect(refused[0].message).to.include(String(MAX_WATCHED_BYTES_PER_OWNER))
    expect((await sessions.shift()?.end())?.status).to.equal(204)
    // The rest of what this session can watch.
    expect(await watch(last, many(each, MAX_URI, 'again'))).to.have.length(most % each)
    for (const session of sessions) await session.end()
  })

  it('limits subscriptions/listen per URI, per stream and per owner', async () => {
    const mostLong = Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST))
    const many = (count: number, bytes: number) =>
      Array.from({ length: count }, (_, index) => uriOf(bytes, `${index}-`))
    for (const uris of [many(MAX_WATCHED + 1, 20), many(mostLong + 1, MAX_URI), many(60, 65_000)]) {
      const { message } = await readWhole(listen(url, { resourceSubscriptions: uris }))
      expect(message.error.code).to.equal(-32602)
    }
    for (const uris of [many(MAX_WATCHED, 100), many(mostLong, MAX_URI)]) {
      const stream = await listen(url, { resourceSubscriptions: uris })
      const { params } = await nextMessage(stream)
      expect(params.notifications.resourceSubscriptions).to.have.length(uris.length)
      stream.drop()
    }
    const most = Math.floor(MAX_WATCHED_BYTES_PER_OWNER / (mostLong * (MAX_URI + WATCH_COST)))
    const uris = many(mostLong, MAX_URI)
    const streams = await Promise.all(
      Array.from({ length: most + 2 }, () => listen(url, { resourceSubscriptions: uris })),
    )
    const open = streams.filter(({ status }) => status === 200)
    expect(open).to.have.length(most)
    expect(new Set(streams.map(({ status }) => status))).to.deep.equal(new Set([200, 429]))
    // Streams without resources cost none of it, and one that ends makes room.
    const without = await listen(url, { toolsListChanged: true })
    expect(without.status).to.equal(200)
    for (const stream of [...open, without]) stream.drop()
    const again = async (): Promise<number> => {
      const stream = await listen(url, { resourceSubscriptions: uris })
      stream.drop()
      return stream.status
    }
    await eventually('room for another one', again, status => status === 200)
  })
})

describe('client-supplied values in error messages and logs', () => {
  it('truncates client-supplied values in error responses', async () => {
    const session = await openSession(url)
    const long = text(500_000)
    const header = text(10_000)
    const answers: Record<string, { readonly text: string; readonly message: RpcAnswer['message'] }> = {
      method: await session.request(long),
      'modern method': await modern(url, 'nope', {}, { headers: { 'Mcp-Method': header } }),
      tool: await session.request('tools/call', { name: long }),
      prompt: await session.request('prompts/get', { name: long }),
      'prompt argument': await session.request('prompts/get', { name: 'ask', arguments: { [long]: 1 } }),
      'completed prompt': await session.request('completion/complete', {
        ref: { type: 'ref/prompt', name: long },
        argument: { name: 'about', value: '' },
      }),
      'completed argument': await session.request('completion/complete', {
        ref: { type: 'ref/prompt', name: 'ask' },
        argument: { name: long, value: '' },
      }),
      'version header': await session.request('ping', {}, { headers: { 'MCP-Protocol-Version': header } }),
      'version in _meta': await modern(url, 'tools/list', {}, { meta: { [META.protocolVersion]: long } }),
      'Mcp-Name': await modern(url, 'tools/call', { name: 'echo' }, { headers: { 'Mcp-Name': header } }),
      'logging level': await session.request('logging/setLevel', { level: long }),
      cursor: await session.request('tools/list', { cursor: long }),
      requestState: await modern(url, 'tools/call', { name: 'echo', requestState: long }),
      'session id': await postMessage(url, { id: 1, method: 'ping' }, { 'Mcp-Session-Id': header }),
      'event id': await postMessage(
        url,
        { id: 1, method: 'ping' },
        { 'Mcp-Session-Id': session.id, 'Last-Event-ID': header },
      ),
      'protocol version': await legacy(`${url}/alone`, 'initialize', { protocolVersion: long }),
    }
    const lengths = Object.entries(answers).map(([what, answer]) => [what, answer.text.length] as const)
    for (const [what, length] of lengths) expect(length, what).to.be.below(3 * MAX_SHOWN)
  })

  it('truncates the reason of a cancellation and ignores invalid request ids', async () => {
    const session = await openSession(url)
    const running = session.call('puppet', { name: 'cancelled' }, { id: 'the call' })
    const { ctx } = await puppet.call('cancelled')
    const cancel = (requestId: unknown) =>
      session.send({ method: 'notifications/cancelled', params: { requestId, reason: text(3_000_000) } })
    for (const id of [{ toString: 1 }, ['the call'], text(1_000_000), null]) {
      expect((await cancel(id)).status).to.equal(202)
    }
    expect(ctx.signal.aborted).to.equal(false)
    expect((await cancel('the call')).status).to.equal(202)
    expect(ctx.signal.aborted).to.equal(true)
    expect(ctx.signal.reason.message.length).to.be.at.most(MAX_SHOWN + 1)
    await (await running).whole
  })

  it('still accepts new sessions afterwards', async () => {
    expect((await initialize(url)).status).to.equal(200)
  })
})
