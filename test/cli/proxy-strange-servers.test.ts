// Tests `mcp-host proxy` with servers that lack features or set their own retry delays: the requests of the proxy.
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { INITIALIZE, initialize } from '../plugins/transport-stdio/stdio-client.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { eventually } from '../support/eventually.ts'
import { itThorough } from '../support/thorough.ts'
import { endRelays, openProxy, QUICK } from './proxy-client.ts'
import { closeServers, json, serve } from './raw-mcp-server.ts'

interface Asked {
  readonly verb: string
  readonly method: string
  readonly session: string | undefined
  readonly lastEventId: string | undefined
  /** Of `performance`. */
  readonly at: number
}
/** True where it was answered. */
type Answer = (asked: Asked, response: ServerResponse, id: unknown) => boolean

/** A server with sessions, s1 and on, that answers everything it is not told otherwise, and has no standing stream. */
async function serveSessions(answer: Answer) {
  const asked: Asked[] = []
  const url = await serve(({ method: verb = '', headers }, response, body) => {
    const { id, method = '' } = body === '' ? {} : (JSON.parse(body) as { id?: unknown; method?: string })
    const session = headers['mcp-session-id'] as string | undefined
    const lastEventId = headers['last-event-id'] as string | undefined
    const one = { verb, method, session, lastEventId, at: performance.now() }
    asked.push(one)
    if (answer(one, response, id)) return
    if (verb === 'GET') return response.writeHead(405).end()
    if (id === undefined) return response.writeHead(202).end()
    const opened = { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } }
    const count = asked.filter(({ method: name }) => name === 'initialize').length
    const more: Record<string, string> = method === 'initialize' ? { 'mcp-session-id': `s${count}` } : {}
    json(response, { jsonrpc: '2.0', id, result: method === 'initialize' ? opened : {} }, 200, more)
  })
  const countOf = (name: string) => asked.filter(({ verb, method }) => verb === name || method === name).length
  const until = (name: string, count: number) =>
    eventually(
      `${count} of ${name}`,
      () => countOf(name),
      found => found >= count,
    )
  return { url, asked, countOf, until }
}
/** Each pause is at least three quarters of its nominal length, which doubles. A timer can be a millisecond early. */
function expectBackOff(times: readonly number[], first: number) {
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  for (const [index, found] of pauses.entries())
    expect(found, `pause ${index + 1} of ${pauses}`).to.be.at.least(0.75 * first * 2 ** index - 2)
}

/** A stream that ends at once. */
const stream = (response: ServerResponse, text: string) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text)
  return true
}
const notFound = (response: ServerResponse) => {
  response.writeHead(404, { 'content-type': 'text/html' }).end('Cannot GET /mcp')
  return true
}

