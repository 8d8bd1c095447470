import { expect } from 'chai'
import { defineResource, defineTool } from '../../../core/index.ts'
import { HANDSHAKE_REVISIONS, MODERN_REVISION } from '../../../core/transport.ts'
import { createGate } from '../../support/gate.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { initializeMessage, sendRequest } from '../../support/session-client.ts'
import { connectSse, openSse, openSseSession } from '../../support/sse-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const { tool: puppet, call } = createPuppet()
const count = defineTool({
  name: 'count',
  handler(_args, { progress, log }) {
    for (const step of [1, 2, 3]) progress(step, 3)
    log('info', 'counted')
    return 'counted'
  },
})
const detached = createGate()
const chatter = defineTool({
  name: 'chatter',
  handler(_args, { progress }) {
    void detached.opened.then(() => progress(1))
    return 'done'
  },
})
const rooted = defineTool({ name: 'rooted', handler: async (_args, { roots }) => `${(await roots()).roots.length}` })
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const echo = defineTool({ name: 'echo', handler: (_args, { route }) => JSON.stringify(route) })

const lives = new Map<string, ReturnType<typeof createGate<void>>>()
let started: StartedHost
let url: string
before(async () => {
  started = await startHost({
    toolsets: { all: [puppet, count, chatter, rooted, page, echo], other: [echo] },
    routes: { '/': { toolsets: 'all' }, '/t/:category?': { toolsets: ':category', default: ['all'] } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {} },
    async runSession(_request, { id = '' }, run) {
      const over = createGate()
      lives.set(id, over)
      await run()
      over.open()
    },
  })
  url = started.url
})
after(stopHosts)

const callTool = (id: string | number, name: string, args: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
})

describe('GET <route>/sse', () => {
  it('opens a stream whose first event `endpoint` has the message URL', async () => {
    const stream = await openSse(url)
    expect([stream.status, stream.headers['content-type']]).to.deep.equal([200, 'text/event-stream'])
    const first = await stream.next()
    expect(first?.event).to.equal('endpoint')
    expect(first?.data).to.match(/^\/message\?sessionId=[\w-]{76}$/)
    stream.drop()
  })

  it('includes the route parameter in the message URL', async () => {
    for (const path of ['/t/other', '/t']) {
      const client = await openSseSession(`${url}${path}`)
      expect(client.endpoint).to.match(new RegExp(`^${path}/message\\?sessionId=`))
      const { result } = await client.request('tools/call', { name: 'echo' })
      expect(JSON.parse(result.content[0].text).params).to.deep.equal(path === '/t' ? {} : { category: 'other' })
      client.stream.drop()
    }
    expect((await openSse(`${url}/t/nowhere`)).status).to.equal(404)
  })

  it('accepts only GET, and the message URL only POST: 405 with Allow', async () => {
    const allowOf = async (method: string, path: string) => {
      const { status, headers } = await sendRequest(`${url}${path}`, method)
      return [status, headers['allow']]
    }
    expect(await allowOf('POST', '/sse')).to.deep.equal([405, 'GET'])
    expect(await allowOf('DELETE', '/sse')).to.deep.equal([405, 'GET'])
    expect(await allowOf('HEAD', '/sse')).to.deep.equal([405, 'GET'])
    expect(await allowOf('GET', '/message')).to.deep.equal([405, 'POST'])
  })

  it('answers 403 to a foreign Origin on both URLs', async () => {
    const headers = { Origin: 'https://evil.example' }
    expect((await openSse(url, { headers })).status).to.equal(403)
    const client = await openSseSession(url)
    expect((await client.post({ method: 'notifications/initialized' }, headers)).status).to.equal(403)
    client.stream.drop()
  })
})

