import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { nextMessage, openSession, readRest, sendRequest } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const { tool, call } = createPuppet()
const asking = defineTool({
  name: 'asking',
  handler: async (_args, { roots }) => `${(await roots()).roots.length} roots`,
})

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: [tool, asking] },
    routes: { '/': { toolsets: 'all' }, '/stateless': { toolsets: 'all', stateless: true } },
  }))
})
after(stopHosts)

const aborted = (signal: AbortSignal) =>
  new Promise<Error>(resolve => {
    if (signal.aborted) resolve(signal.reason)
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })

describe('DELETE session', () => {
  it('ends the session with 204, and later requests get 404 for every HTTP method', async () => {
    const client = await openSession(url)
    const ended = await client.end()
    expect([ended.status, ended.text]).to.deep.equal([204, ''])
    expect((await client.end()).status).to.equal(404)
    expect((await client.request('ping')).status).to.equal(404)
    expect((await client.get()).status).to.equal(404)
    expect((await client.get({ 'Last-Event-ID': 'abcdefghijk.0' })).status).to.equal(404)
    expect((await client.send({ method: 'notifications/initialized' })).status).to.equal(404)
  })

  it('answers 400 without a session id, and 404 for an unknown one', async () => {
    const without = await sendRequest(url, 'DELETE')
    expect([without.status, without.message.error.code]).to.deep.equal([400, -32000])
    expect((await sendRequest(url, 'DELETE', { 'Mcp-Session-Id': 'unknown' })).status).to.equal(404)
  })

  it('does not require an Accept header', async () => {
    const client = await openSession(url)
    expect((await client.end({ Accept: undefined })).status).to.equal(204)
  })

  it('answers 400 to an unsupported version header, and keeps the session', async () => {
    const client = await openSession(url)
    const { status, message } = await client.end({ 'MCP-Protocol-Version': 'v999' })
    expect([status, message.error.code]).to.deep.equal([400, -32022])
    expect((await client.request('ping')).status).to.equal(200)
  })

  it('aborts running calls, whose streams end without a response', async () => {
    const client = await openSession(url)
    const streamed = await client.call('puppet', { name: 'cancelled' })
    const { ctx } = await call('cancelled')
    const reason = aborted(ctx.signal)
    await client.end()
    expect((await reason).message).to.equal('the client ended the session')
    expect(await readRest(streamed)).to.deep.equal([])
    expect(await streamed.whole).to.equal(true)
  })

  it('ends an open call stream after its sent notifications', async () => {
    const client = await openSession(url)
    const streamed = client.call('puppet', { name: 'begun' })
    const { ctx } = await call('begun')
    ctx.progress(1)
    await nextMessage(await streamed)
    await client.end()
    ctx.progress(2)
    expect(await readRest(await streamed)).to.deep.equal([])
    expect(await (await streamed).whole).to.equal(true)
  })

  it('ends all GET streams, including replaced ones', async () => {
    const client = await openSession(url)
    const streams = [await client.get(), await client.get()]
    await client.end()
    for (const stream of streams) {
      expect(await readRest(stream)).to.deep.equal([])
      expect(await stream.whole).to.equal(true)
    }
  })

  it('ends pending requests to the client', async () => {
    const client = await openSession(url, { capabilities: { roots: {} } })
    const streamed = await client.call('asking')
    expect((await nextMessage(streamed)).method).to.equal('roots/list')
    await client.end()
    expect(await readRest(streamed)).to.deep.equal([])
  })

  it('ends only this session', async () => {
    const [one, other] = [await openSession(url), await openSession(url)]
    const stream = await other.get()
    await one.end()
    expect((await other.request('ping')).status).to.equal(200)
    stream.drop()
  })
})

describe('HTTP methods of a session endpoint', () => {
  it('GET and DELETE with a 2026-07-28 header get 405 with Allow: POST, with any session id', async () => {
    const { id } = await openSession(url)
    for (const method of ['GET', 'DELETE']) {
      for (const session of [id, 'unknown', undefined]) {
        const headers = { 'MCP-Protocol-Version': MODERN_REVISION, 'Mcp-Session-Id': session }
        const { status, headers: answered } = await sendRequest(url, method, {
          Accept: 'text/event-stream',
          ...headers,
        })
        expect([status, answered['allow']], `${method} ${session}`).to.deep.equal([405, 'POST'])
      }
    }
    expect((await sendRequest(url, 'DELETE', { 'Mcp-Session-Id': id })).status).to.equal(204)
  })

  it('other methods, including HEAD, get 405 with the allowed methods', async () => {
    const { id } = await openSession(url)
    for (const method of ['HEAD', 'PUT', 'PATCH', 'OPTIONS']) {
      const { status, headers } = await sendRequest(url, method, { 'Mcp-Session-Id': id, Accept: 'text/event-stream' })
      expect([status, headers['allow']], method).to.deep.equal([405, 'GET, POST, DELETE'])
    }
  })

  it('on a stateless route, GET and DELETE get 405 with Allow: POST', async () => {
    const { id } = await openSession(url)
    for (const method of ['GET', 'DELETE']) {
      const headers = { 'Mcp-Session-Id': id, Accept: 'text/event-stream' }
      const { status, headers: answered } = await sendRequest(`${url}/stateless`, method, headers)
      expect([status, answered['allow']], method).to.deep.equal([405, 'POST'])
    }
  })
})
