// Tests that each refused request leaves an observer record over every transport.
import { expect } from 'chai'
import { defineTool, HostError } from '../../core/index.ts'
import type { CallRecord } from '../../core/plugin.ts'
import { plugin } from '../fixtures/plugins.ts'
import { closeHosts, initialize, meta, serveStdio } from '../plugins/transport-stdio/stdio-client.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern, post } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { openSseSession } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)
after(closeHosts)

const { tool: puppet, call: puppetOf } = createPuppet()
const toolsets = { all: [puppet, defineTool({ name: 'hello', handler: () => 'hello' })] }
const records: CallRecord[] = []
const observer = plugin(host => host.onFinish(record => void records.push(record)))

/** How many offers are made until one is refused. */
let untilRefused = 0

const request = (id: string, method = 'ping', params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
const puppetCall = (id: string) => request(id, 'tools/call', { name: 'puppet', arguments: { name: id } })
const SECOND = request('second', 'initialize', { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: {} })
const UNREAD = request('unread', 'tools/list', { _meta: { progressToken: 'x'.repeat(2_000) } })

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets,
    routes: {
      '/mcp': { toolsets: 'all' },
      '/stateless': { toolsets: 'all', stateless: true, plugins: { 'transport-sse': false } },
    },
    sessions: { maxCallsPerSession: 3 },
    configureSession() {
      if (--untilRefused === 0) throw new HostError('forbidden')
    },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, observer },
  }))
})

/** A call that runs, so that its id is taken; done when the returned function is called. */
async function occupy(id: string, ask: () => unknown) {
  void ask()
  const running = await puppetOf(id)
  return () => running.finish('done')
}

interface Row {
  /** Records that are expected: of messages, and of HTTP requests. */
  readonly expected: readonly string[]
  act(): Promise<unknown>
}

const sessionOf = (revision: string) => openSession(`${url}/mcp`, { revision })

const STREAMABLE: Readonly<Record<string, Row>> = {
  'session, one': {
    expected: ['ping ok'],
    act: async () => (await sessionOf('2025-11-25')).request('ping'),
  },
  'session, one, initialize again': {
    expected: ['POST 400 invalidRequest'],
    act: async () => (await sessionOf('2025-11-25')).send(SECOND),
  },
  'session, one, its id runs': {
    expected: ['POST 200 invalidRequest', 'tools/call ok'],
    async act() {
      const client = await sessionOf('2025-11-25')
      const done = await occupy('one', () => client.send(puppetCall('one')))
      await client.send(request('one'))
      done()
    },
  },
  'session, a batch with a refused one': {
    expected: ['ping ok', 'ping refused invalidRequest', 'tools/call ok'],
    async act() {
      const client = await sessionOf('2025-03-26')
      const done = await occupy('batch', () => client.send(puppetCall('batch')))
      await client.send([request('p'), request('batch')])
      done()
    },
  },
  'session, a batch where all are refused': {
    expected: ['ping refused invalidRequest', 'ping refused invalidRequest', 'tools/call ok', 'tools/call ok'],
    async act() {
      const client = await sessionOf('2025-03-26')
      const first = await occupy('all', () => client.send(puppetCall('all')))
      const second = await occupy('them', () => client.send(puppetCall('them')))
      await client.send([request('all'), request('them')])
      first()
      second()
    },
  },
  'session, a batch of one that is refused': {
    expected: ['POST 200 invalidRequest', 'tools/call ok'],
    async act() {
      const client = await sessionOf('2025-03-26')
      const done = await occupy('only', () => client.send(puppetCall('only')))
      await client.send([request('only')])
      done()
    },
  },
  'session, a batch that is refused whole': {
    expected: ['POST 429 tooManyRequests', 'tools/call ok', 'tools/call ok', 'tools/call ok'],
    async act() {
      const client = await sessionOf('2025-03-26')
      const ids = ['full', 'too', 'over']
      const running = await Promise.all(ids.map(id => occupy(id, () => client.send(puppetCall(id)))))
      await client.send([request('a'), request('b')])
      for (const done of running) done()
    },
  },
  'without a session, one': {
    expected: ['tools/list ok'],
    act: () => modern(`${url}/mcp`, 'tools/list'),
  },
  'without a session, one, whose header says otherwise': {
    expected: ['POST 400 headerMismatch'],
    act: () => modern(`${url}/mcp`, 'tools/list', {}, { headers: { 'MCP-Protocol-Version': '2099-01-01' } } as object),
  },
  'stateless, a batch with a refused one': {
    expected: ['ping ok', 'ping ok', 'ping refused forbidden'],
    async act() {
      untilRefused = 2
      await post(`${url}/stateless`, JSON.stringify([request('p'), request('q'), request('r')]))
    },
  },
  'stateless, one that is refused': {
    expected: ['POST 403 forbidden'],
    async act() {
      untilRefused = 1
      await post(`${url}/stateless`, JSON.stringify(request('p')))
    },
  },
  'stateless, a batch that is refused whole': {
    expected: ['POST 400 invalidMeta'],
    act: () => post(`${url}/stateless`, JSON.stringify([request('p'), UNREAD])),
  },
}

