// Tests sessions at upstream servers, and calls that wait for a response of their client.
import { request as httpRequest, type ServerResponse } from 'node:http'
import { expect } from 'chai'
import type { Config } from '../../../core/index.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { callTool, questionsIn } from '../../fixtures/asking-client.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import {
  type LegacyHttp,
  serve,
  serveLegacy,
  serveModernSdk,
  serveScript,
  stopServers,
} from '../../remote/support/servers.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { openSession, postMessage } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { createSharedStore, createStorePlugin } from '../../support/test-store.ts'
import { startNeighbours } from '../../support/worker-processes.ts'

let server: LegacyHttp
beforeEach(async () => {
  server = await serveLegacy()
})
afterEach(async () => {
  await stopHosts()
  await stopServers()
})

const started = (
  own: Partial<UpstreamOptions['servers'][string]> = {},
  more: Partial<UpstreamOptions> = {},
  clock?: ReturnType<typeof createManualClock>,
  http: NonNullable<Config['http']> = { publicUrl: 'http://gateway.example' },
) =>
  startHost(
    {
      toolsets: {},
      http,
      routes: { '/': { toolsets: 'old' } },
      plugins: {
        'transport-streamable': {},
        who: identifyByHeader(),
        upstream: { servers: { old: { url: server.url, prefix: '', ...own } }, ...more },
      },
    },
    undefined,
    clock ? { clock } : {},
  )

const elicitation = { message: 'Your name?', requestedSchema: { type: 'object', properties: {} } }
const add = { name: 'add', arguments: { a: 1, b: 2 } }
const accept = { action: 'accept', content: { name: 'Ada' } }

