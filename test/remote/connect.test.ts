// Tests connections to servers of every era over HTTP.
import { expect } from 'chai'
import {
  type Connection,
  type ConnectOptions,
  connect,
  RemoteError,
  type ServerNotification,
  type Target,
} from '../../remote/index.ts'
import { eventually } from '../support/eventually.ts'
import { serveLegacy, serveModern, serveModernSdk, serveScript, stopServers } from './support/servers.ts'

const client = { name: 'test', version: '1' }
const opened: Connection[] = []

async function open(target: Target, options: Partial<ConnectOptions> = {}): Promise<Connection> {
  const connection = await connect(target, { client, ...options })
  opened.push(connection)
  return connection
}

async function errorOf(work: Promise<unknown>): Promise<RemoteError> {
  try {
    await work
  } catch (error) {
    if (error instanceof RemoteError) return error
    throw error
  }
  throw new Error('it did not fail')
}

const textOf = (result: Record<string, unknown>): unknown => (result['content'] as { text?: string }[])[0]?.text

describe('A connection over HTTP', () => {
  after(async () => {
    await Promise.all(opened.map(connection => connection.close()))
    await stopServers()
  })

  it('detects a server of 2026-07-28', async () => {
    const { url } = await serveModernSdk()
    const connection = await open({ url })
    expect(connection).to.include({ era: 'modern', revision: '2026-07-28', instructions: 'Modern.' })
    expect(connection.server).to.include({ name: 'modern', version: '2.0.0' })
    expect(connection.capabilities.tools).to.deep.equal({ listChanged: true })
    expect(textOf(await connection.request('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }))).to.equal('3')
  })

  it('falls back to initialize, keeps the session and ends it', async () => {
    const server = await serveLegacy()
    const connection = await open({ url: server.url })
    expect(connection).to.include({ era: 'legacy', revision: '2025-11-25', instructions: 'Use add.' })
    expect(connection.sessionId).to.equal([...server.sessions.keys()][0])
    expect(textOf(await connection.request('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }))).to.equal('3')
    const id = connection.sessionId
    await connection.close()
    expect(server.ended).to.deep.equal([id])
  })

  it('falls back to HTTP+SSE', async () => {
    const server = await serveLegacy()
    const connection = await open({ url: server.sseUrl })
    expect(connection.era).to.equal('legacy')
    expect(textOf(await connection.request('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }))).to.equal('3')
  })

  for (const era of ['legacy', 'modern'] as const) {
    it(`receives progress of a ${era} server`, async () => {
      const { url } = era === 'legacy' ? await serveLegacy() : await serveModernSdk()
      const connection = await open({ url })
      const seen: number[] = []
      const onProgress = ({ progress }: { progress: number }) => void seen.push(progress)
      const result = await connection.request('tools/call', { name: 'steps' }, { onProgress })
      expect(textOf(result)).to.equal('done')
      expect(seen).to.deep.equal([1, 2])
    })

    it(`cancels a call of a ${era} server`, async () => {
      const { url, calls } = era === 'legacy' ? await serveLegacy() : await serveModernSdk()
      const connection = await open({ url })
      const stop = new AbortController()
      const failed = errorOf(connection.request('tools/call', { name: 'wait' }, { signal: stop.signal }))
      await eventually('the call', () => calls.includes('wait'))
      stop.abort()
      expect(await failed).to.include({ reason: 'cancelled', executed: 'maybe' })
      await eventually('its cancellation', () => calls.includes('cancelled'))
    })
  }

  it('returns input_required results as they are', async () => {
    const { url } = await serveModernSdk()
    const connection = await open({ url }, { capabilities: { elicitation: { form: {} } } })
    const first = await connection.request('tools/call', { name: 'ask' })
    expect(first['resultType']).to.equal('input_required')
    expect(first['inputRequests']).to.have.nested.property('name.method', 'elicitation/create')
    const inputResponses = { name: { action: 'accept', content: { name: 'Ada' } } }
    const params = { name: 'ask', inputResponses, requestState: first['requestState'] }
    expect(textOf(await connection.request('tools/call', params))).to.contain('Ada')
  })

  it('answers requests of the server, with the owner of the call that they belong to', async () => {
    const { url } = await serveLegacy()
    const owners: unknown[] = []
    const connection = await open(
      { url },
      {
        capabilities: { elicitation: { form: {} }, roots: {} },
        onRequest: async ({ method, owner }) => {
          owners.push(`${method} ${owner}`)
          return method === 'roots/list' ? { roots: [] } : { action: 'accept', content: { name: `${owner}` } }
        },
      },
    )
    const call = (name: string, owner: string) => connection.request('tools/call', { name }, { owner })
    const results = await Promise.all([call('ask', 'a'), call('ask', 'b')])
    expect(results.map(textOf)).to.deep.equal(['accept a', 'accept b'])
    expect(textOf(await call('roots', 'c'))).to.equal('[]')
    expect(owners.sort()).to.deep.equal(['elicitation/create a', 'elicitation/create b', 'roots/list c'])
  })

  it('refuses requests of the server without the capability', async () => {
    const { url } = await serveLegacy()
    const connection = await open({ url }, { onRequest: async () => ({ roots: [] }) })
    const result = await connection.request('tools/call', { name: 'roots' })
    expect(result).to.include({ isError: true })
  })

  it('passes on notifications, with their owner', async () => {
    const { url } = await serveLegacy()
    const seen: ServerNotification[] = []
    const connection = await open({ url }, { onNotification: notification => void seen.push(notification) })
    await connection.request('logging/setLevel', { level: 'debug' })
    await connection.request('tools/call', { name: 'steps' }, { owner: 'me' })
    await eventually('the log message', () => seen.length > 0)
    expect(seen.map(({ method, owner }) => [method, owner])).to.deep.equal([['notifications/message', 'me']])
  })

  it('receives list changes of both eras', async () => {
    const legacy = await serveLegacy()
    const modern = await serveModernSdk()
    for (const { url } of [legacy, modern]) {
      const seen: string[] = []
      const connection = await open({ url }, { onNotification: ({ method }) => void seen.push(method) })
      const listening = connection.listen({ toolsListChanged: true })
      // A notification can be sent before the stream is open.
      await eventually('the change', async () => {
        legacy.made.at(-1)?.sendToolListChanged()
        modern.handler.notify.toolsChanged()
        return seen.includes('notifications/tools/list_changed')
      })
      listening.end()
      await listening.ended
    }
  })

  it('replaces a lost session and repeats the refused call', async () => {
    const server = await serveLegacy()
    let reopened = 0
    const connection = await open({ url: server.url }, { onReopened: () => void reopened++ })
    const before = connection.sessionId
    server.sessions.clear()
    expect(textOf(await connection.request('tools/call', { name: 'add', arguments: { a: 2, b: 2 } }))).to.equal('4')
    expect(reopened).to.equal(1)
    expect(connection.sessionId).not.to.equal(before)
    expect(server.calls).to.deep.equal(['add'])
  })

  it('reports an unreachable server, a refused login and another protocol', async () => {
    const refused = await errorOf(open({ url: 'http://127.0.0.1:1/mcp' }))
    expect(refused).to.include({ reason: 'unreachable', executed: 'no' })
    const login = await serveScript(({ json }) => json({}, 401, { 'www-authenticate': 'Bearer realm="x"' }))
    expect(await errorOf(open({ url: login }))).to.include({ status: 401, challenge: 'Bearer realm="x"' })
    for (const [status, what] of [
      [200, 'text/html'],
      [404, 'HTTP 404'],
      [405, 'HTTP 405'],
    ] as const) {
      const page = await serveScript(({ response }) =>
        response.writeHead(status, { 'content-type': 'text/html' }).end('hi'),
      )
      const wrong = await errorOf(open({ url: page }))
      expect(wrong).to.include({ reason: 'refused', status })
      expect(String(wrong)).to.contain(`/mcp is not an MCP endpoint (${what}); check the path of the URL`)
    }
  })

  it('ends a request without a sign of life, and one that takes too long', async () => {
    const url = await serveModern(({ response, params }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const { progressToken } = params['_meta'] as { progressToken?: number }
      if (progressToken === undefined) return void response.write(': nothing\n\n')
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }
      const timer = setInterval(() => response.write(`data: ${JSON.stringify(progress)}\n\n`), 5)
      response.once('close', () => clearInterval(timer))
    })
    const connection = await open({ url })
    const silent = await errorOf(connection.request('tools/call', { name: 'x' }, { timeout: 30 }))
    expect(silent).to.include({ reason: 'timeout', executed: 'maybe' })
    const onProgress = () => undefined
    const endless = await errorOf(
      connection.request('tools/call', { name: 'x' }, { timeout: 10_000, maxTime: 60, onProgress }),
    )
    expect(endless.message).to.contain('the maximum time')
  })

  it('never repeats a call whose connection broke', async () => {
    let calls = 0
    const url = await serveModern(({ response }) => {
      calls++
      response.destroy()
    })
    const connection = await open({ url })
    expect(await errorOf(connection.request('tools/call', { name: 'x' }))).to.include({
      reason: 'lost',
      executed: 'maybe',
    })
    expect(calls).to.equal(1)
  })

  it('refuses responses that are too large, compressed, or for another request', async () => {
    const url = await serveModern(({ id, params, json, response }) => {
      const result = { resultType: 'complete', content: [] }
      if (params['name'] === 'large') return json({ jsonrpc: '2.0', id, result: { ...result, x: 'x'.repeat(5_000) } })
      if (params['name'] === 'gzip') return json({ jsonrpc: '2.0', id, result }, 200, { 'content-encoding': 'gzip' })
      if (params['name'] === 'other') return json({ jsonrpc: '2.0', id: Number(id) + 1, result })
      if (params['name'] === 'text') return json({ jsonrpc: '2.0', id: String(id), result })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(`data: ${'x'.repeat(5_000)}`)
    })
    const connection = await open({ url })
    const call = (name: string) => errorOf(connection.request('tools/call', { name }, { maxResult: 1_000 }))
    expect(await call('large')).to.include({ reason: 'too-large' })
    expect(await call('gzip')).to.include({ reason: 'invalid' })
    expect(await call('other')).to.include({ reason: 'invalid' })
    expect(await call('text')).to.include({ reason: 'invalid' })
    expect(await call('stream')).to.include({ reason: 'too-large' })
  })

  it('sends headers of the target and of a call, and keeps cookies of personal calls apart', async () => {
    const seen: unknown[] = []
    const url = await serveModern(({ id, request: { headers }, json }) => {
      seen.push([headers['x-api'], headers.authorization, headers.cookie])
      const personal = headers.authorization === 'Bearer me'
      json({ jsonrpc: '2.0', id, result: {} }, 200, { 'set-cookie': personal ? 'me=1' : 'node=1' })
    })
    const connection = await open({ url, headers: { 'X-Api': 'k', Authorization: 'Bearer host' } })
    await connection.request('ping')
    await connection.request('ping', {}, { headers: { Authorization: 'Bearer me' } })
    await connection.request('ping')
    expect(seen).to.deep.equal([
      ['k', 'Bearer host', undefined],
      ['k', 'Bearer me', undefined],
      ['k', 'Bearer host', 'node=1'],
    ])
  })

  it('keeps cookies of personal calls of a legacy server apart', async () => {
    const seen: unknown[] = []
    const url = await serveScript(({ id, method, request: { headers }, response, json }) => {
      if (id === undefined) return void response.writeHead(202).end()
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'a', version: '1' } }
      if (method === 'initialize') return json({ jsonrpc: '2.0', id, result })
      seen.push(headers.cookie)
      json({ jsonrpc: '2.0', id, result: {} }, 200, headers['x-key'] ? { 'set-cookie': `me=${headers['x-key']}` } : {})
    })
    const connection = await open({ url }, { revision: '2025-06-18' })
    for (const key of ['ada', 'ben']) await connection.request('ping', {}, { headers: { 'X-Key': key } })
    await connection.request('ping')
    expect(seen).to.deep.equal([undefined, undefined, undefined])
  })

  it('gives the exact text of a response', async () => {
    const url = await serveModern(({ id, response }) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"jsonrpc":"2.0","id":${id},"result":{"n":12345678901234567890}}`),
    )
    const connection = await open({ url })
    const texts: string[] = []
    await connection.request('x', {}, { onText: text => void texts.push(text) })
    expect(texts.join()).to.contain('12345678901234567890')
  })

  it('rejects pending requests when it is closed', async () => {
    const { url, calls } = await serveLegacy()
    const connection = await open({ url })
    const failed = errorOf(connection.request('tools/call', { name: 'wait' }))
    await eventually('the call', () => calls.includes('wait'))
    await connection.close()
    expect(await failed).to.include({ reason: 'closed', executed: 'maybe' })
    expect(await errorOf(connection.request('ping'))).to.include({ reason: 'closed', executed: 'no' })
  })
})