describe('mcp-host proxy with unusual servers', () => {
  after(async () => {
    await endRelays()
    closeServers()
    await removeFolders()
  })

  /** At the same time: most of them wait for delays. */
  const it = concurrentIt()

  it('prints the login command for a missing scope to the client, with npx under npm', async () => {
    const challenge = 'Bearer error="insufficient_scope", scope="notes:write"'
    const { url } = await serveSessions(({ method }, response) => {
      if (method === 'tools/list') response.writeHead(403, { 'www-authenticate': challenge }).end()
      return method === 'tools/list'
    })
    const header = ['Authorization: Bearer given']
    const client = await openProxy(url, { header }, QUICK, { npm_execpath: 'npm-cli.js' })
    await initialize(client)
    const { error } = await client.request(2, 'tools/list')
    expect(error?.message).to.include(`npx mcp-host login ${url} --add-scope notes:write`)
  })

  for (const status of [400, 404, 405]) {
    it(`accepts ${status} for the GET stream of a session as a server without that stream`, async () => {
      const server = await serveSessions(({ verb }, response) => {
        if (verb !== 'GET') return false
        json(response, { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'No session' } }, status)
        return true
      })
      const client = await openProxy(server.url, {}, { ...QUICK, maxDelay: 50 })
      await initialize(client)
      await server.until('GET', 1)
      // Longer than its pauses are.
      await pause(4 * 50)
      expect((await client.request(1, 'tools/list')).result).to.deep.equal({})
      expect([server.countOf('initialize'), server.countOf('GET')]).to.deep.equal([1, 1])
    })
  }

  it('checks whether the session is lost if the GET stream cannot be opened again, and opens a new session', async () => {
    let gone = false
    const server = await serveSessions(({ verb, method, session }, response) => {
      if (verb === 'GET' && session === 's1' && !gone) {
        gone = true
        return stream(response, 'id: 1\n\n')
      }
      return gone && session === 's1' && (verb === 'GET' || method === 'ping') ? notFound(response) : false
    })
    const client = await openProxy(server.url)
    await initialize(client)
    await client.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(server.countOf('initialize')).to.equal(2)
    expect((await client.request(1, 'tools/list')).result).to.deep.equal({})
    expect(server.asked.at(-1)?.session).to.equal('s2')
  })

  it('opens sessions less often if the server loses each of them', async () => {
    const lost = new Set<string | undefined>()
    const server = await serveSessions(({ verb, method, session }, response) => {
      if (verb === 'GET' && !lost.has(session)) {
        lost.add(session)
        return stream(response, ': hello\n\n')
      }
      return lost.has(session) && (verb === 'GET' || method === 'ping') ? notFound(response) : false
    })
    const client = await openProxy(server.url, {}, { ...QUICK, maxDelay: 60_000 })
    await initialize(client)
    await server.until('initialize', 5)
    expectBackOff(
      server.asked.filter(({ method }) => method === 'initialize').map(({ at }) => at),
      20,
    )
  })

  it('keeps the session if the stream of a call cannot be resumed', async () => {
    const server = await serveSessions(({ verb, method }, response) => {
      if (method === 'tools/call') return stream(response, 'id: 1\n\n')
      return verb === 'GET' ? notFound(response) : false
    })
    const client = await openProxy(server.url)
    await initialize(client)
    const { error } = await client.request(1, 'tools/call', { name: 'x' })
    expect(error?.data).to.include({ reason: 'connection lost' })
    expect(server.countOf('initialize')).to.equal(1)
  })

  it('keeps its own minimum delay if `retry` of a server is shorter, for all streams of a call', async () => {
    const server = await serveSessions(({ verb, method, lastEventId }, response) =>
      method === 'tools/call' || (verb === 'GET' && lastEventId !== undefined)
        ? stream(response, 'id: 1\nretry: 0\n\n')
        : false,
    )
    const client = await openProxy(server.url, {}, { ...QUICK, initialDelay: 20, maxDelay: 60_000 })
    await initialize(client)
    client.say({ id: 1, method: 'tools/call', params: { name: 'x' } })
    const attempts = () => server.asked.filter(({ method, lastEventId }) => method === 'tools/call' || lastEventId)
    await eventually('five attempts', () => attempts().length >= 5)
    expectBackOff(
      attempts().map(({ at }) => at),
      20,
    )
  })

  it('resumes a polled call at a rate that keeps messages fast', async () => {
    let step = 0
    const server = await serveSessions(({ verb, method, lastEventId }, response, id) => {
      if (method !== 'tools/call' && !(verb === 'GET' && lastEventId !== undefined)) return false
      const progress = {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 1, progress: ++step },
      }
      const message = step < 12 ? progress : { jsonrpc: '2.0', id: 1, result: { done: true } }
      if (id === undefined) expect(lastEventId).to.equal(String(step - 1))
      return stream(response, `id: ${step}\nretry: 1\ndata: ${JSON.stringify(message)}\n\n`)
    })
    const client = await openProxy(server.url, {}, { ...QUICK, maxDelay: 60_000 })
    await initialize(client)
    expect((await client.request(1, 'tools/call', { name: 'x' })).result).to.deep.equal({ done: true })
  })

  it('sends an event id byte by byte, and does not resume after an id that no header can contain', async () => {
    let [id, resumed] = ['ü 중', '']
    const server = await serveSessions(({ verb, method, lastEventId }, response) => {
      if (method === 'tools/call') return stream(response, `id: ${id}\n\n`)
      if (verb !== 'GET' || lastEventId === undefined) return false
      resumed = Buffer.from(lastEventId, 'latin1').toString('utf8')
      return stream(response, `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} })}\n\n`)
    })
    const client = await openProxy(server.url)
    await initialize(client)
    expect((await client.request(1, 'tools/call', { name: 'x' })).result).to.deep.equal({})
    expect(resumed).to.equal(id)
    id = 'bell\u0007'
    expect((await client.request(2, 'tools/call', { name: 'x' })).error?.data).to.include({ reason: 'connection lost' })
  })

  it('opens the HTTP+SSE stream less often if it ends after each initialize', async () => {
    const opened: number[] = []
    let current: ServerResponse | undefined
    const url = await serve(({ method: verb }, response, body) => {
      if (verb === 'GET') {
        opened.push(performance.now())
        current = response.writeHead(200, { 'content-type': 'text/event-stream' })
        return current.write('event: endpoint\ndata: /post\n\n')
      }
      response.writeHead(202).end()
      const { id, method } = JSON.parse(body) as { id: unknown; method: string }
      if (method !== 'initialize') return
      const result = { protocolVersion: '2024-11-05', capabilities: {} }
      current?.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
    const client = await openProxy(url, { transport: 'sse' }, { ...QUICK, initialDelay: 20, maxDelay: 60_000 })
    client.say({ id: 0, method: 'initialize', params: {} })
    await eventually('five streams', () => opened.length >= 5)
    expectBackOff(opened, 20)
  })
})