describe('Sessions at an upstream server', () => {
  it('do not pass a request of an ended call to another call', async () => {
    let isCancelled = false
    let ended: ServerResponse | undefined
    let finish: (() => void) | undefined
    const url = await serveScript(({ id, method, params, response, json }) => {
      const answer = (result: object) =>
        json({ jsonrpc: '2.0', id, result }, 200, method === 'initialize' ? { 'mcp-session-id': 'one' } : {})
      if (method === undefined) finish?.()
      if (method === 'notifications/cancelled') isCancelled = true
      // The stream of the call stays open until its cancellation has a response.
      else if (id === undefined || method === undefined) response.writeHead(202).end()
      else if (method === 'initialize')
        answer({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'late', version: '1' },
        })
      else if (method === 'tools/list')
        answer({ tools: ['ended', 'other'].map(name => ({ name, inputSchema: { type: 'object' } })) })
      else if (params['name'] === 'ended') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        ended = response
      } else {
        const question = { jsonrpc: '2.0', id: 'late', method: 'elicitation/create', params: elicitation }
        ended?.write(`event: message\ndata: ${JSON.stringify(question)}\n\n`)
        finish = () => answer({ content: [{ type: 'text', text: 'finished' }] })
      }
    })
    const gateway = await started({ url, prefix: '', revision: '2025-11-25' })
    const headers = { 'x-user': 'ada' }
    const leave = new AbortController()
    const left = modern(gateway.url, 'tools/call', { name: 'ended' }, { headers, init: { signal: leave.signal } })
    left.catch(() => undefined)
    await eventually('the first call arrives', () => ended)
    leave.abort()
    await eventually('its cancellation arrives', () => isCancelled)
    const { result } = (await callTool(gateway.url, 'other', { headers })).message
    expect(result.content?.[0].text).to.equal('finished')
  })

  it('keep the cookies of the server, which are not shared between users', async () => {
    const seen: Array<{ readonly session: unknown; readonly cookie: string | undefined }> = []
    let last = 0
    const url = await serveScript(({ id, method, request, response, json }) => {
      const isOpening = method === 'initialize'
      const session = isOpening ? `${++last}` : request.headers['mcp-session-id']
      if (method === 'tools/call') seen.push({ session, cookie: request.headers.cookie })
      if (id === undefined) return void response.writeHead(202).end()
      const result = isOpening
        ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'sticky', version: '1' } }
        : { tools: [{ name: 'add', inputSchema: { type: 'object' } }], content: [] }
      const headers = { 'mcp-session-id': `${session}`, 'set-cookie': `node=${session}` }
      return json({ jsonrpc: '2.0', id, result }, 200, isOpening ? headers : {})
    })
    const gateway = await started({ url, prefix: '', forwardHeaders: ['x-tenant'] })
    for (const user of ['ada', 'ben'])
      await modern(gateway.url, 'tools/call', add, { headers: { 'x-user': user, 'x-tenant': user } })
    expect(seen).to.deep.equal(['2', '3'].map(session => ({ session, cookie: `node=${session}` })))
  })

  for (const [sessions, cookie] of [
    ['auto', undefined],
    ['shared', 'user=1'],
  ] as const)
    it(`that are shared by \`${sessions}\` send ${cookie ? 'cookies' : 'no cookies'} to a server without session ids`, async () => {
      const seen: unknown[] = []
      const url = await serveScript(({ id, method, request, response, json }) => {
        if (method === 'tools/call') seen.push(request.headers.cookie)
        if (id === undefined) return void response.writeHead(202).end()
        const result =
          method === 'initialize'
            ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } }
            : { tools: [{ name: 'add', inputSchema: { type: 'object' } }], content: [] }
        return json({ jsonrpc: '2.0', id, result }, 200, { 'set-cookie': 'user=1' })
      })
      const gateway = await started({ url, revision: '2025-11-25', sessions })
      for (const user of ['ada', 'ben']) await modern(gateway.url, 'tools/call', add, { headers: { 'x-user': user } })
      expect(seen).to.deep.equal([cookie, cookie])
    })

  it('are not left open when the client session ends before they are opened', async () => {
    let open: () => void = () => undefined
    let gate: Promise<void> | undefined
    let isWaiting = false
    const slow = async () => {
      isWaiting = gate !== undefined
      await gate
      return 'key'
    }
    const { url } = await started({ headers: { 'X-Key': slow } }, { processes: { idle: 'off' } })
    const client = await openSession(url)
    gate = new Promise(resolve => {
      open = resolve
    })
    const left = client.request('tools/call', add).catch(() => undefined)
    await eventually('the call reads its header', () => isWaiting)
    await client.end()
    gate = undefined
    open()
    await left
    const other = await openSession(url)
    await other.request('tools/call', add)
    await other.end()
    await eventually('only the session of the host is left', () => server.ended.length === server.sessions.size - 1)
  })

  it('are one for each client session, and end with it', async () => {
    const { url } = await started()
    expect(server.sessions.size, 'the session of the host').to.equal(1)
    const clients = await Promise.all([openSession(url), openSession(url)])
    for (const client of clients) for (let call = 0; call < 2; call++) await client.request('tools/call', add)
    expect(server.sessions.size).to.equal(3)
    for (const client of clients) await client.end()
    await eventually('the sessions end', () => server.ended.length === 2)
  })

  it('are one for each node, and the client is notified once', async () => {
    const store = createSharedStore()
    const config = {
      toolsets: {},
      routes: { '/': { toolsets: 'old' } },
      plugins: {
        'transport-streamable': {},
        stored: createStorePlugin(store),
        upstream: { servers: { old: { url: server.url, prefix: '' } } },
      },
    }
    const [first, other] = await Promise.all(
      startNeighbours(2).map(neighbours => startHost(config, undefined, { neighbours })),
    )
    const client = await openSession(first?.url ?? '')
    const headers = { 'Mcp-Session-Id': client.id, 'MCP-Protocol-Version': '2025-11-25' }
    const messagesAt = async (node: typeof first) => {
      const request = { id: 'add', method: 'tools/call', params: add }
      const { messages } = await postMessage(node?.url ?? '', request, headers)
      expect(messages.at(-1)?.result.content[0].text).to.equal('3')
      return messages.slice(0, -1).map(({ params }) => params)
    }
    expect(await messagesAt(first)).to.deep.equal([])
    const [note, ...more] = await messagesAt(other)
    expect(more).to.deep.equal([])
    expect(note).to.have.property('level', 'warning')
    expect(note.data).to.match(/new session at the server "old"/)
    for (const node of [other, first]) expect(await messagesAt(node)).to.deep.equal([])
    expect(server.sessions.size, 'two of the hosts and two of the client').to.equal(4)
  })

  it('are one for each user, and one for each anonymous call', async () => {
    const { url } = await started()
    const call = (user?: string) =>
      modern(url, 'tools/call', add, { headers: user === undefined ? {} : { 'x-user': user } })
    await Promise.all(['ada', 'ada', 'ben'].map(call))
    expect(server.sessions.size).to.equal(3)
    await call()
    await call()
    expect(server.sessions.size).to.equal(5)
    await eventually('the sessions of anonymous calls end', () => server.ended.length === 2)
  })

  it('are not shared between anonymous callers behind a trusted proxy', async () => {
    const { url } = await started({}, {}, undefined, { trustProxy: true })
    for (const address of ['203.0.113.5', '198.51.100.7'])
      await modern(url, 'tools/call', add, { headers: { 'X-Forwarded-For': address } })
    expect(server.sessions.size).to.equal(3)
  })

  it('are shared if the config says so', async () => {
    const { url } = await started({ sessions: 'shared' })
    await Promise.all(['ada', 'ben'].map(user => modern(url, 'tools/call', add, { headers: { 'x-user': user } })))
    expect(server.sessions.size).to.equal(1)
  })

  it('are limited: the unused one ends first', async () => {
    const { url } = await started({ maxSessions: 2 })
    for (const user of ['ada', 'ben', 'cleo']) await modern(url, 'tools/call', add, { headers: { 'x-user': user } })
    await eventually('one session ends', () => server.ended.length === 1)
  })

  it('are limited for each user, who ends no sessions of others', async () => {
    const { url } = await started({ maxSessions: 8 })
    const headers = { 'x-user': 'ada' }
    await modern(url, 'tools/call', add, { headers })
    const [, ofAda] = [...server.sessions.keys()]
    const client = () => openSession(url, { headers: { 'x-user': 'mallory' } })
    for (let count = 0; count < 10; count++)
      await (await client()).request('tools/call', add, { headers: { 'x-user': 'mallory' } })
    expect(server.ended).to.have.lengthOf(8).and.not.include(ofAda)
    const before = server.sessions.size
    await modern(url, 'tools/call', add, { headers })
    expect(server.sessions.size).to.equal(before)
    const ask = () => callTool(url, 'ask', { headers: { 'x-user': 'ben' } })
    expect((await ask()).message.result.resultType).to.equal('input_required')
  })

  it('are refused to a user whose sessions are all in use', async () => {
    const { url } = await started({ maxSessions: 4, sessions: 'per-call' })
    const ask = (user: string) => callTool(url, 'ask', { headers: { 'x-user': user } })
    await ask('mallory')
    expect((await ask('mallory')).message.result.content[0].text).to.match(/too many sessions/)
    expect((await ask('ben')).message.result.resultType).to.equal('input_required')
  })

  it('that are being opened end with their client session', async () => {
    let handshakes = 0
    let isGone = false
    const slow = await serveScript(({ id, method, json, response }) => {
      const capabilities = { tools: {} }
      if (id === undefined) return void response.writeHead(202).end()
      if (method === 'tools/list')
        return json({ jsonrpc: '2.0', id, result: { tools: [{ name: 'add', inputSchema: { type: 'object' } }] } })
      if (method !== 'initialize') return json({ jsonrpc: '2.0', id, result: {} })
      const close = () => {
        isGone = true
      }
      if (++handshakes > 1) return void response.once('close', close)
      const result = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'slow', version: '1' } }
      json({ jsonrpc: '2.0', id, result }, 200, { 'mcp-session-id': 'one' })
    })
    const { url } = await started({ url: slow, revision: '2025-11-25', connectTimeout: '1h' })
    const client = await openSession(url)
    const failed = client.request('tools/call', add).catch(() => undefined)
    await eventually('the handshake begins', () => handshakes === 2)
    await client.end()
    await eventually('the handshake is cancelled', () => isGone)
    await failed
  })
})