const SSE: Readonly<Record<string, Row>> = {
  'HTTP+SSE, refused on the stream': {
    expected: ['initialize refused invalidRequest', 'ping refused invalidRequest', 'tools/call ok'],
    async act() {
      const client = await openSseSession(`${url}/mcp`)
      const done = await occupy('sse', () => client.post(puppetCall('sse')))
      for (const message of [request('sse'), SECOND]) await client.post(message)
      done()
      // Two refusals and the answer.
      for (let read = 0; read < 3; read++) await client.next()
      client.stream.drop()
    },
  },
  'HTTP+SSE, refused at the POST': {
    expected: [
      'POST 400 invalidMeta',
      'POST 400 invalidRequest',
      'POST 429 tooManyRequests',
      'tools/call ok',
      'tools/call ok',
      'tools/call ok',
    ],
    async act() {
      const client = await openSseSession(`${url}/mcp`)
      const ids = ['sse 1', 'sse 2', 'sse 3']
      const running = await Promise.all(ids.map(id => occupy(id, () => client.post(puppetCall(id)))))
      for (const message of [request('fourth'), [request('a batch')], UNREAD]) await client.post(message)
      for (const done of running) done()
      for (const _ of ids) await client.next()
      client.stream.drop()
    },
  },
}

const STDIO: Readonly<Record<string, Row>> = {
  'stdio, with and without a session': {
    expected: [
      '- refused invalidMeta',
      '- refused invalidRequest',
      '- refused parseError',
      'initialize ok',
      'initialize refused invalidRequest',
      'ping refused invalidRequest',
      'ping refused invalidRequest',
      'ping refused unsupportedVersion',
      'tools/call ok',
      'tools/list ok',
    ],
    async act() {
      const { connect } = await serveStdio({ toolsets, routes: { '/': { toolsets: 'all' } }, plugins: { observer } })
      const client = connect()
      await client.request('early', 'ping')
      await initialize(client)
      const done = await occupy('line', () => client.say(puppetCall('line')))
      client.write('not JSON\n')
      for (const message of [request('line'), SECOND, UNREAD]) client.say(message)
      await client.request('own', 'tools/list', meta())
      await client.request('future', 'ping', meta({}, '2099-01-01'))
      client.write(`${JSON.stringify([request('in a batch')])}\n`)
      await client.until(message => message.id === 'unread')
      await client.until(({ id }) => id === undefined || id === null)
      done()
      await client.until(message => message.id === 'line' && message['result'] !== undefined)
    },
  },
}

const told = ({ method = '-', http, outcome, error }: CallRecord) =>
  (http ? [http.verb, http.status, error?.kind] : [method, outcome, error?.kind]).filter(Boolean).join(' ')

/** What opens and ends the sessions of the rows; a refused POST is none of it. */
const isAside = ({ call, http, method, outcome }: CallRecord) =>
  (call !== undefined && method === 'initialize' && call.session?.transport !== undefined) ||
  (http !== undefined && outcome !== 'refused')

describe('Observer records of refused requests', () => {
  for (const [name, { expected, act }] of Object.entries({ ...STREAMABLE, ...SSE, ...STDIO })) {
    it(`exist for: ${name}`, async () => {
      records.splice(0)
      await act()
      const found = () => records.filter(record => !isAside(record) || name.startsWith('stdio')).map(told)
      await eventually('the records', found, list => list.length >= expected.length)
      expect(found().toSorted()).to.deep.equal(expected)
    })
  }

  it('contain caller, protocol version and session, but no client-defined names', async () => {
    const client = await sessionOf('2025-03-26')
    const done = await occupy('who', () => client.send(puppetCall('who')))
    records.splice(0)
    await client.send([request('p'), request('who', 'x'.repeat(500))])
    done()
    await eventually('the records', () => records.filter(({ error }) => error).length > 0)
    const [refused] = records.filter(({ error }) => error)
    const [well] = records.filter(({ call }) => call)
    expect(refused).to.include({
      call: undefined,
      http: undefined,
      outcome: 'refused',
      route: '/mcp',
      method: '_OTHER',
      revision: '2025-03-26',
      transport: 'transport-streamable',
      ip: '127.0.0.1',
      session: well?.session,
      refusedBy: 'mcp-host',
    })
    expect(refused?.client).to.deep.equal(well?.client)
  })
})
