// A server with the API of the operator console and fixed data, for tests of its page. Texts contain attacks.
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import type {
  AccessMatrix,
  ActionResult,
  AuditTail,
  CallRow,
  Calls,
  Clients,
  ConfigView,
  ConsoleEvent,
  Denials,
  Envelope,
  Explanation,
  Grants,
  Login,
  Me,
  Nodes,
  Overview,
  Routes,
  SearchResults,
  Second,
  Sessions,
  Surface,
  Tasks,
  TryResult,
  Upstreams,
} from '../../plugins/console/api.ts'

/** As the plugin sends it. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

/** Runs if any screen renders text as markup. */
export const ATTACK = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>'
/** Reverses the text behind it in a browser that does not escape it. */
export const REVERSED = 'read\u202etxt.exe'

const START = 1_790_000_000_000
const SECRET = 'one-time'

const OUTCOMES = ['ok', 'ok', 'ok', 'ok', 'tool_error', 'ok', 'refused', 'ok', 'input_required', 'cancelled'] as const
const TOOLS = ['search_orders', 'cancel_order', 'get_invoice', 'list_customers', 'export_report']

export function callRow(seq: number): CallRow {
  const outcome = OUTCOMES[seq % OUTCOMES.length] ?? 'ok'
  return {
    seq,
    node: 'n1',
    at: START + seq * 40,
    ms: 3 + ((seq * 37) % 400),
    outcome,
    route: seq % 3 === 0 ? '/admin' : '/mcp',
    method: 'tools/call',
    kind: 'tools',
    name: seq === 7 ? REVERSED : (TOOLS[seq % TOOLS.length] ?? ''),
    client: seq === 9 ? { name: ATTACK, version: ATTACK } : { name: 'claude-code', version: '2.1.0' },
    user: seq === 9 ? ATTACK : '5d2c1f0e9a8b7c6d',
    revision: '2026-07-28',
    transport: 'streamable',
    http: { verb: 'POST', status: outcome === 'refused' ? 403 : 200 },
    bytesIn: 412,
    bytesOut: 2_310,
    requestId: seq === 9 ? ATTACK : `req-${seq}`,
    traceId: '0af7651916cd43dd8448eb211c80319c',
    ...(seq === 9 && { upstream: { name: 'github', tool: ATTACK, ms: 314 } }),
    ...(outcome === 'refused' && {
      error: { kind: 'forbidden', status: 403, message: `Requires scope "admin" ${ATTACK}`, refusedBy: 'tool-policy' },
    }),
    stages: [
      { name: 'guard', start: 0, ms: 0.2 },
      { name: 'authenticate', start: 0.2, ms: 1.2 },
      { name: 'authorize', start: 1.4, ms: 0.3 },
      { name: 'receive', start: 1.7, ms: 0.4 },
      { name: 'check', start: 2.1, ms: 0.2 },
      { name: 'handler', start: 2.3, ms: 3 + ((seq * 37) % 380) },
    ],
  }
}

const second = (at: number): Second => ({
  at,
  calls: 40 + Math.round(25 * Math.sin(at / 9)) + (at % 7),
  errors: at % 11 === 0 ? 3 : at % 4 === 0 ? 1 : 0,
  denials: at % 17 === 0 ? 4 : 0,
  p50: 12 + (at % 5),
  p99: 90 + 40 * Math.sin(at / 13),
})

const FIGURES = TOOLS.map((name, index) => ({
  route: '/mcp',
  kind: 'tools' as const,
  name,
  calls: 4_812 - index * 900,
  errors: index * 17,
  denials: index,
  p50: 8 + index * 6,
  p99: 120 + index * 70,
  lastAt: START,
}))

const now = { callsPerSecond: 46.3, errors: 0.012, denials: 0.004, p50: 14.2, p99: 128 }

