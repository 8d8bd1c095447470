// The API of the console: each screen against a host with real calls.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool, ToolError } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { type AccessRow, PATHS } from '../../../plugins/console/api.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { createBench } from '../tasks/support/task-tools.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { type Operator, startConsole } from './console-client.ts'

const SECRET = 'planted-secret-of-the-config'
const ARGUMENT = 'planted-argument-of-a-call'
const RESULT = 'planted-result-of-a-call'

const input = { type: 'object', properties: { text: { type: 'string' } } } as const
const say = defineTool({ name: 'say', title: 'Say it', input, handler: () => RESULT })
const fail = defineTool({
  name: 'fail',
  input,
  handler: ({ text }) => {
    throw new ToolError(`no ${text}`)
  },
})
const wipe = defineTool({
  name: 'wipe',
  access: 'admins',
  annotations: { destructiveHint: true },
  handler: () => 'gone',
})

describe('The API of the console', () => {
  let operator: Operator
  let directory: string
  const bench = createBench()

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'console-'))
    operator = await startConsole(
      {
        toolsets: { all: [say, fail, wipe], slow: bench.tools },
        routes: {
          '/open': { toolsets: 'all' },
          '/guarded': { toolsets: 'all', authorize: true },
          '/slow': { toolsets: 'slow' },
        },
        secrets: [SECRET.padEnd(40, 'x')],
        plugins: {
          'tool-policy': { policies: { admins: { role: 'admin' } } },
          tasks: {},
          audit: { file: 'audit.jsonl' },
          health: { token: 'planted-health-token-0' },
          upstream: {
            servers: {
              far: {
                command: process.execPath,
                args: ['-e', `process.exit(0) // ${SECRET}`],
                overrides: { look: { arguments: { key: { value: SECRET }, area: { default: { of: [SECRET] } } } } },
              },
            },
          },
          'bearer-json': bearerJson(),
        },
      },
      { actions: true },
      { directory },
    )
  })
  after(async () => {
    await stopHosts()
    rmSync(directory, { recursive: true, force: true })
  })

  const call = (path: string, name: string, headers: Record<string, string> = {}) =>
    modern(`${operator.url}${path}`, 'tools/call', { name, arguments: { text: ARGUMENT } }, { headers })

  it('replies who the operator is', async () => {
    const { status, body } = await operator.get(PATHS.me)
    expect(status).to.equal(200)
    expect(body).to.deep.include({ via: 'one-time token', actions: true, try: true })
    expect(body.server).to.deep.equal({ name: 'test-host', version: '1.2.3' })
  })

  it('lists calls, newest first, and sums them up', async () => {
    await call('/open', 'say')
    await call('/open', 'fail')
    await call('/guarded', 'say')
    const { body } = await operator.get(`${PATHS.calls}?limit=3`)
    expect(body.available).to.equal(true)
    expect(body.calls.map(({ outcome, route, name }: Record<string, unknown>) => [outcome, route, name])).to.deep.equal(
      [
        ['refused', '/guarded', undefined],
        ['tool_error', '/open', 'fail'],
        ['ok', '/open', 'say'],
      ],
    )
    const one = await operator.get(`${PATHS.calls}?limit=1`)
    expect(one.body.calls).to.have.length(1)
    for (const limit of ['0', '-1', 'x', '1e3']) {
      expect((await operator.get(`${PATHS.calls}?limit=${limit}`)).status).to.equal(400)
    }
    const overview = (await operator.get(PATHS.overview)).body
    expect(overview).to.deep.include({ available: true, ready: true, processes: 1 })
    expect(overview.topTools.map(({ name }: { name: string }) => name)).to.include.members(['say', 'fail'])
    expect(overview.plugins).to.include.members(['console', 'audit', 'tool-policy'])
    expect(overview.memory.rss).to.be.above(0)
    const nodes = (await operator.get(PATHS.nodes)).body.nodes
    expect(nodes).to.have.length(1)
    expect(nodes[0]).to.deep.include({ self: true, pid: process.pid })
  })

  it('groups denials', async () => {
    await call('/guarded', 'say')
    await call('/guarded', 'say')
    const { groups } = (await operator.get(PATHS.denials)).body
    const found = groups.find(({ route }: { route: string }) => route === '/guarded')
    expect(found).to.deep.include({ kind: 'unauthorized', status: 401, samplePath: '/guarded' })
    expect(found.count).to.be.at.least(2)
  })

  it('shows the calls of each denial with the outcome of denials, and the reason', async () => {
    await call('/guarded', 'wipe', as({ subject: 'ada' }))
    const { groups } = (await operator.get(PATHS.denials)).body
    const denied = groups.find(({ refusedBy }: { refusedBy: string }) => refusedBy === 'tool-policy')
    expect(denied.reason).to.equal('lacks role "admin"')
    const [row] = (await operator.get(`${PATHS.calls}?limit=1`)).body.calls
    expect([row.outcome, row.name, row.error.reason]).to.deep.equal(['refused', denied.item.name, denied.reason])
  })

  it('lists clients with their revision', async () => {
    const { clients, legacy } = (await operator.get(PATHS.clients)).body
    const found = clients.find(({ name }: { name: string }) => name === 'test-client')
    expect(found).to.deep.include({ version: '0.0.1', revision: '2026-07-28' })
    expect(legacy.calls).to.be.above(0)
    expect(legacy).not.to.have.property('sseNeeded')
  })

  it('lists routes with transports and callers', async () => {
    const { routes } = (await operator.get(PATHS.routes)).body
    expect(routes.map(({ path }: { path: string }) => path)).to.have.members(['/open', '/guarded', '/slow'])
    const guarded = routes.find(({ path }: { path: string }) => path === '/guarded')
    expect(guarded).to.deep.include({ open: false, toolsets: ['all'], transports: ['transport-streamable'] })
    expect(guarded.authenticators).to.deep.equal(['bearer-json'])
  })

  it('lists items with schemas and figures', async () => {
    const { items, figures } = (await operator.get(PATHS.surface)).body
    const found = items.find(({ name, route }: Record<string, string>) => name === 'say' && route === '/open')
    expect(found).to.deep.include({ kind: 'tools', title: 'Say it', template: false, listed: true })
    expect(found.shown.inputSchema.properties).to.deep.equal(input.properties)
    expect(figures.find(({ name }: { name: string }) => name === 'say').calls).to.be.above(0)
  })

  it('evaluates access for the callers of the config', async () => {
    const { body } = await operator.post(PATHS.access, { path: '/guarded' })
    expect(body.items.map(({ name }: { name: string }) => name)).to.deep.equal(['say', 'fail', 'wipe'])
    const rows = new Map<string, { refused?: { status: number }; cells: { state: string }[] }>(
      body.callers.map((row: { label: string }) => [row.label, row]),
    )
    expect([...rows.keys()]).to.deep.equal(['anonymous', 'any user', 'role admin'])
    expect(rows.get('anonymous')?.refused?.status).to.equal(401)
    const statesOf = (label: string) => rows.get(label)?.cells.map(({ state }) => state)
    expect(statesOf('anonymous')).to.deep.equal(['denied', 'denied', 'denied'])
    expect(statesOf('any user')).to.deep.equal(['allowed', 'allowed', 'hidden'])
    expect(statesOf('role admin')).to.deep.equal(['allowed', 'allowed', 'allowed'])
  })

  it('shows an error of a plugin in its cell of the access matrix', async () => {
    const broken = definePlugin<object>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup: host =>
        host.provide('access', {
          audienceOf: user => ({
            key: String(user?.scopes),
            denialOf({ key }) {
              if (user && key === 'wipe') throw new TypeError('broken rule')
              return undefined
            },
          }),
          authorize(_, user) {
            if (user?.roles.includes('odd')) throw new TypeError('broken authorize')
            return undefined
          },
          deniesInBody: () => false,
        }),
    })
    const { post } = await startConsole({
      toolsets: { all: [say, defineTool({ name: 'wipe', handler: () => '' })] },
      routes: { '/mcp': { toolsets: 'all', authorize: true } },
      plugins: { broken: broken({}), 'bearer-json': bearerJson() },
    })
    const callers = [{}, { scopes: [] }, { roles: ['odd'] }, { token: 'no JSON' }]
    const { status, body } = await post(PATHS.access, { path: '/mcp', callers })
    expect(status).to.equal(200)
    const shown = body.callers.map(({ refused, cells }: AccessRow) => [
      refused?.status,
      ...cells.map(({ state }) => state),
    ])
    expect(shown).to.deep.equal([
      [undefined, 'allowed', 'allowed'],
      [undefined, 'allowed', 'error'],
      [500, 'error', 'error'],
      [500, 'error', 'error'],
    ])
    expect(body.callers[1].cells[1].reason).to.include('broken rule')
    expect(body.callers[2].refused.reason).to.include('broken authorize')
  })

  it('refuses invalid questions about access', async () => {
    for (const [body, status] of [
      [{}, 400],
      [{ path: 7 }, 400],
      [{ path: '/none' }, 404],
      [{ path: '/open', callers: 'all' }, 400],
      [{ path: '/open', callers: Array.from({ length: 17 }, () => ({})) }, 400],
      [{ path: '/open', callers: [{ roles: 'admin' }] }, 400],
      [{ path: '/open', callers: [{ token: 'x'.repeat(20_000) }] }, 400],
    ] as const) {
      expect((await operator.post(PATHS.access, body)).status, JSON.stringify(body).slice(0, 60)).to.equal(status)
    }
  })

  it('explains through the program only', async () => {
    const { status, body } = await operator.post(PATHS.explain, { path: '/open', caller: {} })
    expect([status, body.available]).to.deep.equal([200, false])
    expect((await operator.post(PATHS.explain, { path: '/open', caller: {}, kind: 'x' })).status).to.equal(400)
    expect((await operator.post(PATHS.explain, { path: '/none', caller: {} })).status).to.equal(404)
  })

  it('shows the config without secrets', async () => {
    const { config } = (await operator.get(PATHS.config)).body
    expect(config.secrets).to.deep.equal(['***'])
    expect(config.plugins.health.token).to.equal('***')
    expect(config.plugins.audit.file).to.equal('audit.jsonl')
    expect(config.routes['/guarded'].authorize).to.equal(true)
    const { command, args, overrides } = config.plugins.upstream.servers.far
    expect([command, args]).to.deep.equal([process.execPath, ['***', '***']])
    expect(overrides.look.arguments).to.deep.equal({ key: { value: '***' }, area: { default: '***' } })
  })

  it('lists sessions without their ids, and ends one', async () => {
    const session = await openSession(`${operator.url}/open`)
    const { sessions, total } = (await operator.get(PATHS.sessions)).body
    expect([sessions.length, total]).to.deep.equal([1, 1])
    const [{ handle, route, client, revision }] = sessions
    expect([route, client.name, revision]).to.deep.equal(['/open', 'session-client', '2025-11-25'])
    expect(JSON.stringify(sessions)).not.to.include(session.id)
    expect((await operator.post(PATHS.endSession, { handle })).status).to.equal(400)
    expect((await session.request('ping')).status).to.equal(200)
    expect((await operator.post(PATHS.endSession, { handle: 'x'.repeat(22), confirm: true })).status).to.equal(404)
    const ended = await operator.post(PATHS.endSession, { handle, confirm: true })
    expect([ended.status, ended.body.ok]).to.deep.equal([200, true])
    expect((await session.request('ping')).status).to.equal(404)
    expect((await operator.get(PATHS.sessions)).body.total).to.equal(0)
  })

  it('lists tasks without their ids, and cancels one', async () => {
    const key = 'to-cancel'
    const tasks = 'io.modelcontextprotocol/tasks'
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { extensions: { [tasks]: {} } } }
    const made = await modern(`${operator.url}/slow`, 'tools/call', { name: 'slow', arguments: { key } }, { meta })
    const { taskId } = made.message.result
    expect(taskId).to.be.a('string')
    const read = async () => (await operator.get(PATHS.tasks)).body
    const listed = await eventually('a running task', read, ({ tasks }) => tasks[0]?.status === 'working')
    expect(listed.tasks[0]).to.deep.include({ tool: 'slow', route: '/slow' })
    expect(JSON.stringify(listed)).not.to.include(taskId)
    const { handle } = listed.tasks[0]
    expect((await operator.post(PATHS.cancelTask, { handle, confirm: true })).status).to.equal(200)
    expect((await read()).tasks[0].status).to.equal('cancelled')
    expect((await operator.post(PATHS.cancelTask, { handle, confirm: true })).status).to.equal(404)
  })

  it('shows the audit with the actions of operators', async () => {
    const read = async () => (await operator.get(`${PATHS.audit}?lines=500`)).body
    const actionsIn = ({ lines }: { lines: Record<string, string>[] }) =>
      lines.flatMap(({ event, action, outcome }) => (event === 'console' ? `${action} ${outcome}` : []))
    const found = await eventually('the actions', read, one => actionsIn(one).length >= 4)
    expect(actionsIn(found)).to.deep.equal([
      'end-session failed',
      'end-session ok',
      'cancel-task ok',
      'cancel-task failed',
    ])
    const { chain, lines } = await read()
    expect(chain).to.deep.include({ state: 'ok', from: 1, to: lines.length })
    expect((await operator.get(`${PATHS.audit}?lines=1`)).body.lines).to.have.length(1)
  })

  it('has no reload without a program', async () => {
    const { status, body } = await operator.post(PATHS.reload, { confirm: true })
    const { node } = (await operator.get(PATHS.me)).body
    expect([status, body.ok]).to.deep.equal([200, false])
    expect(body.nodes.map((result: { node: string; ok: boolean }) => [result.node, result.ok])).to.deep.equal([
      [node, false],
    ])
  })

  it('finds routes, items and request ids', async () => {
    await call('/open', 'say', { 'X-Request-Id': 'request-to-find' })
    const hitsOf = async (text: string) => (await operator.get(`${PATHS.search}?q=${text}`)).body.hits
    expect((await hitsOf('guarded'))[0]).to.deep.include({ kind: 'route', path: '/guarded' })
    expect((await hitsOf('WIPE')).map(({ name }: { name: string }) => name)).to.include('wipe')
    expect((await hitsOf('request-to-find'))[0]).to.deep.include({ kind: 'call', title: 'request-to-find' })
    expect(await hitsOf('')).to.deep.equal([])
    expect((await hitsOf('e')).length).to.be.within(1, 20)
  })

  it('calls a tool as an ordinary client', async () => {
    const asked = { path: '/open', tool: 'say', arguments: { text: 'x' } }
    expect((await operator.post(PATHS.try, asked)).status, 'without a hint').to.equal(400)
    expect((await operator.post(PATHS.try, { ...asked, tool: 'none', confirm: true })).status).to.equal(400)
    const { status, body } = await operator.post(PATHS.try, { ...asked, confirm: true })
    expect([status, body.status]).to.deep.equal([200, 200])
    expect(JSON.stringify(body.response.result)).to.include(RESULT)
    expect((await operator.post(PATHS.try, { ...asked, path: '/guarded', confirm: true })).body.status).to.equal(401)
    const wiped = { path: '/open', tool: 'wipe', arguments: {} }
    expect((await operator.post(PATHS.try, wiped)).status).to.equal(400)
    const denied = await operator.post(PATHS.try, { ...wiped, confirm: true })
    expect(denied.body.response.result).to.equal(undefined)
    const [last] = (await operator.get(`${PATHS.calls}?limit=1`)).body.calls
    expect(last.client.name).to.equal('mcp-host-console')
  })

  it('sends calls and figures in batches', async () => {
    const stream = await exchange(`${operator.origin}${PATHS.events}`, { headers: operator.headers })
    await call('/open', 'say', { 'X-Request-Id': 'request-of-the-feed' })
    const events = await stream.until(({ event }) => event === 'tick')
    expect(events.map(({ event }) => event)).to.deep.equal(['calls', 'tick'])
    expect(events[0]?.message.calls[0].requestId).to.equal('request-of-the-feed')
    expect(events[1]?.message).to.deep.include({ ready: true, sessions: 0 })
    stream.drop()
  })

  it('contains no argument, result, secret or token', async () => {
    await call('/open', 'fail')
    const gets = Object.values(PATHS).filter(path => !/login|logout|events|access|explain|try|app|actions/.test(path))
    expect(gets).to.have.length(15)
    const replies = await Promise.all(gets.map(path => operator.get(`${path}?q=say`)))
    expect(replies.map(({ status }) => status)).to.deep.equal(gets.map(() => 200))
    const text = replies.map(reply => reply.text).join('\n')
    for (const planted of [ARGUMENT, RESULT, SECRET, 'planted-health-token-0', operator.oneTimeToken]) {
      expect(text).not.to.include(planted)
    }
    expect(text).not.to.include(operator.cookie.split('=')[1])
  })
})