describe('An upstream server that changes its protocol version', () => {
  /** A URL whose server can be replaced. */
  async function serveReplaceable(first: string) {
    let current = first
    const { origin, server: front } = await serve((request, response) => {
      const { method, headers } = request
      const onward = httpRequest(current, { method, headers }, answer => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      onward.on('error', () => response.destroy())
      response.on('close', () => onward.destroy())
      request.pipe(onward)
    })
    const replace = (next: string) => {
      current = next
      front.closeAllConnections()
    }
    return { url: `${origin}/mcp`, replace }
  }

  const stateOf = ({ host }: Awaited<ReturnType<typeof started>>) => host.inspect('/')?.explainPlugins().join()
  const textOf = ({ message }: { readonly message: RpcMessage }) =>
    message.result?.content?.[0].text ?? JSON.stringify(message)

  for (const [from, to, revision] of [
    ['legacy', 'modern', '2026-07-28'],
    ['modern', 'legacy', '2025-11-25'],
  ] as const)
    it(`from ${from} to ${to} is connected again, also for open client sessions`, async () => {
      const urls = { legacy: server.url, modern: (await serveModernSdk()).url }
      const front = await serveReplaceable(urls[from])
      const clock = createManualClock()
      const gateway = await started({ url: front.url }, {}, clock)
      const client = await openSession(gateway.url)
      const callers = [
        () => client.request('tools/call', add),
        () => modern(gateway.url, 'tools/call', add, { headers: { 'x-user': 'ada' } }),
      ]
      for (const call of callers) expect(textOf(await call())).to.equal('3')
      front.replace(urls[to])
      for (const call of callers)
        await eventually(
          'a call succeeds',
          async () => {
            await clock.advance(1_000)
            return textOf(await call())
          },
          text => text === '3',
        )
      expect(stateOf(gateway)).to.contain(`up, ${to}`).and.to.contain(revision)
    })

  it('and requires `notifications/initialized` is connected again', async () => {
    let version = '2025-06-18'
    let last = 0
    const ready = new Map<string, boolean>()
    const url = await serveScript(({ id, method, request, response, json }) => {
      if (method === 'initialize') {
        const session = `${version} ${++last}`
        ready.set(session, false)
        const result = { protocolVersion: version, capabilities: { tools: {} }, serverInfo: { name: 'strict' } }
        return json({ jsonrpc: '2.0', id, result }, 200, { 'mcp-session-id': session })
      }
      const session = String(request.headers['mcp-session-id'])
      if (method === 'server/discover') return json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }, 400)
      if (!ready.has(session)) return void response.writeHead(404).end()
      if (method === 'notifications/initialized') ready.set(session, true)
      if (id === undefined) return void response.writeHead(202).end()
      if (!ready.get(session))
        return json({ jsonrpc: '2.0', id, error: { code: -32602, message: 'Invalid parameters' } })
      const tools = [{ name: 'add', inputSchema: { type: 'object' } }]
      json({ jsonrpc: '2.0', id, result: { tools, content: [{ type: 'text', text: version }] } })
    })
    const gateway = await started({ url })
    const client = await openSession(gateway.url)
    expect(textOf(await client.request('tools/call', add))).to.equal('2025-06-18')
    ready.clear()
    expect(textOf(await client.request('tools/call', add))).to.equal('2025-06-18')
    expect(gateway.log.filter(({ code }) => code === 'MH2959')).to.have.length(1)
    version = '2025-11-25'
    ready.clear()
    expect(textOf(await client.request('tools/call', add))).to.equal('2025-11-25')
    const other = await openSession(gateway.url)
    expect(textOf(await other.request('tools/call', add))).to.equal('2025-11-25')
  })
})

