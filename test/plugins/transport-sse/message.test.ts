import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { openSocket, parseAnswer, readToEnd, requestHead } from '../../support/raw-http.ts'
import { initialize, initializeMessage, openSession, postMessage, sendRequest } from '../../support/session-client.ts'
import { connectSse, openSse, openSseSession, type SseClient } from '../../support/sse-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const { tool: puppet, call } = createPuppet()
const who = defineTool({ name: 'who', handler: (_args, { user }) => String(user?.claims['tier']) })

/** What was asked for, from its head on. */
const begun = new Set<string>()
const watch = plugin(host =>
  host.use((ctx, next) => {
    begun.add(ctx.url)
    return next()
  }),
)

let started: StartedHost
let url: string
before(async () => {
  started = await startHost({
    toolsets: { all: [puppet, who], other: [who] },
    routes: {
      '/': { toolsets: 'all' },
      '/other': { toolsets: 'all' },
      '/t/:category': { toolsets: ':category' },
      '/none': { toolsets: 'all', plugins: { 'transport-sse': false } },
      '/few': { toolsets: 'all', plugins: { 'transport-sse': { maxConcurrent: 2 } } },
    },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, who: identifyByHeader(), watch },
    http: { port: 0, maxBodySize: '2kb' },
  })
  url = started.url
})
after(stopHosts)

const PING = { id: 9, method: 'ping' }
const callPuppet = (name: string) => ({
  id: name,
  method: 'tools/call',
  params: { name: 'puppet', arguments: { name } },
})

async function expectAlive(client: SseClient) {
  expect((await client.request('ping')).result, 'the session lives on').to.deep.equal({})
  client.stream.drop()
}

describe('POST <route>/message', () => {
  it('answers 400 without sessionId and 404 for an unknown or forged one', async () => {
    const client = await openSseSession(url)
    const forged = `${client.sessionId.slice(0, -1)}${client.sessionId.endsWith('A') ? 'B' : 'A'}`
    const statusOf = async (query: string) => {
      const { status, message } = await postMessage(`${url}/message${query}`, PING)
      return [status, message.error.code]
    }
    for (const query of ['', '?', '?sessionId=', '?sessionid=x']) {
      expect(await statusOf(query), query).to.deep.equal([400, -32000])
    }
    for (const id of ['unknown', forged, 'x'.repeat(76)]) {
      expect(await statusOf(`?sessionId=${id}`), id).to.deep.equal([404, -32001])
    }
    expect(await statusOf(`?sessionId=${client.sessionId}&sessionId=${client.sessionId}`)).to.deep.equal([400, -32000])
    await expectAlive(client)
  })

  it('answers 403 to another or anonymous user, and the session receives nothing', async () => {
    const client = await openSseSession(url, { headers: { 'X-User': 'ada' } })
    for (const headers of [{ 'X-User': 'bob' }, { 'X-User': 'ada', 'X-Issuer': 'https://a.example' }, {}]) {
      const { status, text } = await postMessage(new URL(client.endpoint, url).href, PING, headers)
      expect(status).to.equal(403)
      expect(text).not.to.include('ada')
    }
    await expectAlive(client)
  })

  it('runs with the token of the POST, not of the stream', async () => {
    const headers = { 'X-User': 'ada' }
    const client = await openSseSession(url, { headers: { ...headers, 'X-Tier': 'gold' } })
    const message = { id: 1, method: 'tools/call', params: { name: 'who' } }
    await client.post(message, { 'X-Tier': 'iron' })
    expect((await client.next()).result.content[0].text).to.equal('iron')
    client.stream.drop()
  })

  it('answers 404 on another route or another route parameter', async () => {
    const client = await openSseSession(`${url}/t/all`)
    for (const path of ['/message', '/other/message', '/t/other/message']) {
      const { status } = await postMessage(`${url}${path}?sessionId=${client.sessionId}`, PING)
      expect(status, path).to.equal(404)
    }
    await expectAlive(client)
  })

  it('answers 404 if the session ended while the body arrived, and runs nothing', async () => {
    let ran = false
    void call('late').then(() => {
      ran = true
    })
    for (const message of [callPuppet('late'), PING, { method: 'notifications/cancelled', params: { requestId: 1 } }]) {
      const client = await openSseSession(url)
      const body = JSON.stringify({ jsonrpc: '2.0', ...message })
      const path = `/message?sessionId=${client.sessionId}`
      const headers = { 'Content-Length': `${body.length}`, Connection: 'close' }
      const socket = await openSocket(url)
      socket.write(requestHead(url, { path, headers }))
      socket.write(body.slice(0, 10))
      await eventually('the request has begun', () => begun.has(path))
      client.stream.drop()
      await eventually(
        'the session has ended',
        async () => (await postMessage(`${url}${path}`, PING)).status,
        status => status === 404,
      )
      socket.write(body.slice(10))
      const { status } = parseAnswer(await readToEnd(socket))
      expect([status, ran], message.method).to.deep.equal([404, false])
    }
  })

  it('answers 404 for streamable HTTP sessions, and vice versa', async () => {
    const streamable = await openSession(url)
    expect((await postMessage(`${url}/message?sessionId=${streamable.id}`, PING)).status).to.equal(404)
    const client = await openSseSession(url)
    const headers = { 'Mcp-Session-Id': client.sessionId }
    expect((await postMessage(url, PING, headers)).status).to.equal(404)
    expect((await sendRequest(url, 'GET', { ...headers, Accept: 'text/event-stream' })).status).to.equal(404)
    expect((await sendRequest(url, 'DELETE', headers)).status).to.equal(404)
    await expectAlive(client)
  })

  it('answers 400 -32700 for malformed JSON, -32600 for invalid messages, and keeps the session', async () => {
    const client = await openSseSession(url)
    const malformed = await client.post('{"jsonrpc":')
    expect([malformed.status, malformed.message.error.code]).to.deep.equal([400, -32700])
    for (const text of ['', '5', 'null', '{}', '{"jsonrpc":"2.0","id":null,"method":"ping"}', '[]', '[1]']) {
      const { status, message } = await client.post(text)
      expect([status, message.error.code], text).to.deep.equal([400, -32600])
    }
    await expectAlive(client)
  })

  it('answers 415 for another content type, and 413 for a too large body', async () => {
    const client = await openSseSession(url)
    expect((await client.post(PING, { 'Content-Type': 'text/plain' })).status).to.equal(415)
    const long = { ...PING, params: { text: 'x'.repeat(3_000) } }
    expect((await client.post(long)).status).to.equal(413)
    await expectAlive(client)
  })

  it('answers 202 without a body for notifications and responses', async () => {
    const client = await openSseSession(url)
    for (const message of [{ method: 'notifications/initialized' }, { id: 'unknown', result: {} }]) {
      const { status, text } = await client.post(message)
      expect([status, text]).to.deep.equal([202, ''])
    }
    await expectAlive(client)
  })

  it('accepts batches in 2025-03-26 with one event per response, and 400 otherwise', async () => {
    const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    const client = await openSseSession(url, { revision: '2025-03-26' })
    expect((await client.post([ping(1), ping(2)])).status).to.equal(202)
    expect([(await client.next()).id, (await client.next()).id]).to.have.members([1, 2])
    const initializing = [{ jsonrpc: '2.0', ...initializeMessage() }]
    for (const batch of [initializing, [ping(1), ...initializing]]) {
      expect((await client.post(batch)).status).to.equal(400)
    }
    await expectAlive(client)
    for (const revision of ['2024-11-05', '2025-06-18']) {
      const other = await openSseSession(url, { revision })
      for (const batch of [[ping(1), ping(2)], [ping(1)]]) {
        const { status, message } = await other.post(batch)
        expect([status, message.error.code], revision).to.deep.equal([400, -32600])
      }
      await expectAlive(other)
    }
    const fresh = await connectSse(url)
    expect((await fresh.post(initializing)).status).to.equal(400)
    fresh.stream.drop()
  })
})

