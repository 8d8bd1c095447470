// Metrics of calls, refused requests and clients over HTTP, and the data they must not contain.
import { expect } from 'chai'
import { defineTool, HostError, ToolError } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createMeta, legacy, modern, post } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { type Metered, samplesIn, startMetered } from './scrape.ts'

afterEach(stopHosts)

const SECRET = 'an argument that nobody may read'
const DURATION = 'mcp_server_operation_duration_seconds'

const toolset = [
  defineTool({ name: 'say', input: { type: 'object', properties: { text: {} } }, handler: () => 'said' }),
  defineTool({
    name: 'fail',
    handler() {
      throw new ToolError('no luck')
    },
  }),
  defineTool({
    name: 'ask',
    async handler(_, { sample }) {
      await sample({ messages: [], maxTokens: 1 })
      return 'asked'
    },
  }),
]

const config = {
  toolsets: { all: toolset },
  routes: { '/mcp': { toolsets: 'all' }, '/quiet': { toolsets: 'all', plugins: { metrics: false } } },
} as const

const call = ({ url }: Metered, name: string, args = {}, options = {}) =>
  modern(`${url}/mcp`, 'tools/call', { name, arguments: args }, options)

/** Until the host has told of all that was asked: it does so after it answered. */
const until = (metered: Metered, name: string, labels: Record<string, string>, value: number) =>
  eventually(`${value} of ${name}`, async () => (await metered.one(name, labels)) === value)