const overview: Overview = {
  version: '0.1.0',
  nodeVersion: '22.13.0',
  pid: 4_711,
  processes: 2,
  uptime: 93_784,
  ready: true,
  checks: [
    { name: 'session-store-redis', ok: true },
    { name: 'upstream github', ok: false, reason: 'connection refused' },
  ],
  warnings: [
    {
      code: 'MH1012',
      message: `Using a temporary signing key. ${ATTACK}`,
      fix: 'Set `secrets` or MCP_HOST_SECRETS to keep sessions across restarts.',
      at: 'secrets',
      source: 'mcp.config.ts:12',
      count: 1,
      firstAt: START,
      lastAt: START,
    },
  ],
  now,
  history: Array.from({ length: 240 }, (_, index) => second(START / 1_000 - 240 + index)),
  topTools: FIGURES,
  inFlight: 7,
  sessions: 132,
  streams: 88,
  memory: { rss: 148_000_000, heapUsed: 61_000_000 },
  plugins: ['transport-streamable', 'auth-jwt', 'tool-policy', 'rate-limit', 'metrics', 'audit', 'console'],
}

const command = (label: string, text: string) => ({ label, command: text })

const routes: Routes = {
  clients: [
    { id: 'claude-code', title: 'Claude Code' },
    { id: 'cursor', title: 'Cursor' },
  ],
  routes: [
    {
      path: '/mcp',
      samplePath: '/mcp',
      url: 'https://tools.acme.example/mcp',
      toolsets: ['orders', 'customers'],
      transports: ['streamable'],
      revisions: ['2026-07-28', '2025-11-25'],
      stateless: false,
      listen: true,
      open: false,
      callers: 'any signed-in user',
      authenticators: ['auth-jwt'],
      issuers: ['https://login.acme.example'],
      tools: 5,
      withheld: 1,
      overrides: ['rate-limit'],
      commands: [command('Explain access', 'npx mcp-host explain --route /mcp')],
    },
    {
      path: '/t/:category?',
      samplePath: '/t',
      url: 'https://tools.acme.example/t',
      toolsets: ['public'],
      transports: ['streamable', 'sse'],
      revisions: ['2026-07-28'],
      stateless: true,
      listen: true,
      open: true,
      callers: 'anyone',
      authenticators: [],
      issuers: [],
      tools: 1,
      withheld: 0,
      overrides: [],
      commands: [],
    },
  ],
}

const CHANGED = 'it has changed since it was accepted: run `mcp-host accept far`'

const surface: Surface = {
  items: TOOLS.map((name, index) => ({
    path: '/mcp',
    route: '/mcp',
    kind: 'tools',
    template: false,
    name: index === 4 ? REVERSED : name,
    title: name.replace('_', ' '),
    description: index === 2 ? `Returns an invoice. ${ATTACK}` : 'Finds the orders of a customer by state and date.',
    shown: {
      name,
      inputSchema: {
        type: 'object',
        required: ['customer', 'state'],
        properties: {
          customer: { type: 'string', description: 'Number of the customer', minLength: 1 },
          state: { type: 'string', enum: ['open', 'shipped', 'cancelled'] },
          limit: { type: 'integer', default: 20 },
          archived: { type: 'boolean', title: 'Archived orders' },
          tags: { type: 'array', items: { type: 'string' } },
          period: { type: 'object', properties: { from: { type: 'string', format: 'date' } } },
        },
      },
      annotations: index === 1 ? { destructiveHint: true } : { readOnlyHint: true },
    },
    needs: index === 1 ? ['scope "orders:write"'] : [],
    listed: true,
    limits: index === 3 ? ['worker thread', '4 at a time'] : [],
    ...(index === 3 && { withheld: CHANGED }),
  })),
  withheld: [[`far: tool ${TOOLS[3]}`, CHANGED]],
  lock: {
    state: 'changed',
    changes: [
      {
        at: '/mcp tool cancel_order',
        impact: 'breaking',
        text: 'requires the new argument "reason"',
        diff: `was  none\nnow  ${REVERSED} ${ATTACK} ${'a long text '.repeat(300)}`,
        path: '/mcp',
        kind: 'tools',
        name: 'cancel_order',
      },
    ],
  },
  figures: FIGURES,
  commands: [command('Changes since the lock file', 'npx mcp-host diff')],
}

const matrix: AccessMatrix = {
  path: '/mcp',
  route: '/mcp',
  items: TOOLS.map(name => ({ kind: 'tools', name })),
  callers: ['anonymous', 'scope orders:read', 'scope orders:write', 'role admin'].map((label, caller) => ({
    label,
    caller: caller === 0 ? {} : { scopes: [label] },
    ...(caller === 0 && { refused: { status: 401, reason: 'A token is required.' } }),
    cells: TOOLS.map((_, tool) => {
      if (caller === 0) return { state: 'denied', reason: 'A token is required.' } as const
      if (tool === 1 && caller === 1) return { state: 'hidden', reason: 'Requires scope "orders:write".' } as const
      return tool === 4 && caller < 3
        ? ({ state: 'denied', reason: 'Policy.' } as const)
        : ({ state: 'allowed' } as const)
    }),
  })),
  notes: ['Policies that depend on arguments are evaluated at the call.'],
  commands: [command('Same in the terminal', 'npx mcp-host explain --route /mcp')],
}

