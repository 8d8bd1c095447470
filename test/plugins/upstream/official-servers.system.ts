// Tests official servers behind the host: a client of either SDK gets what a client that is connected to the server gets.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { serveLegacy, serveModernSdk, stopServers } from '../../remote/support/servers.ts'
import { bundledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { pending } from '../../support/needs-program.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const ROOT = join(import.meta.dirname, '../../..')
const PACKAGES = join(ROOT, 'node_modules/@modelcontextprotocol')
const FASTMCP = join(import.meta.dirname, 'support/fastmcp-server.mjs')
const SDK_SERVER = join(ROOT, 'test/remote/support/stdio-server.mjs')
const HAS_FASTMCP = existsSync(join(ROOT, 'bench/node_modules/fastmcp'))
const FOLDER = mkdtempSync(join(tmpdir(), 'official-'))
const CONFIG = join(FOLDER, 'mcp.config.json')
const GRAPH = { MEMORY_FILE_PATH: join(FOLDER, 'graph.jsonl') }
/** The compile cache is the only variable that the servers get from this process. Each server starts several times. */
const { NODE_COMPILE_CACHE } = process.env
const CACHE: Record<string, string> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }
const packageFile = (name: string) => join(PACKAGES, name, 'dist/index.js')

/** Requests of a client, in order. Their results must be the same through the host. */
interface Plan {
  readonly calls: readonly (readonly [name: string, args?: object])[]
  readonly reads?: readonly string[]
  readonly prompts?: readonly (readonly [name: string, args: Record<string, string>])[]
  readonly completes?: readonly (readonly [ref: object, argument: { name: string; value: string }])[]
}

