// Access rules for tasks: only tokens allowed to call the tool can use the task, also after policy changes.
import { expect } from 'chai'
import { type Config, defineTool } from '../../../core/index.ts'
import { removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { listen, nextMessage, openSession } from '../../support/session-client.ts'
import { openSse } from '../../support/sse-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startIssuer, stopIssuers, type TestIssuer } from '../../support/test-issuer.ts'
import { refusal, taskClient } from './support/task-client.ts'
import { form } from './support/task-tools.ts'

const UNKNOWN = `${'A'.repeat(42)}B`
const YES = { 'elicit-1': { action: 'accept', content: { name: 'yes' } } }

describe('Tasks with tool-policy', () => {
  let issuer: TestIssuer
  before(async () => {
    issuer = await startIssuer()
  })
  afterEach(async () => {
    await stopHosts()
    await stopReloading()
  })
  after(async () => {
    await stopIssuers()
    await removeFolders()
  })

  const client = (url: string, scope: string, id: string) =>
    taskClient(url, undefined, undefined, { Authorization: `Bearer ${issuer.token('api', { scope, client_id: id })}` })
  const both = (url: string) => ({
    strong: client(url, 'admin', 'console'),
    weak: client(url, 'read', 'summaries'),
  })
  const told: string[] = []
  const wipe = defineTool({
    name: 'wipe',
    task: 'required',
    access: 'admin',
    async handler(_, ctx) {
      const { content } = await ctx.elicit({ message: 'Really all of it?', requestedSchema: form })
      told.push(String(content?.['name']))
      return 'the key is 12345'
    },
  })
  const open = defineTool({ name: 'open', task: 'required', handler: () => 'open' })

  const start = (more: Partial<Config> = {}) =>
    startHost({
      toolsets: { all: [wipe, open] },
      routes: { '/mcp': { toolsets: 'all', authorize: true } },
      ...more,
      plugins: {
        'transport-streamable': {},
        tasks: { pollInterval: '20ms' },
        'auth-jwt': { authority: issuer.url, audience: 'api', dpop: { mode: 'off' } },
        'tool-policy': { policies: { admin: { scope: 'admin' } } },
        ...more.plugins,
      },
    })

  type Client = ReturnType<typeof client>

  /** To this one the task is as one that is not there, by every way. Gives how many ways were tried. */
  async function expectUnknown(weak: Client, taskId: string): Promise<number> {
    const ways = { 'tasks/get': {}, 'tasks/update': { inputResponses: YES }, 'tasks/cancel': {} }
    for (const [method, params] of Object.entries(ways)) {
      const [one, none] = [await weak.about(method, taskId, params), await weak.about(method, UNKNOWN, params)]
      expect([one.status, one.message.error], method).to.deep.equal([none.status, none.message.error])
      expect(one.message.error.code, method).to.equal(-32602)
    }
    expect(await weak.listed()).not.to.include(taskId)
    const listening = await weak.listen([taskId])
    expect(listening.acknowledged).to.deep.equal({})
    listening.drop()
    return Object.keys(ways).length + 2
  }

  it('are hidden from unauthorized tokens in lists, reads, updates, cancellation and subscriptions', async () => {
    const { url } = await start()
    const { strong, weak } = both(`${url}/mcp`)
    expect(refusal(await weak.call('wipe'))[0]).to.equal(403)
    const taskId = await strong.begin('wipe')
    await strong.until(taskId, 'input_required')
    const other = await strong.begin('open')
    await expectUnknown(weak, taskId)
    expect(told).to.deep.equal([])
    expect(await weak.listed(), 'of a tool that it may call').to.deep.equal([other])
    expect(await strong.listed()).to.deep.equal([other, taskId])
    await strong.update(taskId, YES)
    expect((await strong.until(taskId)).status).to.equal('completed')
    expect(told.splice(0)).to.deep.equal(['yes'])
    await expectUnknown(weak, taskId)
  })

  it('are skipped in lists, and later pages are still found', async () => {
    const { url } = await start({ plugins: { tasks: { pollInterval: '20ms', openPerUser: 200 } } })
    const { strong, weak } = both(`${url}/mcp`)
    const first = await weak.begin('open')
    for (let count = 0; count < 55; count++) await strong.begin('wipe')
    const last = await weak.begin('open')
    expect(await weak.listed()).to.deep.equal([last, first])
  })

  it('of a tool from configureSession belong to sessions with that tool', async () => {
    const extra = defineTool({ name: 'extra', task: 'required', handler: () => 'for some' })
    const { url } = await start({
      configureSession({ user }, options) {
        if (user?.scopes.includes('admin')) options.add(extra)
      },
    })
    const { strong, weak } = both(`${url}/mcp`)
    const taskId = await strong.begin('extra')
    expect((await strong.until(taskId)).status).to.equal('completed')
    await expectUnknown(weak, taskId)
  })

  const CONFIG = (
    tools: string,
    policy: string,
    route = 'true',
    entry = 'admin',
  ) => `import { defineConfig, defineTool } from HERE
const form = { type: 'object', properties: { name: { type: 'string' } } }
const tool = (name, access) => defineTool({ name, access, task: 'required', async handler(_, ctx) {
  for (let count = 0; count < 2; count++) await ctx.elicit({ message: 'Really?', requestedSchema: form })
  return 'done'
} })
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [${tools}] },
  routes: { '/mcp': { toolsets: 'all', authorize: ${route} } },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    tasks: { pollInterval: '20ms' },
    'auth-jwt': { authority: '${issuer.url}', audience: 'api', dpop: { mode: 'off' } },
    'tool-policy': { policies: { admin: { scope: 'admin' }, staff: { anyOf: [{ scope: 'admin' }, { scope: '${entry}' }] } }, rules: ${policy} },
  },
})
`

  it('follow the current policy after a reload', async () => {
    const tools = "tool('one'), tool('two')"
    const host = await startReloading({ 'mcp.config.ts': CONFIG(tools, '{}') })
    const { strong, weak } = both(`${host.url}/mcp`)
    const [one, two] = [await strong.begin('one'), await strong.begin('two')]
    for (const id of [one, two]) await weak.until(id, 'input_required')
    const listening = await weak.listen([one, two])
    expect(listening.acknowledged).to.deep.equal({ taskIds: [one, two] })
    const first = [await listening.next(), await listening.next()].map(({ params }) => params.taskId)
    expect(first).to.have.members([one, two])
    await host.write('mcp.config.ts', CONFIG(tools, "{ one: 'admin' }"))
    await host.reload()
    for (const id of [one, two]) await strong.update(id, YES)
    for (const id of [one, two]) {
      await eventually(
        'the second question is asked',
        () => strong.get(id),
        task => Object.keys(task['inputRequests'] ?? {}).includes('elicit-2'),
      )
    }
    for (const id of [one, two]) await strong.cancel(id)
    const heard = []
    while (heard.at(-1)?.status !== 'cancelled') heard.push((await listening.next()).params)
    listening.drop()
    expect(new Set(heard.map(({ taskId }) => taskId))).to.deep.equal(new Set([two]))
    await expectUnknown(weak, one)
    await host.write('mcp.config.ts', CONFIG(tools, '{}'))
    await host.reload()
    expect((await weak.get(one)).status).to.equal('cancelled')
  })

  it('and other streams end when a reload no longer admits their caller to the route', async () => {
    const config = (entry: string) => CONFIG("tool('open')", '{}', "'staff'", entry)
    const { host, url, write, reload } = await startReloading({ 'mcp.config.ts': config('read') })
    const { strong, weak } = both(`${url}/mcp`)
    const headersOf = (scope: string) => ({ Authorization: `Bearer ${issuer.token('api', { scope })}` })
    const open = async (scope: string) => {
      const headers = headersOf(scope)
      const session = await openSession(`${url}/mcp`, { headers })
      return {
        GET: await session.get(),
        'subscriptions/listen': await listen(`${url}/mcp`, { toolsListChanged: true }, { headers }),
        'HTTP+SSE': await openSse(`${url}/mcp`, { headers }),
      }
    }
    const tasks = [
      { client: strong, id: await strong.begin('open') },
      { client: weak, id: await weak.begin('open') },
    ]
    for (const { client, id } of tasks) await client.until(id, 'input_required')
    const [stays, ends] = [await open('admin'), await open('read')]
    const listening = await weak.listen([tasks[1]?.id])
    expect((await listening.next()).params.status).to.equal('input_required')
    await write('mcp.config.ts', config('nobody'))
    expect((await reload()).restart).to.deep.equal([])
    for (const [kind, stream] of Object.entries(ends)) {
      const events = await stream.rest()
      expect(JSON.stringify(events), kind).not.to.include('list_changed')
      expect(events.at(-1), kind).to.satisfy(
        (event?: { retry?: number; message?: { result?: object } }) =>
          event?.retry === 1_000 || event?.message?.result !== undefined,
      )
    }
    expect((await listening.next()).result?.resultType).to.equal('complete')
    expect((await weak.about('tasks/get', tasks[1]?.id ?? '')).status).to.equal(403)
    host.runtime.tools.add(defineTool({ name: 'late', handler: () => '' }))
    for (const kind of ['GET', 'subscriptions/listen'] as const) {
      expect((await nextMessage(stays[kind])).method, kind).to.match(/list_changed|acknowledged/)
    }
    expect((await strong.get(tasks[0]?.id ?? ''))?.['status']).to.equal('input_required')
    for (const stream of Object.values(stays)) stream.drop()
  })

  it('of a removed tool stay readable by their owner under the last access rule', async () => {
    const tools = "tool('open'), tool('ruled'), tool('kept', 'admin')"
    const host = await startReloading({ 'mcp.config.ts': CONFIG(`${tools}, tool('stays')`, "{ 'rul*': 'admin' }") })
    const { strong, weak } = both(`${host.url}/mcp`)
    const ids = []
    for (const name of ['open', 'ruled', 'kept']) ids.push(await strong.begin(name))
    await host.write('mcp.config.ts', CONFIG("tool('stays')", "{ 'rul*': 'admin' }"))
    await host.reload()
    const [free = '', ...withheld] = ids
    for (const id of ids) expect((await strong.get(id))?.taskId).to.equal(id)
    expect((await weak.get(free))?.taskId).to.equal(free)
    for (const id of withheld) await expectUnknown(weak, id)
    expect(await weak.listed()).to.deep.equal([free])
    expect(await strong.listed()).to.deep.equal([...ids].reverse())
  })
})
