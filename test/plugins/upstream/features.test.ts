// Tests apps, skills and tasks of upstream servers, which are hosts and servers of the official SDKs.
import { randomUUID } from 'node:crypto'
import { registerAppResource, registerAppTool } from '@modelcontextprotocol/ext-apps/server'
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { defineApp } from '../../../plugins/apps/define-app.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { removeFolders } from '../../config/folder.ts'
import { serve, serveLegacy, serveModern, serveModernSdk, stopServers } from '../../remote/support/servers.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { serveSkills, skill } from '../skills/serve-skills.ts'
import { taskClient } from '../tasks/support/task-client.ts'
import { createBench, startTasks } from '../tasks/support/task-tools.ts'

after(removeFolders)
afterEach(async () => {
  await stopHosts()
  await stopServers()
})

type Server = UpstreamOptions['servers'][string]

const gatewayOf = (server: Server, plugins: TestConfig['plugins'] = {}): Promise<StartedHost> =>
  startHost({
    toolsets: {},
    routes: { '/': { toolsets: 'far' } },
    plugins: { 'transport-streamable': {}, ...plugins, upstream: { servers: { far: server } } },
  })

const resultOf = async (
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  capabilities: object = {},
) => {
  const { message } = await modern(url, method, params, { meta: { [META.clientCapabilities]: capabilities } })
  return message.result ?? { error: message.error }
}

/** The extensions that a route announces to clients of 2026-07-28 and to older ones. */
async function extensionsAt(url: string): Promise<string[]> {
  const { capabilities } = await resultOf(url, 'server/discover')
  const session = await openSession(url)
  const older = session.initialized.message.result.capabilities
  expect(older.extensions).to.deep.equal(capabilities.extensions)
  expect(older).not.to.have.property('tasks')
  return Object.keys(capabilities.extensions ?? {})
}

/** Serves a server of SDK 1.32, with sessions. */
async function serveOlder(make: () => McpServer): Promise<string> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const { origin } = await serve(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? sessions.get(id) : undefined
    if (known) return known.handleRequest(request, response)
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: session => void sessions.set(session, transport),
    })
    // Its types do not know `exactOptionalPropertyTypes`.
    await make().connect(transport as Parameters<McpServer['connect']>[0])
    await transport.handleRequest(request, response)
  })
  return origin
}

const UI = 'io.modelcontextprotocol/ui'
const PAGE = '<!doctype html><title>A chart</title>'
const MIME_TYPE = 'text/html;profile=mcp-app'
const WITH_UI = { extensions: { [UI]: { mimeTypes: [MIME_TYPE] } } }

for (const revision of ['2026-07-28', '2025-11-25'] as const) {
  describe(`Apps of a server (${revision})`, () => {
    const csp = { connectDomains: ['https://api.acme.example'] }
    const draw = defineTool({
      name: 'draw',
      app: defineApp({ name: 'chart', html: PAGE, csp }),
      handler: () => ({ points: [1, 2] }),
    })

    it('keep the link from the tool to its page, under a prefix', async () => {
      const origin = await startHost({
        toolsets: { all: [draw] },
        routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {}, apps: {} },
      })
      const { url } = await gatewayOf({ url: origin.url, revision })
      const { tools } = await resultOf(url, 'tools/list', {}, WITH_UI)
      const [{ name, _meta }] = tools
      expect(name).to.equal('far_draw')
      const { resourceUri } = _meta.ui
      expect(_meta['ui/resourceUri']).to.equal(resourceUri)
      const { contents } = await resultOf(url, 'resources/read', { uri: resourceUri }, WITH_UI)
      expect(contents).to.deep.equal([{ uri: resourceUri, mimeType: MIME_TYPE, text: PAGE, _meta: { ui: { csp } } }])
      const { resources } = await resultOf(url, 'resources/list')
      expect(resources[0]).to.deep.include({ uri: resourceUri, mimeType: MIME_TYPE, _meta: { ui: { csp } } })
      const result = await resultOf(url, 'tools/call', { name: 'far_draw' }, WITH_UI)
      expect(result.structuredContent).to.deep.equal({ points: [1, 2] })
    })
  })
}

describe('Apps of a server of SDK 1.32', () => {
  it('are served if the server offers them only to clients with support for pages', async () => {
    const uri = 'ui://weather/page.html'
    const seen: boolean[] = []
    const url = await serveOlder(() => {
      const server = new McpServer(
        { name: 'weather', version: '1.0.0' },
        { capabilities: { tools: { listChanged: true } } },
      )
      const hasPages = () => {
        const { extensions = {} } = (server.server.getClientCapabilities() ?? {}) as { extensions?: object }
        return UI in extensions
      }
      const read = async () => {
        seen.push(hasPages())
        return { content: [{ type: 'text' as const, text: 'sunny' }] }
      }
      server.server.oninitialized = () => {
        if (!hasPages()) return void server.registerTool('weather', {}, read)
        registerAppTool(server as never, 'weather', { _meta: { ui: { resourceUri: uri } } }, read)
        registerAppResource(server as never, 'page', uri, {}, async () => ({
          contents: [{ uri, mimeType: MIME_TYPE, text: PAGE }],
        }))
      }
      server.registerResource('other', 'test://other', {}, async () => ({ contents: [] }))
      return server
    })
    const gateway = await gatewayOf({ url })
    const { tools } = await resultOf(gateway.url, 'tools/list', {}, WITH_UI)
    expect(tools[0]._meta.ui.resourceUri).to.equal(uri)
    for (const capabilities of [WITH_UI, {}]) {
      const session = await openSession(`${gateway.url}/`, { capabilities })
      const { message } = await session.request('tools/call', { name: 'far_weather', arguments: {} })
      expect(message.result.content[0].text).to.equal('sunny')
    }
    expect(seen, 'sessions have the support of their client').to.deep.equal([true, false])
    const session = await openSession(`${gateway.url}/`, { capabilities: WITH_UI })
    const { message } = await session.request('resources/read', { uri })
    expect(message.result.contents[0].text).to.equal(PAGE)
  })
})

