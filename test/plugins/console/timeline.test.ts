// The stages of a request, which the console measures while a viewer looks.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { PATHS, type Stage } from '../../../plugins/console/api.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { legacy, modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { startNeighbours, type TestNeighbour } from '../../support/worker-processes.ts'
import { startApi } from '../openapi/api.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { type Operator, startConsole } from './console-client.ts'

interface Row {
  readonly requestId?: string
  readonly outcome: string
  readonly ms: number
  readonly stages?: readonly Stage[]
  readonly error?: { readonly status: number }
}

const REQUEST = ['guard', 'authenticate', 'authorize', 'receive', 'check']
const CALL = [...REQUEST, 'handler', 'respond']

const namesOf = ({ stages }: Row) => stages?.map(({ name }) => name)
const stageOf = ({ stages }: Row, name: string) => stages?.find(stage => stage.name === name)

const rowsOf = async (operator: Operator): Promise<readonly Row[]> => (await operator.get(PATHS.calls)).body.calls

let requests = 0
/** Sends a request with its own id, and returns its record. */
async function recordOf(operator: Operator, send: (headers: Record<string, string>) => Promise<unknown>): Promise<Row> {
  const id = `timed-${++requests}`
  await send({ 'X-Request-Id': id })
  return eventually(
    `the record of ${id}`,
    async () => (await rowsOf(operator)).find(({ requestId }) => requestId === id) as Row,
  )
}

const openViewer = ({ origin, headers }: Operator) => exchange(`${origin}${PATHS.events}`, { headers })