const everything: Plan = {
  calls: [
    ['echo', { message: 'Hello' }],
    ['get-sum', { a: 2, b: 3 }],
    ['get-sum', { a: 'two' }],
    ['get-tiny-image'],
    ['get-annotated-message', { messageType: 'error', includeImage: true }],
    ['get-resource-links', { count: 3 }],
    ['get-structured-content', { location: 'New York' }],
    ['trigger-long-running-operation', { duration: 0.1, steps: 2 }],
    ['trigger-elicitation-request'],
    ['trigger-url-elicitation', { url: 'https://consent.example/42', message: 'Please consent.', elicitationId: '42' }],
    ['trigger-sampling-request', { prompt: 'Say hello.', maxTokens: 10 }],
  ],
  reads: ['demo://resource/static/document/features.md'],
  prompts: [
    ['simple-prompt', {}],
    ['args-prompt', { city: 'Linz', state: 'Upper Austria' }],
  ],
  completes: [
    [
      { type: 'ref/prompt', name: 'completable-prompt' },
      { name: 'department', value: 'E' },
    ],
    [
      { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' },
      { name: 'resourceId', value: '1' },
    ],
  ],
}

const filesystem: Plan = {
  calls: [
    ['read_text_file', { path: join(FOLDER, 'a.txt') }],
    ['list_directory', { path: FOLDER }],
    ['list_allowed_directories'],
    ['read_text_file', { path: '/etc/passwd' }],
    ['write_file', { path: join(FOLDER, 'b.txt'), content: 'more' }],
  ],
}

const memory: Plan = {
  calls: [
    ['read_graph'],
    ['create_entities', { entities: [{ name: 'Ben', entityType: 'person', observations: ['tall'] }] }],
    ['search_nodes', { query: 'tall' }],
    ['delete_entities', { entityNames: ['Ben'] }],
    ['open_nodes', { names: ['Ada', 'Ben'] }],
  ],
}

const createPlan = (...more: Plan['calls']): Plan => ({
  calls: [['add', { a: 1, b: 2 }], ['add', { a: 'x' }], ...more],
})
const fast: Plan = {
  ...createPlan(['steps']),
  reads: ['fast://page'],
  prompts: [['greet', { who: 'Ada' }]],
  completes: [
    [
      { type: 'ref/prompt', name: 'greet' },
      { name: 'who', value: 'A' },
    ],
  ],
}

type Server = UpstreamOptions['servers'][string]

const processes: ChildProcess[] = []

/** Starts a server at a port, and resolves with its URL once it answers. */
async function atPort(args: readonly string[], path: string): Promise<Server> {
  const port = await freePort()
  processes.push(spawn(process.execPath, args, { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' }))
  const url = `http://127.0.0.1:${port}${path}`
  await eventually('the server listens', () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    ),
  )
  return { url }
}

const program = (file: string, args: readonly string[] = [], more: Partial<Server> = {}) =>
  async function start(): Promise<Server> {
    return { command: [process.execPath, file, ...args], ...more, env: { ...CACHE, ...more.env } }
  }
/** One process for all clients. The program of `everything-stdio` starts for each client. */
const shared = { sessions: 'shared' } as const

const SERVERS: Record<string, readonly [start: () => Promise<Server>, plan: Plan]> = {
  'everything-http': [() => atPort([packageFile('server-everything'), 'streamableHttp'], '/mcp'), everything],
  'everything-stdio': [program(packageFile('server-everything')), everything],
  filesystem: [program(packageFile('server-filesystem'), [FOLDER], shared), filesystem],
  memory: [program(packageFile('server-memory'), [], { ...shared, env: GRAPH }), memory],
  'mcp-host-stdio': [program(bundledFile('cli/bin.ts'), ['stdio', '--config', CONFIG], shared), memory],
  'sdk-1-stdio': [program(SDK_SERVER, ['legacy'], shared), createPlan()],
  'sdk-1-http': [async () => ({ url: (await serveLegacy()).url }), createPlan(['steps'])],
  'sdk-1-sse': [async () => ({ url: (await serveLegacy()).sseUrl }), createPlan(['steps'])],
  'sdk-2-stdio': [program(SDK_SERVER, ['modern'], shared), createPlan()],
  'sdk-2-http': [async () => ({ url: (await serveModernSdk()).url }), createPlan(['steps'])],
  ...(HAS_FASTMCP && {
    'fastmcp-http': [() => atPort([FASTMCP], '/mcp'), fast],
    'fastmcp-stdio': [program(FASTMCP, [], shared), fast],
  }),
}

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const INFO = { name: 'official', version: '1.0.0' }
const FORM = { action: 'accept' as const, content: { name: 'Ada', check: true } }
const VISITED = { action: 'accept' as const }
const SAMPLED = { role: 'assistant' as const, content: { type: 'text' as const, text: 'Hello.' }, model: 'a model' }
const ROOTS = { roots: [{ uri: `file://${FOLDER}` }] }

function createNew(): Client {
  const client = new Client(INFO, { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' } })
  client.setRequestHandler('elicitation/create', ({ params }) => (params.mode === 'url' ? VISITED : FORM))
  client.setRequestHandler('sampling/createMessage', () => SAMPLED)
  client.setRequestHandler('roots/list', () => ROOTS)
  return client
}

function createOld(): OldClient {
  const client = new OldClient(INFO, { capabilities: CAPABILITIES })
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => (params.mode === 'url' ? VISITED : FORM))
  client.setRequestHandler(types.CreateMessageRequestSchema, () => SAMPLED)
  client.setRequestHandler(types.ListRootsRequestSchema, () => ROOTS)
  return client
}

const LISTED = [
  'name',
  'title',
  'uri',
  'uriTemplate',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  'arguments',
]

const CONNECTION = ['_meta', 'resultType', 'ttlMs', 'cacheScope']

/** Returns the fields of items that a host passes on, by name. */
function pick(items: readonly object[]): Record<string, object> {
  const entries = items.map(item => {
    const fields = Object.entries(item).filter(([field, value]) => LISTED.includes(field) && value !== undefined)
    const { inputSchema, outputSchema, arguments: args = [], ...rest } = Object.fromEntries(fields)
    const argumentsOf = args.map(({ required = false, ...more }: { required?: boolean }) => ({ required, ...more }))
    const { $schema: _, ...input } = inputSchema ?? {}
    const { $schema: _output, ...output } = outputSchema ?? {}
    return [String(rest['name']), { ...rest, input, output, arguments: argumentsOf }] as const
  })
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns the result without fields of the connection. A failed call can be a result or an error. */
async function outcomeOf(work: Promise<object>): Promise<unknown> {
  const failed = (text: string) => ({ failed: text.replace(/^(?:MCP error -\d+: )+/, '') })
  try {
    const result = Object.fromEntries(Object.entries(await work).filter(([key]) => !CONNECTION.includes(key)))
    const [first] = (result['content'] ?? []) as readonly { readonly text?: string }[]
    return result['isError'] ? failed(String(first?.text)) : result
  } catch (error) {
    return failed((error as Error).message)
  }
}

/** Makes all requests of the plan, one after the other. */
async function travel(client: Client | OldClient, plan: Plan): Promise<Record<string, unknown>> {
  // The methods of both generations are called alike.
  const one = client as OldClient
  const { tools } = await one.listTools()
  // The host does not offer tools that work only as tasks of the upstream server.
  const callable = tools.filter(({ execution }) => execution?.taskSupport !== 'required')
  const seen: Record<string, unknown> = { tools: pick(callable) }
  if (plan.reads) {
    seen['resources'] = pick((await one.listResources()).resources)
    seen['templates'] = pick((await one.listResourceTemplates()).resourceTemplates)
  }
  if (plan.prompts) seen['prompts'] = pick((await one.listPrompts()).prompts)
  for (const [name, args = {}] of plan.calls) {
    const params = { name, arguments: args as Record<string, unknown> }
    const called = client instanceof Client ? client.callTool(params) : client.callTool(params)
    seen[`call ${name} ${JSON.stringify(args)}`] = await outcomeOf(called)
  }
  for (const uri of plan.reads ?? []) seen[`read ${uri}`] = await outcomeOf(one.readResource({ uri }))
  for (const [name, args] of plan.prompts ?? [])
    seen[`prompt ${name}`] = (await one.getPrompt({ name, arguments: args })).messages
  for (const [ref, argument] of plan.completes ?? []) {
    const params = { ref, argument } as Parameters<OldClient['complete']>[0]
    seen[`complete ${argument.name}`] = (await one.complete(params)).completion.values
  }
  return seen
}

/** Connects to the server itself. */
async function connectDirectly({ url, command, env = {} }: Server): Promise<Client | OldClient> {
  if (url?.endsWith('/sse')) {
    const old = createOld()
    await old.connect(new SSEClientTransport(new URL(url)) as Parameters<OldClient['connect']>[0])
    return old
  }
  const client = createNew()
  const [file = '', ...args] = command ?? []
  const stdio = () => new StdioClientTransport({ command: file, args, env, stderr: 'ignore' })
  await client.connect(url === undefined ? stdio() : new StreamableHTTPClientTransport(new URL(url)))
  return client
}

let servers: Record<string, Server>
let host: StartedHost
/** Results without the host. Servers with the same plan are the same program, with different transports. */
const direct = new Map<Plan, Record<string, unknown>>()

describe('Official servers behind the host', () => {
  before(async () => {
    writeFileSync(join(FOLDER, 'a.txt'), 'text of a')
    writeFileSync(join(FOLDER, 'b.txt'), 'more')
    const ada = { type: 'entity', name: 'Ada', entityType: 'person', observations: ['counts'] }
    writeFileSync(join(FOLDER, 'graph.jsonl'), JSON.stringify(ada))
    const command = [process.execPath, packageFile('server-memory')]
    const config = {
      server: { name: 'second', version: '1.0.0' },
      routes: { '/': { toolsets: 'memory' } },
      plugins: { upstream: { servers: { memory: { command, env: { ...CACHE, ...GRAPH }, prefix: '' } } } },
    }
    writeFileSync(CONFIG, JSON.stringify(config))
    const started = Object.entries(SERVERS).map(async ([name, [start]]) => [name, await start()] as const)
    servers = Object.fromEntries(await Promise.all(started))
    const entries = Object.entries(servers).map(([name, server]) => [
      name,
      { ...server, prefix: '', asks: { roots: true } },
    ])
    host = await startHost({
      toolsets: {},
      routes: { '/:name': { toolsets: ':name' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: Object.fromEntries(entries) } },
    })
  })
  after(async () => {
    await stopHosts()
    await stopServers()
    for (const one of processes) one.kill()
    rmSync(FOLDER, { recursive: true, force: true })
  })

  for (const [name, [, plan]] of Object.entries(SERVERS)) {
    const requests = Object.values(plan).flat().length
    it(`${name}: clients of SDK 1.32 and SDK 2.4 get the same results of ${requests} requests as without the host`, async () => {
      if (!direct.has(plan)) {
        const client = await connectDirectly(servers[name] as Server)
        direct.set(plan, await travel(client, plan))
        await client.close()
      }
      const expected = direct.get(plan)
      const at = new URL(`/${name}`, host.url)
      const old = createOld()
      await old.connect(new OldTransport(at) as Parameters<OldClient['connect']>[0])
      expect(await travel(old, plan), 'SDK 1.32').to.deep.equal(expected)
      await old.close()
      const modern = createNew()
      await modern.connect(new StreamableHTTPClientTransport(at))
      expect(modern.getNegotiatedProtocolVersion()).to.equal('2026-07-28')
      expect(await travel(modern, plan), 'SDK 2.4').to.deep.equal(expected)
      await modern.close()
    })
  }

  it('FastMCP is installed', function () {
    if (!HAS_FASTMCP) pending(this, 'FastMCP is not installed: npm --prefix bench ci')
  })
})
