import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { HANDSHAKE_REVISIONS, META, MODERN_REVISION } from '../../../core/transport.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { createMeta, modern } from '../../support/rpc.ts'
import { initialize, initializeMessage, openSession, postMessage } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const echo = defineTool({ name: 'echo', handler: () => 'hi' })
const base = { toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' } } }
const [LATEST] = HANDSHAKE_REVISIONS

let url: string
before(async () => {
  ;({ url } = await startHost({ ...base, server: { name: 'test-host', version: '1.2.3', instructions: 'Be kind.' } }))
})
after(stopHosts)

describe('initialize', () => {
  for (const revision of HANDSHAKE_REVISIONS) {
    it(`negotiates ${revision} and returns a session id of visible ASCII`, async () => {
      const { status, headers, message } = await initialize(url, { revision })
      expect(status).to.equal(200)
      expect(headers['content-type']).to.equal('application/json')
      expect(headers['mcp-session-id']).to.match(/^[\x21-\x7e]+$/)
      expect(message).to.deep.equal({
        jsonrpc: '2.0',
        id: 'initialize',
        result: {
          protocolVersion: revision,
          capabilities: { logging: {}, tools: { listChanged: true } },
          serverInfo: { name: 'test-host', version: '1.2.3' },
          instructions: 'Be kind.',
        },
      })
    })
  }

  it('answers the latest handshake version to an unsupported version or one without handshake', async () => {
    for (const revision of [MODERN_REVISION, '2027-01-01', '1999-12-31', 'draft', '']) {
      const { status, headers, message } = await initialize(url, { revision })
      expect([status, message.result.protocolVersion], revision).to.deep.equal([200, LATEST])
      expect(headers['mcp-session-id']).to.be.a('string')
    }
  })

  it('is refused only if the version header names 2026-07-28', async () => {
    for (const version of [...HANDSHAKE_REVISIONS, 'v999', '2027-01-01']) {
      const { status, message } = await initialize(url, { headers: { 'MCP-Protocol-Version': version } })
      expect([status, message.result?.protocolVersion], version).to.deep.equal([200, LATEST])
    }
    const refused = await initialize(url, { headers: { 'MCP-Protocol-Version': MODERN_REVISION } })
    expect([refused.status, refused.headers['mcp-session-id']]).to.deep.equal([400, undefined])
    expect([refused.message.error.code, refused.message.id]).to.deep.equal([-32020, 'initialize'])
  })

  it('with 2026-07-28 in _meta is handled as that version, which has no such method', async () => {
    const { status, message } = await modern(url, 'initialize', { ...initializeMessage().params, _meta: createMeta() })
    expect([status, message.error.code]).to.deep.equal([404, -32601])
  })

  it('ignores Mcp-Method, Mcp-Name and other _meta keys', async () => {
    const { id, method, params } = initializeMessage()
    const _meta = { [META.clientInfo]: { name: 'a', version: '1' }, [META.clientCapabilities]: {}, more: 1 }
    const headers = { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'x' }
    const { status, message } = await postMessage(url, { id, method, params: { ...params, _meta } }, headers)
    expect([status, message.result.protocolVersion]).to.deep.equal([200, LATEST])
  })

  it('repeated in a session gets 400 -32600 and keeps the session', async () => {
    const client = await openSession(url, { revision: '2025-06-18' })
    const { status, message } = await client.send(initializeMessage())
    expect([status, message.error.code, message.id]).to.deep.equal([400, -32600, 'initialize'])
    expect((await client.request('ping')).message.result).to.deep.equal({})
  })

  it('with an unknown or empty session id opens a session with another id', async () => {
    const ended = await openSession(url)
    await ended.end()
    for (const id of ['unknown', '', ended.id]) {
      const { status, headers, message } = await initialize(url, { headers: { 'Mcp-Session-Id': id } })
      expect([status, message.result?.protocolVersion], id).to.deep.equal([200, LATEST])
      expect(headers['mcp-session-id']).to.be.a('string').and.not.equal(id)
    }
  })

  it('can be repeated without a session id after 404', async () => {
    const client = await openSession(url)
    await client.end()
    expect((await client.request('ping')).status).to.equal(404)
    const again = await openSession(url)
    expect(again.id).not.to.equal(client.id)
    expect((await again.request('tools/list')).message.result.tools).to.have.length(1)
  })

  it('without protocolVersion, clientInfo or capabilities is refused and opens no session', async () => {
    const host = await startHost({ ...base, sessions: { maxPerOwner: 1 } })
    const { params } = initializeMessage()
    for (const broken of [{ protocolVersion: 5 }, { clientInfo: undefined }, { capabilities: [] }]) {
      const answer = await postMessage(host.url, { id: 1, method: 'initialize', params: { ...params, ...broken } })
      expect([answer.message.error.code, answer.message.id], answer.text).to.deep.equal([-32602, 1])
      expect(answer.headers['mcp-session-id']).to.equal(undefined)
    }
    expect((await initialize(host.url)).status, 'no session counts').to.equal(200)
    expect((await initialize(host.url)).status, 'one session counts').to.equal(429)
  })

  it('sent as a notification opens no session', async () => {
    const { method, params } = initializeMessage()
    const answer = await postMessage(url, { method, params })
    expect([answer.status, answer.headers['mcp-session-id']]).to.deep.equal([400, undefined])
  })

  it('opens no session on a stateless route', async () => {
    const { url } = await startHost({ ...base, stateless: true })
    const { status, headers, message } = await initialize(url)
    expect([status, headers['mcp-session-id']]).to.deep.equal([200, undefined])
    expect(message.result.capabilities).to.deep.equal({ tools: {} })
    const ignored = await postMessage(url, { id: 1, method: 'ping' }, { 'Mcp-Session-Id': 'whatever' })
    expect([ignored.status, ignored.message.result]).to.deep.equal([200, {}])
  })
})

describe('Client after initialize', () => {
  it('is served before notifications/initialized, which gets 202 without a body', async () => {
    const { headers } = await initialize(url)
    const named = { 'Mcp-Session-Id': String(headers['mcp-session-id']) }
    expect((await postMessage(url, { id: 1, method: 'tools/list' }, named)).message.result.tools).to.have.length(1)
    const told = await postMessage(url, { method: 'notifications/initialized' }, named)
    expect([told.status, told.text, told.headers['content-type']]).to.deep.equal([202, '', undefined])
  })

  it('gets 400 without the session header', async () => {
    for (const message of [
      { id: 'a', method: 'ping' },
      { method: 'notifications/initialized' },
      { id: 1, result: {} },
      { id: 1, error: { code: 1, message: 'no' } },
    ]) {
      const { status, message: answer } = await postMessage(url, message)
      expect([status, answer.error.code], JSON.stringify(message)).to.deep.equal([400, -32000])
      expect(answer.id).to.equal('method' in message && 'id' in message ? message.id : undefined)
    }
  })

  it('gets 400 -32022 with supported versions for an unsupported version header', async () => {
    const client = await openSession(url)
    for (const requested of ['v999', '2027-01-01', '2025-11-26']) {
      const { status, message } = await client.request('ping', {}, { headers: { 'MCP-Protocol-Version': requested } })
      expect([status, message.error.code]).to.deep.equal([400, -32022])
      expect(message.error.data.requested).to.equal(requested)
      expect(message.error.data.supported).to.include.members([...HANDSHAKE_REVISIONS])
    }
    expect((await client.request('ping')).status).to.equal(200)
  })

  it('without a version header uses the negotiated protocol version', async () => {
    const client = await openSession(url, { revision: '2025-11-25' })
    const headers = { 'MCP-Protocol-Version': undefined }
    expect((await client.request('ping', {}, { headers })).status).to.equal(200)
    const batch = [{ jsonrpc: '2.0', id: 1, method: 'ping' }]
    expect((await client.send(batch, headers)).message.error.code).to.equal(-32600)
  })

  it('with 2026-07-28 is served per request, and its session id is ignored', async () => {
    const client = await openSession(url)
    const headers = { 'Mcp-Session-Id': client.id }
    const { status, message } = await modern(url, 'tools/call', { name: 'echo' }, { headers })
    expect([status, message.result.content[0].text]).to.deep.equal([200, 'hi'])
    expect((await modern(url, 'ping', {}, { headers })).status).to.equal(404)
    expect((await client.request('ping')).status).to.equal(200)
  })

  it('receives results without resultType, ttlMs or cacheScope', async () => {
    const client = await openSession(url)
    for (const [method, params] of [['tools/list', {}] as const, ['tools/call', { name: 'echo' }] as const]) {
      const { result } = (await client.request(method, params)).message
      expect(result).not.to.have.any.keys('resultType', 'ttlMs', 'cacheScope')
    }
  })

  it('receives the session id in responses', async () => {
    const client = await openSession(url)
    expect((await client.request('ping')).headers['mcp-session-id']).to.equal(client.id)
  })

  it('is identified to handlers by the current request, not by initialize', async () => {
    const seen = defineTool({ name: 'seen', handler: (_args, { user }) => String(user?.claims['tier']) })
    const host = await startHost({
      toolsets: { all: [seen] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, who: identifyByHeader() },
    })
    const client = await openSession(host.url, { headers: { 'X-User': 'ada', 'X-Tier': 'gold' } })
    const tierNow = async (headers = {}) =>
      (await client.request('tools/call', { name: 'seen' }, { headers })).message.result.content[0].text
    expect(await tierNow()).to.equal('gold')
    expect(await tierNow({ 'X-Tier': 'iron' })).to.equal('iron')
  })
})