const explanation: Explanation = {
  lines: ['caller    anonymous', 'route     /mcp requires a signed-in user', `tool      ${ATTACK}`, 'decision  401'],
  command: command('Same in the terminal', 'npx mcp-host explain --route /mcp --tool cancel_order'),
}

const denials: Denials = {
  other: 3,
  groups: [
    {
      kind: 'forbidden',
      status: 403,
      refusedBy: 'tool-policy',
      route: '/mcp',
      samplePath: '/mcp',
      method: 'tools/call',
      item: { kind: 'tools', name: 'cancel_order' },
      client: ATTACK,
      message: `Requires scope "orders:write" ${ATTACK}`,
      fix: 'Grant the scope orders:write to this user, or remove the rule in plugins.tool-policy.',
      count: 412,
      firstAt: START - 3_600_000,
      lastAt: START,
    },
    {
      kind: 'unauthorized',
      status: 401,
      refusedBy: 'auth-jwt',
      route: '/mcp',
      samplePath: '/mcp',
      message: 'The token has expired.',
      count: 38,
      firstAt: START - 7_200_000,
      lastAt: START,
    },
  ],
}

const sessions: Sessions = {
  total: 2,
  streams: 1,
  waitingBytes: 4_096,
  sessions: ['a', 'b'].map((handle, index) => ({
    handle,
    node: 'n1',
    route: '/mcp',
    lastUsedAt: START - 4_000,
    owner: '5d2c1f0e9a8b7c6d',
    client: { name: index === 0 ? 'claude-code' : ATTACK, version: '2.1.0' },
    revision: '2025-11-25',
    transport: 'streamable',
    streams: index,
  })),
}

const tasks: Tasks = {
  counts: { working: 1, completed: 1, failed: 1 },
  queueAge: 4,
  tasks: ['working', 'completed', 'failed'].map((status, index) => ({
    handle: `task-${index}`,
    tool: 'export_report',
    route: '/mcp',
    status,
    createdAt: START - 90_000,
    updatedAt: START - 30_000,
    owner: '5d2c1f0e9a8b7c6d',
  })),
}

const upstreams: Upstreams = {
  servers: (['up', 'down', 'needs login'] as const).map((state, index) => ({
    name: ['github', 'tickets', ATTACK][index] ?? '',
    node: 'n1',
    transport: index === 1 ? 'stdio' : 'http',
    target: index === 1 ? 'node' : 'https://mcp.example/mcp',
    state,
    since: START - 60_000,
    ...(index > 0 && { lastError: { at: START - 5_000, reason: `connection refused ${ATTACK}` } }),
    ...(index === 0 && { server: `GitHub ${ATTACK}`, revision: '2025-11-25', era: 'legacy' as const }),
    tools: 12,
    resources: 2,
    prompts: 1,
    withheld: index === 0 ? [[`tool ${ATTACK}`, 'it has not been accepted']] : [],
    withheldCount: index === 0 ? 101 : 0,
    sessions: 3,
    activeCalls: 1,
    queuedCalls: 0,
    heldCalls: 0,
    routes: ['/mcp'],
  })),
  total: 3,
  commands: [command('Connect and check all servers', 'npx mcp-host doctor --config FILE')],
}

const clients: Clients = {
  other: 0,
  legacy: { since: START, calls: 48_120, handshake: 1_204, sse: 0, sseNeeded: false },
  clients: [
    ['claude-code', '2.1.0', '2026-07-28'],
    ['cursor', '1.9.2', '2025-11-25'],
    [ATTACK, '1', '2025-06-18'],
  ].map(([name = '', version = '', revision = ''], index) => ({
    name,
    version,
    revision,
    transport: 'streamable',
    calls: 40_000 - index * 15_000,
    lastAt: START,
  })),
}