describe('SSE session', () => {
  for (const revision of HANDSHAKE_REVISIONS) {
    it(`negotiates ${revision}, and every response is a \`message\` event on the stream`, async () => {
      const client = await connectSse(url)
      const accepted = await client.post(initializeMessage({ revision }))
      expect([accepted.status, accepted.text]).to.deep.equal([202, ''])
      const event = await client.stream.next()
      expect(event?.event).to.equal('message')
      expect(event?.message.id).to.equal('initialize')
      expect(event?.message.result).to.deep.include({ protocolVersion: revision })
      client.stream.drop()
    })
  }

  it('never negotiates 2026-07-28, but the latest handshake version', async () => {
    const client = await connectSse(url)
    const { result } = await client.request('initialize', initializeMessage({ revision: MODERN_REVISION }).params)
    expect(result.protocolVersion).to.equal(HANDSHAKE_REVISIONS[0])
    client.stream.drop()
  })

  it('refuses a second initialize with -32600 and keeps the session', async () => {
    const client = await openSseSession(url)
    expect((await client.request('initialize', initializeMessage().params)).error.code).to.equal(-32600)
    expect((await client.request('ping')).result).to.deep.equal({})
    client.stream.drop()
  })

  it('sends notifications of a call in order before its response', async () => {
    const client = await openSseSession(url)
    await client.post(callTool('c', 'count'))
    const said: unknown[] = []
    for (let message = await client.next(); message.id !== 'c'; message = await client.next()) {
      said.push(message.params.progress ?? message.params.data)
    }
    expect(said).to.deep.equal([1, 2, 3, 'counted'])
    client.stream.drop()
  })

  it('sends nothing for a call after its response', async () => {
    const client = await openSseSession(url)
    await client.request('tools/call', { name: 'chatter', _meta: { progressToken: 1 } })
    detached.open()
    await detached.opened
    await client.post({ id: 'after', method: 'ping' })
    expect((await client.next()).id).to.equal('after')
    client.stream.drop()
  })

  it('sends responses in order of completion', async () => {
    const client = await openSseSession(url)
    await client.post(callTool(1, 'puppet', { name: 'slow' }))
    const { finish } = await call('slow')
    expect((await client.request('ping')).result).to.deep.equal({})
    finish('at last')
    expect((await client.next()).id).to.equal(1)
    client.stream.drop()
  })

  it('sends requests to the client on the stream and accepts responses by POST', async () => {
    const client = await openSseSession(url, { capabilities: { roots: {} } })
    await client.post(callTool('r', 'rooted'))
    const { id, method } = await client.next()
    expect(method).to.equal('roots/list')
    expect((await client.post({ id, result: { roots: [{ uri: 'file:///a' }] } })).status).to.equal(202)
    expect((await client.next()).result.content[0].text).to.equal('1')
    client.stream.drop()
  })

  it('receives list_changed and resource updates', async () => {
    const client = await openSseSession(url)
    await client.request('resources/subscribe', { uri: 'test://page' })
    started.host.runtime.resourceUpdated('test://page')
    expect((await client.next()).params).to.deep.equal({ uri: 'test://page' })
    started.host.runtime.tools.add(defineTool({ name: 'more', handler: () => '' }))
    expect((await client.next()).method).to.equal('notifications/tools/list_changed')
    started.host.runtime.tools.remove('more')
    client.stream.drop()
  })

  it('aborts a cancelled call without a response', async () => {
    const client = await openSseSession(url)
    await client.post(callTool('stop', 'puppet', { name: 'stopped' }))
    const { ctx } = await call('stopped')
    await client.post({ method: 'notifications/cancelled', params: { requestId: 'stop', reason: 'enough' } })
    expect(ctx.signal.reason.message).to.equal('enough')
    await client.post({ id: 'after', method: 'ping' })
    expect((await client.next()).id).to.equal('after')
    client.stream.drop()
  })

  it('ends when its stream closes: calls are aborted and its id gets 404', async () => {
    const client = await openSseSession(url)
    await client.post(callTool(1, 'puppet', { name: 'left alone' }))
    const { ctx } = await call('left alone')
    client.stream.drop()
    await lives.get(client.sessionId)?.opened
    expect(ctx.signal.aborted).to.equal(true)
    expect((await client.post({ id: 2, method: 'ping' })).status).to.equal(404)
  })

  it('on shutdown finishes running calls and sends a retry hint before closing the stream', async () => {
    const own = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-sse': {} },
    })
    const client = await openSseSession(own.url)
    await client.post(callTool('last', 'puppet', { name: 'last' }))
    const { finish } = await call('last')
    const closing = own.host.close({ grace: 5_000 })
    finish('in time')
    expect((await client.next()).result.content[0].text).to.equal('in time')
    const events = await client.stream.rest()
    expect(events.map(({ retry }) => retry)).to.deep.equal([1_000])
    expect(await client.stream.whole).to.equal(true)
    expect(await closing).to.include({ cancelled: 0 })
  })

  it('leaves nothing behind if the client disconnects before the session opens', async () => {
    const [configuring, proceed, over] = [createGate(), createGate(), createGate()]
    const own = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-sse': {} },
      async configureSession() {
        configuring.open()
        await proceed.opened
      },
      async runSession(_request, _session, run) {
        await run()
        over.open()
      },
    })
    const controller = new AbortController()
    const gone = fetch(`${own.url}/sse`, { signal: controller.signal }).catch((error: Error) => error.name)
    await configuring.opened
    controller.abort()
    expect(await gone).to.equal('AbortError')
    proceed.open()
    await over.opened
  })
})
