// Tools of an OpenAPI document with policies, rate limits, tasks, search, audit and patterns that take exponential time.
import { join } from 'node:path'
import { expect } from 'chai'
import { examineConfig } from '../../../core/create-host.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { createTestLog, startHost, stopHosts } from '../../support/start-host.ts'
import { linesIn } from '../audit/audited-host.ts'
import { taskClient } from '../tasks/support/task-client.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { type Api, startApi } from './api.ts'
import { count, printCounts } from './attack-counts.ts'

after(printCounts)

after(removeFolders)

const ok = { 200: { description: 'ok', content: { 'application/json': { schema: {} } } } }
const operation = (operationId: string, more: object = {}) => ({ operationId, responses: ok, ...more })
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  paths: {
    '/orders': { get: operation('listOrders', { description: 'Lists the orders of the shop.' }) },
    '/orders/{id}': {
      get: operation('getOrder', {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string', pattern: '^(a+)+$' } },
          { name: 'Traceparent', in: 'header', schema: { type: 'string' } },
        ],
      }),
      delete: operation('deleteOrder', {
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      }),
    },
    '/secret': { get: operation('getSecret', { security: [{ missing: [] }] }) },
  },
  components: { securitySchemes: { missing: { type: 'http', scheme: 'bearer' } } },
}