const grants: Grants = {
  clients: [
    { id: 'desk', name: 'Desk', from: 'config', grants: 2, users: 2, firstAt: START, lastAt: START },
    { id: ATTACK, name: ATTACK, from: 'registration', grants: 1, users: 1, firstAt: START, lastAt: START },
  ],
  grants: [
    { client: { id: 'desk', name: 'Desk' }, user: '5d2c1f0e9a8b7c6d', scopes: ['read'], createdAt: START },
    { client: { id: ATTACK, name: ATTACK }, user: ATTACK, scopes: [ATTACK], createdAt: START, usedAt: START },
  ],
  cut: true,
}

const audit: AuditTail = {
  file: 'audit.jsonl',
  lines: Array.from({ length: 60 }, (_, index) =>
    index === 40
      ? { unreadable: true }
      : {
          seq: 41_000 + index,
          time: new Date(START + index * 1_000).toISOString(),
          event: index === 30 ? 'gap' : 'call',
          decision: index % 9 === 0 ? 'refused' : 'allowed',
          method: 'tools/call',
          name: index === 5 ? ATTACK : 'search_orders',
          user: '5d2c1f0e9a8b7c6d',
          ...(index % 9 === 0 && { reason: 'scope orders:write' }),
        },
  ),
  chain: { state: 'ok', from: 41_000, to: 41_059, head: '04d7aa19'.repeat(8) },
  commands: [command('Verify the whole file', 'npx mcp-host audit verify audit.jsonl')],
}

const config: ConfigView = {
  file: '/srv/acme/mcp.config.ts',
  config: {
    server: { name: 'acme-tools', title: 'Acme Tools', version: '1.4.0' },
    http: { port: 3_000, host: '127.0.0.1', publicUrl: 'https://tools.acme.example' },
    secrets: ['***'],
    plugins: { 'rate-limit': { perUser: 600 }, 'auth-jwt': { issuer: 'https://login.acme.example' } },
  },
  keys: {
    'http.port': { source: 'mcp.config.ts:8', description: `Port. ${ATTACK}`, isDefault: false, restart: true },
    'http.host': { description: 'Interface to listen on.', isDefault: true, restart: true },
    'plugins.rate-limit.perUser': { source: 'mcp.config.ts:31', isDefault: false, restart: false },
  },
  reload: { at: START, ok: true, taken: ['toolsets.orders'], restart: ['http.port'], told: 12 },
  commands: [command('Check the config', 'npx mcp-host check')],
}

const nodes: Nodes = {
  nodes: ['n1', 'n2', 'n3'].map((name, index) => ({
    name,
    pid: 4_711 + index,
    self: index === 0,
    uptime: 93_784,
    callsPerSecond: 16 + index,
    sessions: 44,
    version: '0.1.0',
  })),
}

const hits: SearchResults = {
  query: 'order',
  hits: [
    { kind: 'tools', title: 'search_orders', text: '/mcp', path: '/mcp', name: 'search_orders' },
    { kind: 'route', title: '/mcp', path: '/mcp' },
  ],
}

const me: Me = {
  via: 'one-time token',
  node: 'n1',
  version: '0.1.0',
  server: { name: 'acme-tools', version: '1.4.0', title: 'Acme Tools' },
  command: 'npx mcp-host',
  actions: true,
  try: true,
  expiresAt: START + 3_600_000,
}

const login: Login = { ...me, secret: 'second-secret' }

const tried: TryResult = {
  status: 200,
  ms: 31,
  response: {
    jsonrpc: '2.0',
    id: 1,
    result: { content: [{ type: 'text', text: `3 orders ${ATTACK}` }], structuredContent: { orders: 3 } },
  },
  commands: [
    command('Same in the terminal', 'npx mcp-host call https://tools.acme.example/mcp search_orders customer=7'),
  ],
}

const done: ActionResult = { ok: true, message: 'Done.' }
const reloaded: ActionResult = {
  ok: false,
  message: 'Failed.',
  nodes: [
    { node: 'n1', ok: true, message: 'Reloaded: server.' },
    { node: ATTACK, ok: false, message: `Reload failed. ${ATTACK} ${'/a-long-path-without-a-space'.repeat(9)}` },
  ],
}

const ENVELOPE: Envelope & { readonly available: true } = { node: 'n1', at: START, scope: 'process', available: true }

const calls = (): Calls => ({
  calls: Array.from({ length: 60 }, (_, index) => callRow(60 - index)),
  dropped: 0,
  capacity: { records: 2_000, bytes: 4_000_000 },
})

