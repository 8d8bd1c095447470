// The stdio transport over in-process streams: each protocol version, framing, limits, backpressure and shutdown.
import { expect } from 'chai'
import { defineTool, HostError } from 'mcp-host'
import { ask, createWait, editorOf, grow, PAGE, page } from '../../fixtures/line-toolset.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import {
  closeHosts,
  INITIALIZE,
  initialize,
  meta,
  QUIET,
  type StdioServing,
  serveStdio,
  textOf,
} from './stdio-client.ts'

const { tool: wait, aborted } = createWait()
/** Calls of `last` that have begun, and what lets them end. */
let lastBegun = 0
let lastMayEnd = createGate()
const WHO = 'io.modelcontextprotocol/subscriptionId'

const tools = [
  defineTool({
    name: 'count',
    handler(_args, { progress, log }) {
      log('warning', 'counting\nslowly')
      progress(1, 2)
      progress(2, 2)
      return 'counted'
    },
  }),
  defineTool({
    name: 'last',
    async handler() {
      lastBegun++
      await lastMayEnd.opened
      return 'done'
    },
  }),
  defineTool({ name: 'folders', handler: async (_args, { roots }) => `${(await roots()).roots.length}` }),
  wait,
  ask,
  grow,
  editorOf(PAGE),
  defineTool({
    name: 'who',
    handler: (_args, { user, route }) => `${user?.subject} ${user?.scopes} ${route.params['tenant']}`,
  }),
  defineTool({ name: 'large', handler: () => 'x'.repeat(1_000_000) }),
]
const toolsets = { all: [...tools, page] }