const SKILLS = 'io.modelcontextprotocol/skills'

describe('Skills of a server', () => {
  it('are resources: the lists of skills are not passed on', async () => {
    const origin = await serveSkills({ 'pdf/SKILL.md': skill('pdf'), 'pdf/more.md': 'More.' })
    const [{ uri, resources }] = (await origin.result('skills/list')).skills
    const { url } = await gatewayOf({ url: origin.url })
    expect(await extensionsAt(url)).not.to.include(SKILLS)
    for (const method of ['skills/list', 'skills/get', 'resources/directory/read'])
      expect((await resultOf(url, method, { uri })).error.code, method).to.equal(-32_601)
    const listed = (await resultOf(url, 'resources/list')).resources
    for (const one of resources) {
      const { _meta } = listed.find((item: { uri: string }) => item.uri === one.uri)
      expect(_meta).to.deep.equal({ 'io.modelcontextprotocol.skills/digest': one.digest })
    }
    expect((await resultOf(url, 'resources/read', { uri })).contents[0].text).to.equal(skill('pdf'))
  })
})

describe('Tasks of a server', () => {
  it('of 2026-07-28 are not passed on: calls run without a task, or are refused', async () => {
    const bench = createBench()
    bench.open('a')
    const origin = await startTasks(bench)
    const { url, log } = await gatewayOf({ url: origin.url, prefix: '' })
    expect(await extensionsAt(url)).to.deep.equal([])
    const client = taskClient(url)
    const { message } = await client.call('slow', { key: 'a' })
    expect(message.result).to.include({ resultType: 'complete' })
    expect(message.result.content[0].text).to.equal('done a')
    const required = await client.call('required', { key: 'a' })
    expect(required.message.result.isError).to.equal(true)
    expect(required.message.result.content[0].text).to.match(
      /"far" requires the extension io\.modelcontextprotocol\/tasks/,
    )
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
    const { message: get } = await client.about('tasks/get', 'x')
    expect(get.error.code).to.equal(-32_601)
  })

  it('that the server starts without a request are an error', async () => {
    const url = await serveModern(
      ({ id, method, json }) => {
        const result =
          method === 'tools/list'
            ? { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] }
            : { resultType: 'task', taskId: 'abc', status: 'working', ttlMs: null, createdAt: '', lastUpdatedAt: '' }
        json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } })
      },
      { tools: {} },
    )
    const gateway = await gatewayOf({ url })
    const result = await resultOf(gateway.url, 'tools/call', { name: 'far_slow' })
    expect(result).to.include({ isError: true })
    expect(result).not.to.have.property('structuredContent')
    expect(result.content[0].text).to.match(/unsupported type "task"/)
  })

  it('of 2025-11-25 are not passed on', async () => {
    const url = await serveOlder(() => {
      const taskStore = new InMemoryTaskStore()
      const capabilities = { tasks: { requests: { tools: { call: {} } } } }
      const server = new McpServer({ name: 'older', version: '1.0.0' }, { capabilities, taskStore })
      for (const taskSupport of ['required', 'optional'] as const) {
        server.experimental.tasks.registerToolTask(
          taskSupport,
          { execution: { taskSupport } },
          {
            async createTask({ taskStore: store }) {
              const task = await store.createTask({ ttl: 60_000, pollInterval: 10 })
              await store.storeTaskResult(task.taskId, 'completed', { content: [{ type: 'text', text: 'done' }] })
              return { task }
            },
            getTask: ({ taskId, taskStore: store }) => store.getTask(taskId),
            getTaskResult: async ({ taskId, taskStore: store }) =>
              (await store.getTaskResult(taskId)) as { content: [] },
          },
        )
      }
      return server
    })
    const gateway = await gatewayOf({ url })
    expect(await extensionsAt(gateway.url)).to.deep.equal([])
    const { tools } = await resultOf(gateway.url, 'tools/list')
    expect(tools.map(({ name }: { name: string }) => name)).to.deep.equal(['far_optional'])
    const [line] = gateway.log.filter(({ code }) => code === 'MH2945')
    expect(line?.reasons).to.have.all.keys('tool required')
    const session = await openSession(`${gateway.url}/`)
    const { message } = await session.request('tools/call', { name: 'far_optional', arguments: {} })
    expect(message.result.content[0].text).to.equal('done')
  })

  for (const kind of ['legacy', 'modern'] as const) {
    it(`are created by this host if the options say so, with requests of a ${kind} server to the user`, async () => {
      const { url } = kind === 'legacy' ? await serveLegacy() : await serveModernSdk()
      const overrides = { add: { task: 'required' }, ask: { task: 'optional' } }
      const gateway = await gatewayOf({ url, prefix: '', overrides }, { tasks: { pollInterval: '20ms' } })
      const client = taskClient(gateway.url)
      const added = await client.until(await client.begin('add', { a: 1, b: 2 }))
      expect(added.result.content[0].text).to.equal('3')
      const id = await client.begin('ask')
      const { inputRequests } = await client.until(id, 'input_required')
      const answer = { action: 'accept', content: { name: 'Ann' } }
      await client.update(id, Object.fromEntries(Object.keys(inputRequests).map(key => [key, answer])))
      expect((await client.until(id)).result.content[0].text).to.contain('Ann')
    })
  }
})