describe('The stages of a request', () => {
  after(removeFolders)
  afterEach(stopHosts)

  const say = defineTool({ name: 'say', handler: () => 'said' })
  const scarce = defineTool({ name: 'scarce', handler: () => 'said' })
  const wipe = defineTool({ name: 'wipe', access: 'admins', handler: () => 'gone' })
  const input = { type: 'object', properties: { count: { type: 'number' } } } as const
  const counts = defineTool({ name: 'count', input, handler: () => 'counted' })

  const open = () =>
    startConsole({
      toolsets: { all: [say, scarce, wipe, counts] },
      routes: {
        '/open': { toolsets: 'all' },
        '/guarded': { toolsets: 'all', authorize: { role: 'admin' } },
        '/stateless': { toolsets: 'all', stateless: true },
      },
      plugins: {
        'tool-policy': { policies: { admins: { role: 'admin' } } },
        'rate-limit': { tools: { scarce: '1/1h' } },
        'bearer-json': bearerJson(),
      },
    })

  it('are in the order of the request, for calls with and without a session, in every protocol version', async () => {
    const operator = await open()
    const viewer = await openViewer(operator)
    const { url } = operator
    const params = { name: 'say', arguments: {} }
    const session = await openSession(`${url}/open`)
    const rows = [
      await recordOf(operator, headers => modern(`${url}/open`, 'tools/call', params, { headers })),
      await recordOf(operator, headers => legacy(`${url}/stateless`, 'tools/call', params, { headers })),
      await recordOf(operator, headers => session.request('tools/call', params, { headers })),
      await recordOf(operator, headers => session.request('tools/list', {}, { headers })),
    ]
    for (const row of rows) {
      expect(namesOf(row)).to.deep.equal(CALL)
      const stages = row.stages ?? []
      expect(stages[0]?.start).to.equal(0)
      for (const [index, { start, ms }] of stages.entries()) {
        expect(ms).to.be.at.least(0)
        const next = stages[index + 1]
        if (next) expect(start + ms, `the start of ${next.name}`).to.be.closeTo(next.start, 0.001)
      }
      // Without the time before the call and after the result, it is part of the duration.
      expect(stageOf(row, 'handler')?.ms).to.be.at.most(row.ms + 0.01)
    }
    viewer.drop()
  })

  it('of a batch are those of each message', async () => {
    const operator = await open()
    const viewer = await openViewer(operator)
    const session = await openSession(`${operator.url}/open`, { revision: '2025-03-26' })
    const call = (id: number, name: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
    await session.send([call(1, 'say'), call(2, 'wipe')], { 'X-Request-Id': 'batch' })
    const rows = await eventually(
      'both records',
      async () => (await rowsOf(operator)).filter(({ requestId }) => requestId === 'batch'),
      found => found.length === 2,
    )
    expect(rows.map(namesOf)).to.have.deep.members([CALL, REQUEST])
    viewer.drop()
  })

  it('of a refused request end with the stage that refused it', async () => {
    const operator = await open()
    const viewer = await openViewer(operator)
    const { url } = operator
    const call = (path: string, name: string, more: Record<string, string> = {}, args: object = {}) =>
      recordOf(operator, headers =>
        modern(`${url}${path}`, 'tools/call', { name, arguments: args }, { headers: { ...headers, ...more } }),
      )
    const upTo = (last: string) => REQUEST.slice(0, REQUEST.indexOf(last) + 1)
    const broken = (headers: Record<string, string>) =>
      fetch(`${url}/open`, { method: 'POST', body: '{', headers: { ...headers, 'Content-Type': 'application/json' } })
    await call('/open', 'scarce')
    const refused: ReadonlyArray<readonly [number, string, Row]> = [
      [404, 'guard', await call('/none', 'say')],
      [401, 'authenticate', await call('/guarded', 'say', { Authorization: 'Bearer bad' })],
      [401, 'authorize', await call('/guarded', 'say')],
      [403, 'authorize', await call('/guarded', 'say', as({ roles: ['user'] }))],
      [400, 'receive', await recordOf(operator, broken)],
      [200, 'check', await call('/open', 'none')],
      [403, 'check', await call('/open', 'wipe', as({ roles: ['user'] }))],
      [429, 'check', await call('/open', 'scarce')],
    ]
    for (const [status, last, row] of refused) {
      const found = [row.error?.status, namesOf(row)]
      expect(found, `${status} ${last}`).to.deep.equal([status, upTo(last)])
    }
    const invalid = await call('/open', 'count', {}, { count: 'many' })
    expect([invalid.outcome, namesOf(invalid)]).to.deep.equal(['tool_error', [...REQUEST, 'respond']])
    viewer.drop()
  })

  it('cover the time in the queue and in the handler', async () => {
    const gates = [createGate(), createGate()]
    const times: Array<{ readonly began: number; ended: number }> = []
    const waits = defineTool({
      name: 'waits',
      concurrency: 1,
      async handler() {
        const time = { began: performance.now(), ended: 0 }
        const gate = gates[times.push(time) - 1]
        await gate?.opened
        time.ended = performance.now()
      },
    })
    const entered: number[] = []
    const enters = definePlugin<Record<never, never>>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup(host) {
        host.onCall((_call, next) => {
          const result = next()
          entered.push(performance.now())
          return result
        })
      },
    })
    const operator = await startConsole({
      toolsets: { all: [waits] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { enters: enters() },
    })
    const viewer = await openViewer(operator)
    const call = () => recordOf(operator, headers => modern(operator.url, 'tools/call', { name: 'waits' }, { headers }))
    const first = call()
    await eventually('the first handler', () => times.length === 1)
    const second = call()
    await eventually('the queued call', () => entered.length === 2)
    gates[0]?.open()
    gates[1]?.open()
    const rows = [await first, await second]
    expect(rows.map(namesOf)).to.deep.equal([CALL, [...REQUEST, 'queue', 'handler', 'respond']])
    for (const [index, { began, ended }] of times.entries()) {
      expect(stageOf(rows[index] as Row, 'handler')?.ms).to.be.at.least(ended - began - 0.02)
    }
    const queued = (times[1]?.began ?? 0) - (entered[1] ?? 0)
    expect(stageOf(rows[1] as Row, 'queue')?.ms).to.be.at.least(queued - 0.02)
    viewer.drop()
  })

  it('are those of tools of upstream servers and OpenAPI documents, too', async () => {
    await using api = await startApi()
    const responses = { 200: { description: 'ok', content: { 'application/json': { schema: {} } } } }
    const paths = { '/orders': { get: { operationId: 'listOrders', responses } } }
    const info = { title: 'Shop', version: '1' }
    const folder = await makeFolder({ 'shop.json': JSON.stringify({ openapi: '3.1.0', info, paths }) })
    const far = await startHost({ toolsets: { all: [say] }, routes: { '/': { toolsets: 'all' } } })
    const operator = await startConsole(
      {
        toolsets: {},
        routes: { '/': { toolsets: ['far', 'shop'] } },
        plugins: {
          upstream: { refresh: 'off', servers: { far: { url: `${far.url}/`, prefix: '' } } },
          openapi: { documents: { shop: { document: './shop.json', baseUrl: api.url, allowHosts: [api.host] } } },
        },
      },
      {},
      { directory: folder },
    )
    const viewer = await openViewer(operator)
    for (const name of ['say', 'listOrders']) {
      const row = await recordOf(operator, headers => modern(operator.url, 'tools/call', { name }, { headers }))
      expect([row.outcome, namesOf(row)], name).to.deep.equal(['ok', CALL])
    }
    viewer.drop()
  })

  it('are measured only while a viewer looks, and for a limited number of requests per second', async () => {
    const operator = await startConsole(
      { toolsets: { all: [say] }, routes: { '/': { toolsets: 'all' } } },
      {},
      {
        clock: createManualClock(),
      },
    )
    const call = () => recordOf(operator, headers => modern(operator.url, 'tools/call', { name: 'say' }, { headers }))
    expect(namesOf(await call())).to.equal(undefined)
    const viewer = await openViewer(operator)
    const rows: Row[] = []
    for (let index = 0; index < 55; index++) rows.push(await call())
    expect(rows.map(row => row.stages !== undefined)).to.deep.equal(rows.map((_, index) => index < 50))
    viewer.drop()
  })

  it('are no longer measured after the last viewer has left', async () => {
    const operator = await open()
    const call = () =>
      recordOf(operator, headers => modern(`${operator.url}/open`, 'tools/call', { name: 'say' }, { headers }))
    const viewer = await openViewer(operator)
    expect(namesOf(await call())).to.deep.equal(CALL)
    viewer.drop()
    await eventually('a record without stages', async () => (await call()).stages === undefined)
  })

  it('come with the records of other nodes', async () => {
    const [one, two] = startNeighbours(2) as [TestNeighbour, TestNeighbour]
    const config = { toolsets: { all: [say] }, routes: { '/': { toolsets: 'all' } }, secrets: ['x'.repeat(40)] }
    const here = await startConsole(config, {}, { neighbours: one })
    const there = await startConsole(config, {}, { neighbours: two })
    const viewer = await openViewer(here)
    const call = () => recordOf(here, headers => modern(there.url, 'tools/call', { name: 'say' }, { headers }))
    const row = await eventually('a record of the other node with stages', call, ({ stages }) => stages !== undefined)
    expect(namesOf(row)).to.deep.equal(CALL)
    viewer.drop()
  })
})