describe('mcp-host proxy with invalid lines of a client', () => {
  after(async () => {
    await endRelays()
    closeServers()
    await removeFolders()
  })

  it('sends no call of an ignored tool, in any notation', async () => {
    const reached: string[] = []
    const url = await serve((_request, response, body) => {
      reached.push(body)
      json(response, { jsonrpc: '2.0', id: JSON.parse(body).id ?? null, result: {} })
    })
    const client = await openProxy(url, { 'ignore-tool': ['rm*'] })
    const call = (more: object) => ({ jsonrpc: '2.0', method: 'tools/call', params: { name: 'rm_all' }, ...more })
    const named = (name: unknown) => call({ id: 3, params: { name } })
    const lines = [
      ...[{ id: 2 }, { id: null }, {}, { id: true }, { id: 2, params: ['rm_all'] }].map(call),
      ...[[call({ id: null })], [{ jsonrpc: '2.0', id: 4, method: 'ping' }, call({})], named(['rm_all'])],
      call({ id: 5, method: ['tools/call'] }),
    ]
    for (const line of lines) {
      client.write(`${JSON.stringify(line)}\n`)
      expect((await client.until(() => true)).error?.code, JSON.stringify(line)).to.be.oneOf([-32_600, -32_602])
    }
    expect(reached).to.deep.equal([])
    client.write('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm_all","name":"ok"}}\n')
    await client.until(({ id }) => id === 9)
    expect(reached).to.deep.equal(['{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ok"}}'])
  })

  it('rejects initialize with a warning if server and client have no protocol version in common', async () => {
    const url = await serve((_request, response, body) => {
      const error = { code: -32022, message: 'Unsupported protocol version', data: { supported: ['2026-07-28'] } }
      json(response, { jsonrpc: '2.0', id: JSON.parse(body).id, error }, 400)
    })
    const client = await openProxy(url)
    expect((await client.request(0, 'initialize', INITIALIZE)).error?.code).to.equal(-32022)
    expect(client.context.text.stderr).to.match(/^warning: \S+.*protocol version/)
  })

  itThorough('enforces its limits within one line, and for messages without a response', async () => {
    const held: string[] = []
    const url = await serve((_request, _response, body) => void held.push(body))
    const client = await openProxy(url)
    const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    client.write(`${JSON.stringify([ping(1), ping(2), ping(1)])}\n`)
    for (const id of [1, 2])
      expect((await client.until(message => message.id === id)).error?.message).to.include('already running')
    client.write(`${JSON.stringify(Array.from({ length: 1_001 }, (_, id) => ping(id)))}\n`)
    const refused = await client.until(({ id }) => id === 1_000)
    expect(refused.error?.message).to.equal('at most 1000 requests wait at once')
    expect(client.seen.splice(0)).to.have.length(1_000)
    // In parts, because the server accepts some hundred connections at once.
    for (let sent = 200; sent <= 1_000; sent += 200) {
      for (let index = 0; index < 200; index++) client.say({ method: 'notifications/x' })
      await eventually(`${sent} pending notifications`, () => held.length === sent)
    }
    client.say({ method: 'notifications/x' })
    const { id, error } = await client.until(() => true)
    expect([id, error?.message]).to.deep.equal([undefined, 'at most 1000 notifications are pending at once'])
    expect([held.length, client.seen]).to.deep.equal([1_000, []])
  })
})