describe('Calls that wait for a response of their client', () => {
  it('continue once', async () => {
    const { url } = await started()
    const { message } = await callTool(url, 'ask', { headers: { 'x-user': 'ada' } })
    expect(Object.values(questionsIn(message))).to.deep.equal(['Your name?'])
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accept }, headers: { 'x-user': 'ada' } }
    expect((await callTool(url, 'ask', retry)).message.result.content[0].text).to.equal('accept Ada')
    const again = (await callTool(url, 'ask', retry)).message.result
    expect(again.isError).to.equal(true)
    expect(again.content[0].text).to.match(/already answered.*may have been executed/)
  })

  it('are lost with their node, which the error and the log of other nodes report', async () => {
    const [first, second] = [await started(), await started()]
    const { message } = await callTool(first.url, 'ask', { headers: { 'x-user': 'ada' } })
    await first.host.close({ grace: 0 })
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accept }, headers: { 'x-user': 'ada' } }
    const { result } = (await callTool(second.url, 'ask', retry)).message
    expect(result.isError).to.equal(true)
    expect(result.content[0].text).to.include('MH2952')
    const line = second.log.find(({ code }) => code === 'MH2952')
    expect(line).to.include({ upstream: 'old', upstreamTool: 'ask' })
    expect(line?.reason).to.match(/does not respond/)
  })

  it('belong to their user', async () => {
    const { url } = await started()
    const { message } = await callTool(url, 'ask', { headers: { 'x-user': 'ada' } })
    const stolen = { state: message.result.requestState, answers: { 'elicit-1': accept }, headers: { 'x-user': 'ben' } }
    expect((await callTool(url, 'ask', stolen)).message.error.message).to.match(/requestState was altered/)
  })

  it('are limited for each user, and end when nobody responds', async () => {
    const clock = createManualClock()
    const { url } = await started({}, { held: { maxPerUser: 2, for: '1m' } }, clock)
    const ask = (user: string) => callTool(url, 'ask', { headers: { 'x-user': user } })
    const [first] = await Promise.all([ask('ada'), ask('ada')])
    const third = (await ask('ada')).message.result
    expect(third.content[0].text).to.match(/Too many calls wait/)
    expect((await ask('ben')).message.result.resultType).to.equal('input_required')
    await clock.advance(60_000)
    const retry = {
      state: first?.message.result.requestState,
      answers: { 'elicit-1': accept },
      headers: { 'x-user': 'ada' },
    }
    expect((await callTool(url, 'ask', retry)).message.result.isError).to.equal(true)
    expect((await ask('ada')).message.result.resultType).to.equal('input_required')
  })

  it('are limited for each server, and not kept if the request is too large', async () => {
    const { url } = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: ['a', 'b'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { held: { maxPerUser: 1 }, servers: { a: { url: server.url }, b: { url: server.url } } },
      },
    })
    for (let count = 0; count < 2; count++)
      expect((await callTool(url, 'a_askLong')).message.result.content[0].text).to.match(/too large/)
    for (const name of ['a_ask', 'b_ask'])
      expect((await callTool(url, name)).message.result.resultType).to.equal('input_required')
    expect((await callTool(url, 'a_ask')).message.result.content[0].text).to.match(/Too many calls/)
  })
})