const DATA: Readonly<Record<string, () => object>> = {
  overview: () => overview,
  routes: () => routes,
  surface: () => surface,
  access: () => matrix,
  explain: () => explanation,
  calls,
  denials: () => denials,
  sessions: () => sessions,
  tasks: () => tasks,
  clients: () => clients,
  upstreams: () => upstreams,
  grants: () => grants,
  audit: () => audit,
  config: () => config,
  nodes: () => nodes,
  search: () => hits,
}

export interface ConsoleApi {
  readonly origin: string
  /** With the one-time token. */
  readonly loginUrl: string
  /** Method, path and body of each request to the API. */
  readonly requests: ReadonlyArray<{ readonly method: string; readonly path: string; readonly body: unknown }>
  /** Replaces the data of a screen. */
  readonly replace: (name: string, data: object) => void
  readonly send: (event: ConsoleEvent) => void
  /** Removes requests and replaced data. The login stays. */
  readonly reset: () => void
  readonly endSession: () => void
  readonly close: () => void
}

const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' }

/** Serves the page in this folder, which `bundleConsole` wrote. */
export async function startConsoleApi(folder: string): Promise<ConsoleApi> {
  const files = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }))
  const requests: Array<{ method: string; path: string; body: unknown }> = []
  const replaced = new Map<string, object>()
  const streams = new Set<ServerResponse>()
  let isLoggedIn = false

  const send = (res: ServerResponse, status: number, value: object) =>
    res
      .writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
      .end(JSON.stringify(value))

  function sendFile(path: string, res: ServerResponse) {
    const name = files.has(path.slice(1)) ? path.slice(1) : 'index.html'
    const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain'
    res
      .writeHead(200, { 'Content-Type': type, 'Content-Security-Policy': POLICY })
      .end(readFileSync(join(folder, name)))
  }

  async function respond(req: IncomingMessage, res: ServerResponse) {
    const path = (req.url ?? '').split('?')[0] ?? ''
    if (!path.startsWith('/api/')) return sendFile(path, res)
    const isPost = req.method === 'POST'
    const key = req.headers['x-console']
    if (isPost && !key) return send(res, 403, { error: 'forbidden', message: 'No header.' })
    const body = isPost ? await json(req) : undefined
    requests.push({ method: req.method ?? '', path, body })
    if (path === '/api/login' && !isPost) return send(res, 200, { tokens: true })
    if (path === '/api/login') {
      isLoggedIn = (body as { token: string }).token === SECRET
      return isLoggedIn ? send(res, 200, login) : send(res, 401, { error: 'unauthorized', message: 'Invalid token.' })
    }
    if (!isLoggedIn || key !== login.secret) return send(res, 401, { error: 'unauthorized', message: 'Log in first.' })
    const name = path.slice('/api/'.length)
    if (name === 'me') return send(res, 200, me)
    if (name === 'logout') {
      isLoggedIn = false
      return res.writeHead(204).end()
    }
    if (name === 'try') {
      const progress = { method: 'notifications/progress', params: { progress: 1, total: 2, message: ATTACK } }
      res.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      return res.end(`${JSON.stringify(progress)}\n${JSON.stringify(tried)}\n`)
    }
    if (name.startsWith('actions/')) return send(res, 200, name === 'actions/reload' ? reloaded : done)
    if (name === 'events') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n')
      streams.add(res)
      return req.on('close', () => streams.delete(res))
    }
    const data = replaced.get(name) ?? DATA[name]?.()
    return data ? send(res, 200, { ...ENVELOPE, ...data }) : send(res, 404, { error: 'not_found', message: name })
  }

  const server = createServer((req, res) => void respond(req, res))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    loginUrl: `${origin}/#t=${SECRET}`,
    requests,
    replace: (name, data) => void replaced.set(name, data),
    send({ event, ...data }) {
      for (const stream of streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    },
    reset() {
      requests.length = 0
      replaced.clear()
    },
    endSession() {
      isLoggedIn = false
      for (const stream of streams) stream.destroy()
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** One message of the stream per second. */
export const tick = (at: number): ConsoleEvent => ({
  event: 'tick',
  node: 'n1',
  at,
  second: second(Math.floor(at / 1_000)),
  now,
  inFlight: 9,
  sessions: 133,
  ready: true,
})