describe('transport-stdio', () => {
  let serving: StdioServing
  before(async () => {
    serving = await serveStdio({
      toolsets,
      routes: {
        '/': { toolsets: 'all' },
        '/:tenant': { toolsets: 'all' },
        '/plain': { toolsets: 'all', stateless: true },
      },
      sessions: { maxCallsPerSession: 3 },
      http: { maxBodySize: '1mb' },
    })
  })
  beforeEach(() => {
    aborted.length = 0
  })
  after(closeHosts)

  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    it(`serves a ${revision} session: lists, calls, and progress and logs before the response`, async () => {
      const client = serving.connect()
      expect((await initialize(client, revision)).result).to.include({ protocolVersion: revision })
      expect((await client.request(1, 'tools/list')).result?.['tools']).to.have.length(tools.length)
      const answer = await client.request(2, 'tools/call', { name: 'count', _meta: { progressToken: 'p' } })
      expect(textOf(answer)).to.equal('counted')
      expect(client.seen.map(({ method, params }) => [method, params?.['progress'] ?? params?.['data']])).to.deep.equal(
        [
          ['notifications/message', 'counting\nslowly'],
          ['notifications/progress', 1],
          ['notifications/progress', 2],
        ],
      )
    })
  }

  it('supports sessions on a stateless route', async () => {
    const client = serving.connect('/plain')
    await initialize(client)
    expect(textOf(await client.request(1, 'tools/call', { name: 'count' }))).to.equal('counted')
  })

  it('serves 2026-07-28 without a handshake', async () => {
    const client = serving.connect()
    const found = await client.request('d', 'server/discover', meta())
    expect(found.result?.['supportedVersions']).to.include.members(['2026-07-28', '2025-11-25', '2024-11-05'])
    const params = { name: 'count', ...meta({ progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'info' }) }
    expect(textOf(await client.request(2, 'tools/call', params))).to.equal('counted')
    expect(client.seen.map(({ method }) => method)).to.deep.equal([
      'notifications/message',
      'notifications/progress',
      'notifications/progress',
    ])
    const asked = await client.request(3, 'tools/call', {
      name: 'folders',
      ...meta({ 'io.modelcontextprotocol/clientCapabilities': { roots: {} } }),
    })
    expect(asked.result).to.include({ resultType: 'input_required' })
    const unknown = await client.request(4, 'tools/list', meta({}, '2099-01-01'))
    expect([unknown.error?.code, (unknown.error?.data as { requested?: string } | undefined)?.requested]).to.deep.equal(
      [-32022, '2099-01-01'],
    )
    const bare = await client.request(5, 'tools/list', {
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' },
    })
    expect(bare.error?.code).to.equal(-32602)
  })

  it('serves both protocol eras on one connection', async () => {
    const client = serving.connect()
    expect((await client.request(1, 'tools/list', meta())).result).to.include({ resultType: 'complete' })
    await initialize(client)
    expect((await client.request(1, 'tools/list')).result).to.not.have.property('resultType')
    expect((await client.request(1, 'tools/list', meta())).result).to.include({ resultType: 'complete' })
  })

  it('cancels calls in both eras without a response, and frees their ids', async () => {
    const client = serving.connect()
    await initialize(client)
    let cancelled = 0
    for (const more of [{ _meta: { progressToken: 'p' } }, meta({ progressToken: 'p' })]) {
      for (let round = 0; round < 5; round++) {
        client.say({ id: 7, method: 'tools/call', params: { name: 'wait', ...more } })
        await client.until(({ method }) => method === 'notifications/progress')
        client.say({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'enough' } })
        await eventually('the call is cancelled', () => aborted.length > cancelled)
        expect(aborted).to.have.length(++cancelled)
        expect(String(aborted.at(-1))).to.include('enough')
      }
    }
    // Comes after whatever else would have been said.
    await client.request(8, 'ping')
    expect(client.seen).to.deep.equal([])
  })

  it('elicits input while other requests continue', async () => {
    const client = serving.connect()
    await initialize(client, '2025-11-25', { elicitation: { form: {} }, roots: {} })
    client.say({ id: 1, method: 'tools/call', params: { name: 'ask' } })
    const { id } = await client.until(({ method }) => method === 'elicitation/create')
    expect((await client.request(2, 'ping')).result).to.deep.equal({})
    client.say({ id, result: { action: 'accept', content: { name: 'Ann' } } })
    expect(textOf(await client.until(message => message.id === 1))).to.equal('Hello, Ann')
    client.say({ id: 3, method: 'tools/call', params: { name: 'folders' } })
    const roots = await client.until(({ method }) => method === 'roots/list')
    client.say({ id: roots.id, result: { roots: [{ uri: 'file:///a' }] } })
    expect(textOf(await client.until(message => message.id === 3))).to.equal('1')
  })

  it('sends list_changed and resource updates to the session and subscriptions/listen', async () => {
    const [older, newer] = [serving.connect(), serving.connect()]
    await initialize(older)
    await older.request(1, 'resources/subscribe', { uri: PAGE })
    newer.say({
      id: 'l',
      method: 'subscriptions/listen',
      params: { ...meta(), notifications: { toolsListChanged: true, resourceSubscriptions: [PAGE] } },
    })
    await newer.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    await older.request(2, 'tools/call', { name: 'grow' })
    await older.request(3, 'tools/call', { name: 'edit' })
    for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated']) {
      await older.until(message => message.method === method)
      const told = await newer.until(message => message.method === method)
      expect((told.params?.['_meta'] as Record<string, unknown> | undefined)?.[WHO]).to.equal('l')
    }
    newer.say({ method: 'notifications/cancelled', params: { requestId: 'l' } })
    await newer.request(1, 'tools/list', meta())
    await older.request(4, 'tools/call', { name: 'grow' })
    await older.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(newer.seen).to.deep.equal([])
  })

  it('answers malformed, oversized and early requests, and continues', async () => {
    const client = serving.connect()
    for (const [text, code, id] of [
      ['{', -32700, null],
      ['[]', -32600, null],
      ['5', -32600, null],
      ['{"jsonrpc":"1.0","id":1,"method":"x"}', -32600, 1],
      ['{"jsonrpc":"2.0","id":3,"method":"tools/list"}', -32600, 3],
      ['{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}', -32602, 4],
      ['{"jsonrpc":"2.0","id":5,"method":"x","params":{"__proto__":1}}', -32600, null],
      [`{"jsonrpc":"2.0","id":6,"method":"${'x'.repeat(2 * 1024 * 1024)}"}`, -32000, null],
    ] as const) {
      client.write(`${text}\r\n`)
      const answer = await client.until(() => true)
      expect([answer.error?.code, answer.id ?? null], text.slice(0, 50)).to.deep.equal([code, id])
    }
    client.input.write(Buffer.from([0xff, 0xfe, 0x0a]))
    expect((await client.until(() => true)).error?.code).to.equal(-32700)
    // Empty lines say nothing.
    client.write('\n  \n\r\n')
    expect((await client.request(7, 'initialize', INITIALIZE)).result).to.include({ protocolVersion: '2025-11-25' })
    expect((await client.request(8, 'initialize', INITIALIZE)).error?.code).to.equal(-32600)
    expect((await client.request(9, 'no/such')).error?.code).to.equal(-32601)
  })

  it('accepts split lines and several lines at once', async () => {
    const client = serving.connect()
    const text = `${JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { ...INITIALIZE, clientInfo: { name: 'ünïcode ☃', version: '1' } } })}\n`
    for (const byte of Buffer.from(text)) client.input.write(Buffer.from([byte]))
    await client.until(({ id }) => id === 0)
    client.write([1, 2, 3].map(id => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`).join(''))
    for (const wanted of [1, 2, 3]) await client.until(({ id }) => id === wanted)
  })

  it('accepts batches in protocol versions with batches', async () => {
    const batch = `${JSON.stringify([1, 2].map(id => ({ jsonrpc: '2.0', id, method: 'ping' })))}\n`
    const old = serving.connect()
    await initialize(old, '2025-03-26')
    old.write(batch)
    for (const wanted of [1, 2]) expect((await old.until(({ id }) => id === wanted)).result).to.deep.equal({})
    const newer = serving.connect()
    await initialize(newer)
    newer.write(batch)
    expect((await newer.until(() => true)).error?.code).to.equal(-32600)
  })

  it('limits concurrent calls and refuses duplicate ids', async () => {
    const few = await serveStdio(
      { toolsets, routes: { '/': { toolsets: 'all' } }, sessions: { maxCallsPerSession: 3 } },
      { maxConcurrent: 2 },
    )
    const client = few.connect()
    await initialize(client)
    const wait = (id: number, more: object = {}) =>
      client.say({ id, method: 'tools/call', params: { name: 'wait', ...more } })
    wait(1)
    wait(1)
    expect((await client.until(() => true)).error?.message).to.include('running')
    for (const id of [2, 3, 4]) wait(id)
    expect((await client.until(({ id }) => id === 4)).error?.message).to.include('at most 3 concurrent requests')
    for (const id of [11, 12, 12, 13]) wait(id, meta())
    expect((await client.until(({ id }) => id === 12)).error?.message).to.include('running')
    expect((await client.until(({ id }) => id === 13)).error?.message).to.include('at most 2 concurrent requests')
    client.output.destroy()
    await client.line.ended
    await eventually('all are cancelled', () => aborted.length >= 5)
    expect(aborted.map(String)).to.deep.equal(Array(5).fill('Error: the client has disconnected'))
  })

  it('drains running calls at end of input, and requests that arrive during shutdown', async () => {
    const own = await serveStdio({ toolsets, routes: { '/': { toolsets: 'all' } } })
    const client = own.connect()
    await initialize(client)
    ;[lastBegun, lastMayEnd] = [0, createGate()]
    client.say({ id: 1, method: 'tools/call', params: { name: 'last' } })
    client.say({ id: 2, method: 'tools/call', params: { name: 'last', ...meta() } })
    client.say({
      id: 'l',
      method: 'subscriptions/listen',
      params: { ...meta(), notifications: { toolsListChanged: true } },
    })
    await client.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    await eventually('both calls run', () => lastBegun === 2)
    client.input.end()
    await client.line.ended
    const closed = own.host.close()
    lastMayEnd.open()
    expect(await closed).to.deep.include({ cancelled: 0 })
    await client.line.close()
    expect(client.seen.map(({ id, error }) => [id, error])).to.have.deep.members([
      [1, undefined],
      [2, undefined],
      ['l', undefined],
    ])
  })

  it('aborts calls beyond the grace period and reports them', async () => {
    const own = await serveStdio({ toolsets, routes: { '/': { toolsets: 'all' } } })
    const client = own.connect()
    await initialize(client)
    client.say({ id: 1, method: 'tools/call', params: { name: 'wait' } })
    client.say({ id: 2, method: 'tools/call', params: { name: 'wait', ...meta() } })
    await client.request(3, 'ping')
    expect(await own.host.close({ grace: 20 })).to.deep.include({ cancelled: 2 })
    for (const wanted of [1, 2]) expect((await client.until(({ id }) => id === wanted)).error?.code).to.equal(-32603)
  })

  it('applies backpressure to a client that does not read', async () => {
    const client = serving.connect()
    await initialize(client)
    client.output.pause()
    const before = client.output.readableLength
    const other = serving.connect()
    for (let id = 1; id <= 20; id++) {
      client.say({ id, method: 'tools/call', params: { name: 'large', ...meta() } })
      // Whoever reads is answered meanwhile: by then this request would have been read and answered, too.
      expect((await other.request(id, 'tools/call', { name: 'large', ...meta() })).error).to.equal(undefined)
    }
    // Its requests wait in the input: nobody reads them.
    const waiting = client.input.readableLength + client.input.writableLength
    expect(before).to.be.lessThan(1_000)
    expect(waiting).to.be.greaterThan(1_000)
    const most = (client.output.readableLength + client.output.writableLength) / 1_000_000
    expect(most).to.be.lessThan(10)
    client.output.resume()
    for (let id = 1; id <= 20; id++)
      expect((await client.until(message => message.id === id)).error).to.equal(undefined)
  })

  it('cleans up after a disconnected client, even before its session opens', async () => {
    let count = () => -1
    const spy = plugin(host => {
      host.onReady(() => {
        const { sessions } = host.services
        count = () => sessions.count
      })
    })
    const [configuring, go] = [createGate(), createGate()]
    const slow = await serveStdio({
      toolsets,
      routes: { '/': { toolsets: 'all' } },
      configureSession() {
        configuring.open()
        return go.opened
      },
      plugins: { spy },
    })
    const client = slow.connect()
    client.say({ id: 0, method: 'initialize', params: INITIALIZE })
    await configuring.opened
    client.output.destroy()
    go.open()
    // Opened after whatever would have been left of the first.
    const second = slow.connect()
    await initialize(second)
    expect(count()).to.equal(1)
    second.output.destroy()
    await eventually('no session is left', count, left => left === 0)
  })

  it('enforces `authorize` of the route with the identity from the options', async () => {
    const decider = plugin(() => undefined, { provides: ['user', 'authorize'] })
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'use' } }, '/:tenant': { toolsets: 'all' } } as const
    const kindOf = async (user?: { subject: string; scopes?: string[] }) => {
      const { connect } = await serveStdio({ toolsets, routes, plugins: { decider } }, user ? { user } : {}, QUIET)
      try {
        return connect()
      } catch (thrown) {
        return HostError.is(thrown) ? thrown.kind : String(thrown)
      }
    }
    expect([await kindOf(), await kindOf({ subject: 'ada' })]).to.deep.equal(['unauthorized', 'forbidden'])
    const { connect } = await serveStdio(
      { toolsets, routes, plugins: { decider } },
      { user: { subject: 'ada', scopes: ['use'] } },
    )
    const client = connect('/:tenant', { tenant: 'acme' })
    await initialize(client)
    expect(textOf(await client.request(1, 'tools/call', { name: 'who' }))).to.equal('ada use acme')
    expect(textOf(await client.request(2, 'tools/call', { name: 'who', ...meta() }))).to.equal('ada use acme')
    expect(() => serving.connect('/nowhere')).to.throw(
      'transport-stdio is off on /nowhere; it serves: /, /:tenant, /plain',
    )
  })
})
