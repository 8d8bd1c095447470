// Tests the in-memory transport example, with raw messages and with the official client.
import { Client, type Transport as ClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { type Config, defineTool, HostError, type User } from 'mcp-host'
import { createHost, type Host } from 'mcp-host/host'
import { definePlugin, type PluginHost } from 'mcp-host/plugin'
import { createInMemoryTransport, type Who } from '../../examples/in-memory-transport/in-memory-transport.ts'
import type { End } from '../../examples/in-memory-transport/pair.ts'
import { ask, count, createWait, grow } from '../fixtures/line-toolset.ts'
import { plugin } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { clientAt, type Received } from './client-at.ts'

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
const ADA: User = { subject: 'ada', scopes: ['use'], roles: [], claims: {} }

const { tool: wait, aborted } = createWait()
const tools = [
  count,
  wait,
  ask,
  grow,
  defineTool({ name: 'who', handler: (_args, { user, route }) => `${user?.subject} ${route.params['tenant']}` }),
]

const hosts: Host[] = []
async function serve(more: Partial<Config> = {}) {
  const memory = createInMemoryTransport()
  const host = await createHost(
    {
      server: { name: 'in-memory', version: '1' },
      toolsets: { all: tools },
      routes: {
        '/': { toolsets: 'all' },
        '/:tenant': { toolsets: 'all' },
        '/per-request': { toolsets: 'all', stateless: true },
      },
      secrets: ['a secret for tests, long enough to be one'],
      ...more,
      plugins: { memory: memory.plugin({}), ...more.plugins },
    },
    { log: { debug() {}, info() {}, warn() {}, error() {}, child: () => QUIET } },
  )
  hosts.push(host)
  await host.start()
  return { host, connect: memory.connect }
}
const QUIET = { debug() {}, info() {}, warn() {}, error() {}, child: () => QUIET }
after(() => Promise.all(hosts.map(host => host.close({ grace: 0 }))))

async function opened(end: End, capabilities: object = {}, protocolVersion = '2025-11-25') {
  const client = clientAt(end)
  const { result } = await client.request(0, 'initialize', { ...INITIALIZE, capabilities, protocolVersion })
  expect(result?.['protocolVersion']).to.equal(protocolVersion)
  client.say({ method: 'notifications/initialized' })
  return client
}

const textOf = ({ result }: Received) => (result?.['content'] as Array<{ text: string }> | undefined)?.[0]?.text

describe('examples/in-memory-transport', () => {
  let connect: (path: string, who?: Who) => End
  let host: Host
  before(async () => {
    ;({ host, connect } = await serve({ sessions: { maxCallsPerSession: 3 } }))
  })
  beforeEach(() => {
    aborted.length = 0
  })

  it('initializes, lists and calls, with progress before the response', async () => {
    const client = await opened(connect('/'))
    expect((await client.request(1, 'tools/list')).result?.['tools']).to.have.length(tools.length)
    client.call(2, 'count', { _meta: { progressToken: 'p' } })
    await client.until(({ id }) => id === 2)
    expect(client.seen.map(({ method, params }) => [method, params?.['progress']])).to.deep.equal([
      ['notifications/progress', 1],
      ['notifications/progress', 2],
    ])
  })

  it('provides caller and route to handlers', async () => {
    const client = await opened(connect('/:tenant', { user: ADA, params: { tenant: 'acme' } }))
    expect(textOf(await client.request(1, 'tools/call', { name: 'who' }))).to.equal('ada acme')
  })

  it('cancels a call without a response and releases its slot and id', async () => {
    const client = await opened(connect('/'))
    for (let round = 1; round <= 6; round++) {
      client.call(7, 'wait', { _meta: { progressToken: 'p' } })
      await client.until(({ method }) => method === 'notifications/progress')
      client.say({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'enough' } })
      await eventually('it is cancelled', () => aborted.length === round)
    }
    // Comes after whatever else would have been sent.
    await client.request(8, 'ping')
    expect(aborted).to.have.length(6)
    expect(client.seen).to.deep.equal([])
  })

  it('sends elicitation requests to its client', async () => {
    const client = await opened(connect('/'), { elicitation: { form: {} } })
    client.call(1, 'ask')
    const { id } = await client.until(({ method }) => method === 'elicitation/create')
    client.say({ id, result: { action: 'accept', content: { name: 'Ann' } } })
    expect(textOf(await client.until(message => message.id === 1))).to.equal('Hello, Ann')
  })

  it('notifies all clients of list changes', async () => {
    const [one, other] = [await opened(connect('/')), await opened(connect('/'))]
    await one.request(1, 'tools/call', { name: 'grow' })
    for (const client of [one, other]) {
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
    }
    await one.request(2, 'tools/call', { name: 'grow' })
  })

  it('rejects malformed messages and messages before initialize', async () => {
    const client = clientAt(connect('/'))
    for (const [text, code, id] of [
      ['{', -32700, null],
      ['', -32600, null],
      ['[]', -32600, null],
      ['5', -32600, null],
      ['{"jsonrpc":"1.0","id":1,"method":"x"}', -32600, 1],
      ['{"jsonrpc":"2.0","id":3,"method":"tools/list"}', -32600, 3],
      ['{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}', -32602, 4],
    ] as const) {
      client.end.send(text)
      const answer = await client.until(() => true)
      expect([answer.error?.code, answer.id ?? null], text).to.deep.equal([code, id])
    }
    // The line is still good.
    expect((await client.request(5, 'initialize', INITIALIZE)).result).to.include({ protocolVersion: '2025-11-25' })
    expect((await client.request(6, 'initialize', INITIALIZE)).error?.code).to.equal(-32600)
    expect((await client.request(7, 'no/such')).error?.code).to.equal(-32601)
  })

  it('accepts batches in protocol versions that support them', async () => {
    const batch = JSON.stringify([1, 2].map(id => ({ jsonrpc: '2.0', id, method: 'ping' })))
    const old = await opened(connect('/'), {}, '2025-03-26')
    old.end.send(batch)
    for (const wanted of [1, 2]) expect((await old.until(({ id }) => id === wanted)).result).to.deep.equal({})
    const newer = await opened(connect('/'))
    newer.end.send(batch)
    expect((await newer.until(() => true)).error?.code).to.equal(-32600)
  })

  it('limits concurrent calls per session and rejects a duplicate id', async () => {
    const client = await opened(connect('/'))
    client.call(1, 'wait')
    client.call(1, 'wait')
    expect((await client.until(() => true)).error?.message).to.include('running')
    for (const id of [2, 3, 4]) client.call(id, 'wait')
    expect((await client.until(({ id }) => id === 4)).error?.message).to.include('at most 3 concurrent requests')
    client.end.close()
    await eventually('all are cancelled', () => aborted.length >= 3)
    expect(aborted.map(String)).to.deep.equal(Array(3).fill('Error: the client has disconnected'))
    expect(client.seen).to.deep.equal([])
  })

  it('cleans up a client that closes, before or after initialize', async () => {
    let count = () => -1
    const spy = plugin(host => {
      count = () => host.services.sessions.count
    })
    const [configuring, go] = [createGate(), createGate()]
    const configureSession = () => {
      configuring.open()
      return go.opened
    }
    const { connect: connectSlowly } = await serve({ configureSession, plugins: { spy } })
    const client = clientAt(connectSlowly('/'))
    client.say({ id: 0, method: 'initialize', params: INITIALIZE })
    await configuring.opened
    client.end.close()
    go.open()
    // Opened after whatever would have been left of the first.
    const second = await opened(connectSlowly('/'))
    expect(count()).to.equal(1)
    second.end.close()
    await eventually('no session is left', count, left => left === 0)
  })

  it('reports a route without sessions', () => {
    expect(() => connect('/per-request')).to.throw('no sessions are served at /per-request; available: /, /:tenant')
  })

  it('finishes running calls when the host closes, then closes its end', async () => {
    const { host: closing, connect: connectTo } = await serve()
    const client = await opened(connectTo('/'))
    client.call(1, 'wait', { _meta: { progressToken: 'p' } })
    await client.until(({ method }) => method === 'notifications/progress')
    const closed = closing.close({ grace: 20 })
    expect((await client.until(({ id }) => id === 1)).error?.code).to.equal(-32603)
    expect(await closed).to.include({ cancelled: 1 })
    expect(client.isClosed()).to.equal(true)
  })

  it('enforces `authorize` of its route', async () => {
    const decider = plugin(() => undefined, { provides: ['user', 'authorize'] })
    const { connect: enter } = await serve({
      routes: { '/': { toolsets: 'all', authorize: { scope: 'use' } } },
      plugins: { decider },
    })
    const kindOf = (who: Who) => {
      try {
        enter('/', who)
        return undefined
      } catch (thrown) {
        return HostError.is(thrown) ? thrown.kind : String(thrown)
      }
    }
    expect([kindOf({}), kindOf({ user: { ...ADA, scopes: [] } })]).to.deep.equal(['unauthorized', 'forbidden'])
    const client = await opened(enter('/', { user: ADA }))
    expect((await client.request(1, 'tools/list')).result).to.have.property('tools')
  })

  it('works with the official client', async () => {
    const end = connect('/')
    const transport: ClientTransport = {
      async start() {
        end.onmessage = text => transport.onmessage?.(JSON.parse(text))
        end.onclose = () => transport.onclose?.()
      },
      send: async message => end.send(JSON.stringify(message)),
      close: async () => end.close(),
    }
    const client = new Client({ name: 'official', version: '1' }, { capabilities: { elicitation: { form: {} } } })
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Bob' } }))
    let changes = 0
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
    await client.connect(transport)
    expect((await client.listTools()).tools).to.have.length(tools.length)
    const steps: number[] = []
    await client.callTool({ name: 'count', arguments: {} }, { onprogress: ({ progress }) => void steps.push(progress) })
    expect(steps).to.deep.equal([1, 2])
    const { content } = await client.callTool({ name: 'ask', arguments: {} })
    expect(content).to.deep.equal([{ type: 'text', text: 'Hello, Bob' }])
    const [stop, running] = [new AbortController(), createGate<unknown>()]
    const refused = client
      .callTool({ name: 'wait', arguments: {} }, { signal: stop.signal, onprogress: running.open })
      .catch((error: unknown) => error)
    await running.opened
    stop.abort('enough')
    expect(String(await refused)).to.include('enough')
    await eventually('it is cancelled', () => aborted.length)
    await client.callTool({ name: 'grow', arguments: {} })
    await eventually('the change is told', () => changes)
    await client.ping()
    expect([aborted.length, changes]).to.deep.equal([1, 1])
    await client.close()
    expect(host.routes).to.have.length(3)
  })
})