describe('Tools of an OpenAPI document', () => {
  let api: Api
  beforeEach(async () => {
    api = await startApi()
  })
  afterEach(async () => {
    await stopHosts()
    await api[Symbol.asyncDispose]()
  })

  async function serve({
    source = {},
    plugins = {},
    route = {},
    start = startHost,
  }: {
    source?: object
    plugins?: object
    route?: object
    start?: typeof startHost
  }) {
    const folder = await makeFolder({ 'shop.json': JSON.stringify(DOCUMENT) })
    const document = { document: './shop.json', baseUrl: api.url, allowHosts: [api.host], ...source }
    const { url, host } = await start(
      {
        routes: { '/': { toolsets: ['shop'], ...route } },
        plugins: {
          'transport-streamable': {},
          bearer: bearerJson(),
          openapi: { documents: { shop: document } },
          ...plugins,
        },
      } as never,
      folder,
    )
    const call = (name: string, args: object = {}, scopes?: readonly string[], more: object = {}) =>
      modern(
        url,
        'tools/call',
        { name, arguments: args, ...more },
        { headers: scopes ? as({ subject: 'ann', scopes }) : {} },
      )
    const names = async (scopes: readonly string[]) => {
      const { message } = await modern(url, 'tools/list', {}, { headers: as({ subject: 'ann', scopes }) })
      return message.result.tools.map(({ name }: { readonly name: string }) => name).sort()
    }
    return { url, host, folder, call, names }
  }

  it('are examined by doctor: the document, and whether its API responds', async () => {
    const folder = await makeFolder({ 'shop.json': JSON.stringify(DOCUMENT), 'broken.json': '{"openapi": "9"}' })
    const of = (document: string, baseUrl: string) => ({ document, baseUrl, allowHosts: [new URL(baseUrl).host] })
    const documents = {
      shop: of('./shop.json', api.url),
      down: { ...of('./shop.json', 'http://127.0.0.1:1'), prefix: 'down_' },
    }
    const config = {
      server: { name: 'a', version: '1.0.0' },
      routes: { '/': { toolsets: ['shop', 'down'] } },
      plugins: { 'transport-streamable': {}, openapi: { documents } },
    }
    const loaded = { file: join(folder, 'config'), config, locate: () => undefined, isInline: true as const }
    const findings = await examineConfig(loaded, createTestLog())
    expect(findings.map(({ check, level }) => `${check}: ${level}`)).to.deep.equal([
      'openapi: document "shop": ok',
      `openapi: API ${api.url}: ok`,
      'openapi: document "down": ok',
      'openapi: API http://127.0.0.1:1: wrong',
    ])
    expect(findings[0]?.text).to.equal('OpenAPI 3.1, 3 tools of 4 operations')
    expect(api.requests.map(({ method }) => method)).to.deep.equal(['HEAD'])
    const missing = { broken: of('https://127.0.0.1:1/api.json', api.url) }
    const remote = {
      ...config,
      routes: { '/': { toolsets: ['broken'] } },
      plugins: { openapi: { documents: missing } },
    }
    const [finding] = await examineConfig({ ...loaded, config: remote }, createTestLog())
    expect(finding).to.include({ check: 'openapi: document "broken"', level: 'wrong' })
  })

  it('send the trace context of the call', async () => {
    // The plugin loads its parts with `import()`. Under tsx, these are other instances than those of this file.
    const hosts = await import('../../support/start-host.ts')
    const { plugin } = await import('../../fixtures/plugins.ts')
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const tracer = plugin(
      host => host.provide('tracer', { run: (start, answer) => answer(start), headersFor: () => ({ traceparent }) }),
      { provides: ['tracer'] },
    )
    try {
      // A header whose value is the name of another header.
      const source = { forwardHeaders: ['x-note'] }
      const { url } = await serve({ plugins: { tracer }, start: hosts.startHost, source })
      const about = { name: 'listOrders', arguments: {} }
      await modern(url, 'tools/call', about, { headers: { 'x-note': 'traceparent' } })
      expect(api.requests[0]?.headers['x-note']).to.equal('traceparent')
      expect(api.requests[0]?.headers['traceparent']).to.equal(traceparent)
      // A parameter of the operation takes precedence, in any case.
      await modern(url, 'tools/call', { name: 'getOrder', arguments: { id: 'aa', Traceparent: 'own' } })
      expect(api.requests[1]?.headers['traceparent']).to.equal('own')
    } finally {
      await hosts.stopHosts()
    }
  })

  it('need at least one overlay in a list of overlays', async () => {
    const error = (await rejectionOf(serve({ source: { overlay: [] } }))) as Error
    expect(error.message).to.contain('overlay')
  })

  it('leave out operations without a credential', async () => {
    const { names, call } = await serve({})
    expect(await names([])).to.deep.equal(['getOrder', 'listOrders'])
    const { message } = await call('listOrders')
    expect(message.result).to.deep.include({ structuredContent: { ok: true } })
  })

  it('are hidden and refused by the rules of tool-policy and by `access`', async () => {
    const { names, call } = await serve({
      source: { methods: ['get', 'delete'], overrides: { listOrders: { access: 'orders.list' } } },
      plugins: {
        'tool-policy': {
          policies: { 'orders.write': { scope: 'orders.write' }, 'orders.list': { scope: 'orders.list' } },
          rules: { 'delete*': 'orders.write' },
        },
      },
    })
    expect(await names([])).to.deep.equal(['getOrder'])
    expect(await names(['orders.write', 'orders.list'])).to.deep.equal(['deleteOrder', 'getOrder', 'listOrders'])
    const { message, status } = await call('deleteOrder', { id: '7' }, [])
    expect(message.error ?? status).to.not.equal(undefined)
    expect(message.result).to.equal(undefined)
    expect(api.requests).to.deep.equal([])
    const allowed = await call('deleteOrder', { id: '7' }, ['orders.write'])
    expect(allowed.message.result.isError).to.equal(undefined)
    expect(api.requests.map(({ method, url }) => `${method} ${url}`)).to.deep.equal(['DELETE /orders/7'])
  })

  for (const plugins of [{}, { 'tool-policy': { policies: { 'orders.list': { scope: 'orders.list' } } } }]) {
    const how = 'tool-policy' in plugins ? 'with' : 'without'
    it(`are closed by an \`access\` that names no policy, ${how} tool-policy`, async () => {
      const { names, call } = await serve({ source: { access: 'ordres.list' }, plugins })
      expect(await names(['orders.list'])).to.deep.equal([])
      const { message } = await call('listOrders', {}, ['orders.list'])
      expect(message.result).to.equal(undefined)
      expect((await call('listOrders')).message.result).to.equal(undefined)
      expect(api.requests).to.deep.equal([])
    })
  }

  it('are limited by rate-limit', async () => {
    const { call } = await serve({ plugins: { 'rate-limit': { tools: { 'list*': '2/1h' } } } })
    const results = []
    for (let count = 0; count < 3; count++) results.push(await call('listOrders', {}, []))
    expect(results.map(({ message }) => message.error === undefined)).to.deep.equal([true, true, false])
    expect(api.requests).to.have.length(2)
  })

  it('are found and called by search', async () => {
    const { url, names } = await serve({ plugins: { 'tool-search': {} }, route: { search: { pinned: [] } } })
    expect(await names([])).to.include.members(['find_tools', 'call_tool'])
    const found = await modern(url, 'tools/call', { name: 'find_tools', arguments: { query: 'list the orders' } })
    expect(JSON.stringify(found.message.result)).to.include('listOrders')
    const called = await modern(url, 'tools/call', {
      name: 'call_tool',
      arguments: { name: 'listOrders', arguments: {} },
    })
    expect(called.message.result.structuredContent).to.deep.equal({ ok: true })
  })

  it('run as tasks', async () => {
    const { url } = await serve({
      source: { overrides: { listOrders: { task: 'optional' } } },
      plugins: { tasks: {} },
    })
    const client = taskClient(url)
    const { message } = await client.call('listOrders', {})
    const { taskId } = message.result
    expect(taskId).to.be.a('string')
    const ended = await eventually(
      'the task has ended',
      () => client.get(taskId),
      task => task['status'] === 'completed',
    )
    expect(ended['result'].structuredContent).to.deep.equal({ ok: true })
  })

  it('are recorded by audit, with their outcome and operation, and without credentials', async () => {
    // The same instances as those of the plugin.
    const hosts = await import('../../support/start-host.ts')
    api.answer = (request, res) => res.writeHead(500).end(JSON.stringify(request.headers))
    const { call, host, folder } = await serve({
      source: { headers: { 'x-key': 'the-real-key-4711' } },
      plugins: { audit: { file: 'audit.jsonl' } },
      start: hosts.startHost,
    })
    const { message } = await call('listOrders', {}, [])
    expect(JSON.stringify(message)).to.include('HTTP 500').and.not.include('the-real-key')
    await host.close({ grace: 0 })
    const lines = await linesIn(join(folder, 'audit.jsonl'))
    const [line] = lines.filter(({ name }) => name === 'listOrders')
    const reason = 'HTTP 500 Internal Server Error'
    expect(line).to.include({ outcome: 'tool_error', reason, upstream: 'shop', upstreamTool: 'listOrders' })
    expect(line?.['upstreamMs']).to.be.a('number')
    expect(JSON.stringify(lines)).not.to.include('the-real-key')
  })

  it('answer at once for a pattern that takes exponential time', async () => {
    count('exploding regular expressions')
    const { call } = await serve({})
    const { message } = await call('getOrder', { id: `${'a'.repeat(5_000)}!` })
    expect(message.error).to.equal(undefined)
    expect(api.requests).to.have.length(1)
  })

  it('pass no credential of the caller to the API', async () => {
    const { call } = await serve({ source: { forwardHeaders: ['x-request-id'] } })
    await call('listOrders', {}, ['a'])
    const { headers } = api.requests[0] ?? {}
    expect(headers).not.to.have.property('authorization')
    expect(headers).not.to.have.property('cookie')
  })
})