describe('metrics plugin', () => {
  it('measures calls by route, method, tool, protocol version and outcome, with buckets from 0.5 ms', async () => {
    const metered = await startMetered(config)
    await call(metered, 'say', { text: SECRET })
    await call(metered, 'say')
    await call(metered, 'fail')
    await call(metered, 'made up by a client')
    await modern(`${metered.url}/mcp`, 'no/such', {})
    const said = { route: '/mcp', mcp_method_name: 'tools/call', gen_ai_tool_name: 'say' }
    await until(metered, `${DURATION}_count`, { mcp_method_name: '_OTHER' }, 1)
    await until(metered, `${DURATION}_count`, said, 2)
    const samples = (await metered.scrape()).filter(({ name }) => name.startsWith(DURATION))
    const counts = samples.filter(({ name }) => name === `${DURATION}_count`).map(({ labels }) => labels)
    const revision = { mcp_protocol_version: '2026-07-28' }
    expect(counts).to.have.deep.members([
      { ...said, ...revision, outcome: 'ok' },
      { ...said, ...revision, gen_ai_tool_name: 'fail', outcome: 'tool_error', error_type: 'tool_error' },
      { ...said, ...revision, gen_ai_tool_name: '_OTHER', outcome: 'error', error_type: 'invalidParams' },
      { route: '/mcp', mcp_method_name: '_OTHER', ...revision, outcome: 'error', error_type: 'methodNotFound' },
    ])
    const buckets = samples.filter(({ labels }) => 'le' in labels && labels['gen_ai_tool_name'] === 'say')
    expect(buckets.map(({ labels }) => labels['le'])).to.deep.equal(
      '0.0005 0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 +Inf'.split(' '),
    )
    expect(buckets.map(({ value }) => value)).to.deep.equal(
      [...buckets.map(({ value }) => value)].sort((a, b) => a - b),
    )
    expect(buckets.at(-1)?.value).to.equal(2)
  })

  it('counts refused requests from any plugin, and HTTP requests that become no call', async () => {
    const refuses = plugin(host =>
      host.onRequest((ctx, next) => {
        if (ctx.get('x-much') !== '') throw new HostError('tooManyRequests', { reason: SECRET })
        return next()
      }),
    )
    const metered = await startMetered({ ...config, plugins: { refuses } })
    await call(metered, 'say', {}, { headers: { 'x-much': '1' } })
    await post(`${metered.url}/mcp`, '{')
    await fetch(`${metered.url}/nowhere`)
    await call(metered, 'made up')
    const refused = 'mcp_host_refusals_total'
    await until(metered, refused, { error_type: 'invalidParams', mcp_method_name: 'tools/call' }, 1)
    await until(metered, refused, { error_type: 'notFound', verb: 'GET', status: '404', refused_by: 'mcp-host' }, 1)
    const http = { route: '/mcp', verb: 'POST' }
    expect(
      await metered.one(refused, { ...http, status: '429', error_type: 'tooManyRequests', refused_by: 'refuses' }),
    ).to.equal(1)
    expect(await metered.one(refused, { ...http, status: '400', error_type: 'parseError' })).to.equal(1)
    expect(await metered.one('mcp_host_http_requests_total', { ...http, status: '429', outcome: 'refused' })).to.equal(
      1,
    )
  })

  it('counts the request bytes of a batch once', async () => {
    const metered = await startMetered(config)
    const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    const session = await openSession(`${metered.url}/mcp`, { revision: '2025-03-26' })
    const before = await metered.one('mcp_host_request_bytes_total', { route: '/mcp' })
    const batch = JSON.stringify([request(1), request(2), request(3)])
    await session.send(JSON.parse(batch))
    await until(metered, `${DURATION}_count`, { mcp_method_name: 'ping' }, 3)
    expect(await metered.one('mcp_host_request_bytes_total', { route: '/mcp' })).to.equal(Number(before) + batch.length)
  })

  it('reports clients by protocol version and transport, and the requests sent to them', async () => {
    const metered = await startMetered(config)
    await call(metered, 'say')
    const meta = {
      [META.clientInfo]: { name: 'new "one"\n', version: '2' },
      [META.clientCapabilities]: { sampling: {} },
    }
    await call(metered, 'ask', {}, { meta: createMeta(meta) })
    await openSession(`${metered.url}/mcp`, { revision: '2025-06-18' })
    const clients = 'mcp_host_client_calls_total'
    await until(metered, clients, { client: 'test-client', version: '0.0.1', protocol_version: '2026-07-28' }, 1)
    await until(metered, clients, { client: 'new "one"?', version: '2' }, 1)
    expect(await metered.one('mcp_host_client_questions_total', { client: 'new "one"?', kind: 'sampling' })).to.equal(1)
    const old = { protocol_version: '2025-06-18', transport: 'transport-streamable' }
    await eventually('the session', async () => Number(await metered.one(clients, old)) > 0)
  })

  it('limits client series to the first names, and excludes clients that only fail', async () => {
    const metered = await startMetered(config, { clients: 1 })
    const as = (name: string, tool: string) =>
      call(metered, tool, {}, { meta: createMeta({ [META.clientInfo]: { name, version: '1' } }) })
    await as('fails', 'made up')
    await as('first', 'say')
    await as('second', 'say')
    await as('first', 'made up')
    await until(metered, 'mcp_host_client_calls_total', { client: 'first', version: '1' }, 2)
    await until(metered, 'mcp_host_client_calls_total', { client: '_OTHER', version: '_OTHER' }, 2)
  })

  it('reports nothing for routes that disable the plugin', async () => {
    const metered = await startMetered(config)
    await modern(`${metered.url}/quiet`, 'tools/call', { name: 'say' })
    await call(metered, 'say')
    await until(metered, `${DURATION}_count`, { gen_ai_tool_name: 'say' }, 1)
    expect((await metered.scrape()).filter(({ labels }) => labels['route'] === '/quiet')).to.deep.equal([])
  })

  it('contain no argument, token, session id or user', async () => {
    const identifies = plugin(
      host =>
        host.authenticate((ctx, next) => {
          ctx.state.user = {
            issuer: 'https://issuer.example',
            subject: 'alice@corp.example',
            clientId: 'cli',
            scopes: [],
            roles: [],
            claims: {},
          }
          return next()
        }),
      { provides: ['user'] },
    )
    const metered = await startMetered({ ...config, plugins: { identifies } })
    const session = await openSession(`${metered.url}/mcp`, { headers: { Authorization: `Bearer ${SECRET}` } })
    await session.request('tools/call', { name: 'say', arguments: { text: SECRET } })
    await fetch(`${metered.url}/${encodeURIComponent(SECRET)}?token=${encodeURIComponent(SECRET)}`)
    await legacy(`${metered.url}/mcp`, SECRET, {})
    await until(metered, `${DURATION}_count`, { gen_ai_tool_name: 'say' }, 1)
    const text = await (await fetch(metered.address)).text()
    for (const told of [SECRET, encodeURIComponent(SECRET), session.id, 'alice', 'issuer.example']) {
      expect(text).not.to.include(told)
    }
    expect(samplesIn(text)).not.to.have.length(0)
  })
})