describe('Concurrent requests of an SSE session', () => {
  it('are limited: more get 429 with Retry-After until one ends', async () => {
    const client = await openSseSession(`${url}/few`)
    for (const name of ['one', 'two']) expect((await client.post(callPuppet(name))).status).to.equal(202)
    const { finish } = await call('one')
    await call('two')
    const refused = await client.post(callPuppet('three'))
    expect([refused.status, refused.message.error.code]).to.deep.equal([429, -32600])
    expect(Number(refused.headers['retry-after'])).to.be.greaterThan(0)
    expect((await client.post({ method: 'notifications/initialized' })).status).to.equal(202)
    finish('made room')
    expect((await client.next()).id).to.equal('one')
    expect((await client.request('ping')).result).to.deep.equal({})
    client.stream.drop()
  })

  it('are limited to 32 per session by default', async () => {
    const [client, other] = [await openSseSession(url), await openSseSession(url)]
    for (let count = 0; count < 32; count++) {
      expect((await client.post(callPuppet(`of 32: ${count}`))).status).to.equal(202)
    }
    expect((await client.post(callPuppet('the 33rd'))).status).to.equal(429)
    await client.post({ method: 'notifications/cancelled', params: { requestId: 'of 32: 7' } })
    expect((await client.request('ping')).result, 'a cancelled one makes room').to.deep.equal({})
    client.stream.drop()
    await expectAlive(other)
  })
})

describe('SSE sessions', () => {
  it('count with all sessions of their owner: 429 beyond sessions.maxPerOwner', async () => {
    const own = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'transport-sse': {} },
      sessions: { maxPerOwner: 2 },
    })
    const client = await connectSse(own.url)
    await openSession(own.url)
    const refused = await openSse(own.url)
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).to.deep.equal([429, true])
    expect((await initialize(own.url)).status).to.equal(429)
    expect((await openSse(own.url, { localAddress: '127.0.0.2' })).status).to.equal(200)
    client.stream.drop()
  })

  it('never appear in logs with their full id', async () => {
    const client = await openSseSession(url, { headers: { 'X-User': 'ada' } })
    await postMessage(new URL(client.endpoint, url).href, PING, { 'X-User': 'bob' })
    await client.post('{')
    expect(started.log.map(({ message }) => message)).to.include('refused a session of another user')
    expect(JSON.stringify(started.log)).not.to.include(client.sessionId)
    client.stream.drop()
  })

  it('are absent on routes that disable the transport, which refuse 2026-07-28', async () => {
    expect((await openSse(`${url}/none`)).status).to.equal(404)
    expect((await postMessage(`${url}/none/message?sessionId=x`, PING)).status).to.equal(404)
    const client = await openSseSession(url)
    const answer = await client.request('server/discover', { _meta: { version: MODERN_REVISION } })
    expect(answer.error.code).to.equal(-32601)
    client.stream.drop()
  })
})