describe('host.connect', () => {
  for (const [what, send] of [
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ] as const) {
    it(`ends the session if \`send\` ${what}, and ignores later messages`, async () => {
      const plugins: PluginHost[] = []
      const line = definePlugin({ provides: ['transport'], setup: host => void plugins.push(host) })
      let count = () => -1
      const spy = plugin(host => {
        count = () => host.services.sessions.count
      })
      await serve({ plugins: { line: line({}), spy } })
      const [own] = plugins
      const [route] = own?.routes ?? []
      if (!own || !route) throw new Error('the plugin has no route')
      const sent: string[] = []
      let closed = 0
      let broken = false
      const client = own.connect(
        { route },
        {
          send: message => (broken ? send() : void sent.push(message)),
          close: () => void closed++,
        },
      )
      const receive = (id: number, method: string, params: object = {}) =>
        client.receive(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      await receive(0, 'initialize', INITIALIZE)
      await eventually('it is initialized', () => sent.length === 1)
      broken = true
      await receive(1, 'no/such')
      await eventually('the session has ended', count, left => left === 0)
      await client.receive('no message')
      broken = false
      await receive(2, 'ping')
      await client.close()
      expect({ closed, sent: sent.length }).to.deep.equal({ closed: 1, sent: 1 })
    })
  }
})
