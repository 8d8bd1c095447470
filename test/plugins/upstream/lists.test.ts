// Tests lists of upstream servers: names, changes, overrides, resources, prompts, limits and servers that are down.
import { join } from 'node:path'
import { expect } from 'chai'
import { routeTable, startPage } from '../../../cli/start-page.ts'
import { createHost, examineConfig } from '../../../core/create-host.ts'
import { type Definition, definePrompt, defineResource, defineTool, ToolError } from '../../../core/index.ts'
import type { CallRecord } from '../../../core/plugin.ts'
import { readServer } from '../../../plugins/upstream/examine.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { createLockEntry } from '../../../plugins/upstream/lock-entry.ts'
import { resolveServer } from '../../../plugins/upstream/settings.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { serve, serveModern, serveScript, stopServers } from '../../remote/support/servers.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { listen, nextMessage, openSession } from '../../support/session-client.ts'
import { createTestLog, type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { startMetered } from '../metrics/scrape.ts'

after(removeFolders)
after(async () => {
  await stopHosts()
  await stopServers()
})

const tool = (name: string, more: object = {}) => defineTool({ name, handler: args => ({ name, args }), ...more })

/** A host whose toolset is served by another host. */
async function through(
  definitions: Definition[],
  server: Partial<UpstreamOptions['servers'][string]> = {},
  own: Definition[] = [],
  settings: Parameters<typeof startHost>[2] = {},
) {
  const origin = await startHost({ toolsets: { all: definitions }, routes: { '/': { toolsets: 'all' } } })
  const config = {
    toolsets: { own },
    routes: { '/': { toolsets: ['own', 'far'] } },
    plugins: {
      'transport-streamable': {},
      upstream: { servers: { far: { url: `${origin.url}/`, ...server } } },
    },
  }
  const gateway = await startHost(config, undefined, settings)
  return { origin, gateway, url: gateway.url }
}

const list = async (url: string, kind: string, method = kind) =>
  (await modern(url, `${method}/list`)).message.result[kind] as Array<Record<string, unknown>>
const namesAt = async (url: string) => (await list(url, 'tools')).map(({ name }) => name)
const call = async (url: string, name: string, args: object = {}, options = {}) =>
  (await modern(url, 'tools/call', { name, arguments: args }, options)).message
const logged = ({ log }: StartedHost, code: string) => log.filter(line => line.code === code)

describe('Names of upstream tools', () => {
  it('have the prefix of the toolset, and are filtered by the names at the server', async () => {
    const { url } = await through(
      ['read', 'read_all', 'write'].map(name => tool(name)),
      { include: ['read*', 'write'], exclude: ['*_all'] },
    )
    expect(await namesAt(url)).to.deep.equal(['far_read', 'far_write'])
    expect((await call(url, 'far_read', { a: 1 })).result.structuredContent).to.deep.equal({
      name: 'read',
      args: { a: 1 },
    })
    expect((await call(url, 'read')).error.code).to.equal(-32_602)
  })

  it('are logged if an option has a name that the server does not have', async () => {
    const { gateway } = await through([tool('read'), tool('write')], {
      include: ['raed', 'write'],
      exclude: ['drop_*'],
      overrides: { wirte: { description: 'Writes.' }, write: { description: 'Writes.' } },
    })
    const lines = logged(gateway, 'MH2949').map(({ unmatched }) => unmatched)
    expect(lines).to.deep.equal([['include "raed"', 'exclude "drop_*"', 'overrides "wirte"']])
    expect(logged(gateway, 'MH2949')[0]?.['fix']).to.not.match(/protect/)
    const none = await through([tool('read')], { include: [] })
    expect(logged(none.gateway, 'MH2949')[0]?.['unmatched']).to.deep.equal(['include []'])
  })

  it('are logged if an override has an argument that the tool does not have, which is left out if a value is lost', async () => {
    const input = { type: 'object', properties: { a: { type: 'number' } } }
    const { url, gateway } = await through([tool('read', { input }), tool('write', { input })], {
      overrides: {
        read: { arguments: { b: { description: 'B.' } } },
        write: { arguments: { b: { value: 'fixed' } } },
      },
    })
    expect(await namesAt(url)).to.deep.equal(['far_read'])
    expect(logged(gateway, 'MH2945')[0]?.['reasons']).to.deep.equal({
      'tool write': 'it has no argument "b", which `overrides` sets to a value',
    })
    const [warning] = logged(gateway, 'MH2949')
    expect(warning?.['unmatched']).to.deep.equal(['overrides "read" argument "b"', 'overrides "write" argument "b"'])
  })

  it('withhold the new tools if an override with `access` or `value` matches none', async () => {
    for (const override of [{ access: 'admin' }, { arguments: { a: { value: 1 } } }]) {
      const { url, gateway } = await through([tool('read'), tool('drop_all')], { overrides: { drop: override } })
      expect(await namesAt(url)).to.deep.equal([])
      expect(logged(gateway, 'MH2945')[0]?.['reasons']).to.have.property(
        'tool drop_all',
        'it is new, and an override with `access` or `value` matches no tool: correct `overrides` first, then run `mcp-host accept far`',
      )
      expect(logged(gateway, 'MH2949')[0]?.['fix']).to.match(
        /`access` and fixed arguments of these overrides protect no tool/,
      )
    }
  })

  it('are shortened to 64 characters with a stable end', async () => {
    const long = 'x'.repeat(70)
    const { url, gateway } = await through([tool(long), tool(`${long}y`), tool('short')], { exclude: ['short'] })
    const [line, ...more] = logged(gateway, 'MH2961')
    expect(line?.['names']).to.have.members([`far_${long}`, `far_${long}y`])
    expect(more).to.deep.equal([])
    const names = await namesAt(url)
    expect(new Set(names)).to.have.lengthOf(2)
    for (const name of names) expect(name).to.match(/^far_x{53}_[a-z2-7]{6}$/)
    const results = await Promise.all(names.map(name => call(url, String(name))))
    expect(results.map(({ result }) => result.structuredContent.name).sort()).to.deep.equal([long, `${long}y`])
  })

  it('that a route already has stop startup, with both places and the fix', async () => {
    const failure = await through([tool('same')], { prefix: '' }, [tool('same')]).then(() => '', String)
    expect(failure).to.match(
      /plugins\.upstream\.servers\.far: two tools are called "same".*"own".*set another `prefix`/,
    )
  })
})

describe('Calls of upstream tools', () => {
  it("contain the trace context of the host, in place of the caller's", async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const tracer = plugin(
      host => host.provide('tracer', { run: (start, answer) => answer(start), headersFor: () => ({ traceparent }) }),
      { provides: ['tracer'] },
    )
    const read = defineTool({
      name: 'read',
      handler: (_, { meta }) => ({ trace: meta['traceparent'], kept: meta['example/a'] }),
    })
    const origin = await startHost({ toolsets: { all: [read] }, routes: { '/': { toolsets: 'all' } } })
    const { url } = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: ['far'] } },
      plugins: { 'transport-streamable': {}, tracer, upstream: { servers: { far: { url: `${origin.url}/` } } } },
    })
    const meta = { traceparent: '00-11111111111111111111111111111111-2222222222222222-01', 'example/a': 1 }
    const { message } = await modern(url, 'tools/call', { name: 'far_read' }, { meta })
    expect(message.result.structuredContent).to.deep.equal({ trace: traceparent, kept: 1 })
  })
})

describe('Records and metrics of upstream calls', () => {
  it('have the server, the tool at the server, the duration and the outcome', async () => {
    const fails = () => {
      throw new ToolError('no luck')
    }
    const origin = await startHost({
      toolsets: { all: [tool('read'), tool('fail', { handler: fails })] },
      routes: { '/': { toolsets: 'all' } },
    })
    const records: CallRecord[] = []
    const { url, one } = await startMetered({
      toolsets: { own: [tool('local')] },
      routes: { '/': { toolsets: ['own', 'far'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { far: { url: `${origin.url}/` } } },
        observer: plugin(host => host.onFinish(record => void records.push(record))),
      },
    })
    for (const name of ['far_read', 'far_fail', 'local']) await call(url, name)
    const found = await eventually(
      'three records',
      () => records.filter(({ method }) => method === 'tools/call'),
      ({ length }) => length === 3,
    )
    expect(found.map(({ item, upstream }) => [item?.name, upstream?.name, upstream?.tool])).to.deep.equal([
      ['far_read', 'far', 'read'],
      ['far_fail', 'far', 'fail'],
      ['local', undefined, undefined],
    ])
    for (const { upstream, milliseconds } of found.slice(0, 2))
      expect(upstream?.milliseconds).to.be.within(0, milliseconds)
    expect(await one('mcp_host_upstream_calls_total', { upstream: 'far', outcome: 'ok' })).to.equal(1)
    expect(await one('mcp_host_upstream_calls_total', { upstream: 'far', outcome: 'tool_error' })).to.equal(1)
    expect(await one('mcp_host_upstream_seconds_count', { upstream: 'far' })).to.equal(2)
  })
})

describe('The summary of a route', () => {
  it('contains the state of its servers, and those whose tools are unknown', async () => {
    const { gateway } = await through([tool('one')])
    const [summary] = gateway.host.routes
    expect(summary?.sources).to.have.lengthOf(1)
    expect(summary?.sources[0]).to.include({ toolset: 'far', isEmpty: false })
    expect(summary?.sources[0]?.state).to.match(/^up, test-host 1\.2\.3 \(2026-07-28\), 1 tool,/)
    expect(routeTable(gateway.host.routes)).to.match(/1 tool +own, far/)
    const down = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: ['far'] } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: 'http://127.0.0.1:9/' } } } },
    })
    expect(routeTable(down.host.routes)).to.match(/tools of far +far/)
    expect(startPage(down.host, 'mcp.config.json', { script: 'mcp-host', env: {}, cwd: '/srv' })).to.match(
      /\n {2}toolset far +down since .*\n/,
    )
  })
})

describe('The state of a server', () => {
  it('counts the items that are served, without filtered and withheld ones', async () => {
    const { gateway } = await through(
      [tool('one'), tool('two'), tool('three'), definePrompt({ name: 'greet', handler: () => 'Hello' })],
      { include: ['t*'], prompts: false },
    )
    expect(gateway.host.routes[0]?.sources[0]?.state).to.match(/, 2 tools, 0 resources, 0 prompts$/)
    expect(String(logged(gateway, 'MH2941')[0]?.server)).to.match(/, 2 tools, 0 resources, 0 prompts$/)
  })

  it('is in the health details of a running host, but not in the public response', async () => {
    const origin = await startHost({ toolsets: { all: [tool('one')] }, routes: { '/': { toolsets: 'all' } } })
    const servers = { far: { url: `${origin.url}/` }, gone: { url: 'http://127.0.0.1:9/' } }
    const start = (details: 'local' | 'nobody') =>
      startHost({
        toolsets: { own: [tool('local')] },
        routes: { '/': { toolsets: ['own', 'far', 'gone'] } },
        plugins: { 'transport-streamable': {}, health: { details }, upstream: { servers } },
      })
    const [detailed, hidden] = await Promise.all([start('local'), start('nobody')])
    type Health = { readonly status: string; readonly states: Record<string, string> }
    const read = async (url: string) => (await (await fetch(`${url}/health`)).json()) as Health
    const { status, states } = await read(detailed.url)
    expect(status).to.equal('ready')
    expect(states).to.have.all.keys('far', 'gone')
    expect(states['far']).to.match(/^up, .*1 tool,/)
    expect(states['gone']).to.match(/^down since /)
    expect(await read(hidden.url)).to.deep.equal({ status: 'ready' })
  })
})

describe('The time of a state', () => {
  it('is the start of the state, and each error has its own time', async () => {
    const clock = createManualClock()
    let status = 500
    const { origin } = await serve((_, response) => void response.writeHead(status).end())
    const { url } = await startHost(
      {
        toolsets: {},
        routes: { '/': { toolsets: ['far'] } },
        plugins: { 'transport-streamable': {}, health: {}, upstream: { servers: { far: { url: `${origin}/` } } } },
      },
      undefined,
      { clock },
    )
    const stateNow = async () =>
      ((await (await fetch(`${url}/health`)).json()) as { states: { far: string } }).states.far
    const change = async (next: number) => {
      status = next
      await clock.advance(120_000)
      return eventually('an attempt with the new status', async () => {
        const state = await stateNow()
        return state.includes(String(next)) ? state : undefined
      })
    }
    const begun = new Date(clock.now()).toISOString()
    expect(await stateNow()).to.match(new RegExp(`^down since ${begun}: .*500`))
    const later = await change(503)
    expect(later).to.match(new RegExp(`^down since ${begun}; last error at (?!${begun})\\S+Z: .*503`))
    expect(await change(401)).to.match(new RegExp(`^needs login since (?!${begun})\\S+Z`))
  })
})

describe('Warnings about names that no tool has', () => {
  it('are left out while the tools of a server are unknown, except for probable typing errors', async () => {
    const names = ['far_*', 'locall']
    const { log } = await startHost({
      toolsets: { own: [tool('local')] },
      routes: { '/': { toolsets: ['own', 'far'] } },
      tools: { limits: Object.fromEntries(names.map(name => [name, { timeout: '9s' }])) },
      plugins: {
        'transport-streamable': {},
        audit: { file: join(await makeFolder({}), 'audit.jsonl'), arguments: { far_read: ['path'], locall: ['a'] } },
        'rate-limit': { tools: Object.fromEntries(names.map(name => [name, '9/1m'])) },
        'tool-policy': { rules: Object.fromEntries(names.map(name => [name, { scope: 'a' }])) },
        upstream: { servers: { far: { url: 'http://127.0.0.1:9/' } } },
      },
    })
    const warned = log.filter(({ code }) => ['MH1113', 'MH2204', 'MH2721'].includes(String(code)))
    expect(warned.map(({ code }) => code).sort()).to.deep.equal(['MH1113', 'MH1113', 'MH2204', 'MH2721'])
    expect(JSON.stringify(warned)).to.not.match(/far_/)
  })
})

describe('The explanation of a host that is not started', () => {
  it('says that its upstream servers are not connected', async () => {
    const host = await createHost(
      {
        server: { name: 'a', version: '1.0.0' },
        routes: { '/': { toolsets: ['far'] } },
        plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: 'http://127.0.0.1:1/' } } } },
      },
      { purpose: 'inspect' },
    )
    expect(host.inspect('/')?.explainPlugins()).to.deep.equal([
      'upstream: server "far": not connected by this command: its tools are unknown; run `mcp-host accept far` to add them to the lock file',
    ])
    await host.close()
  })
})

describe('Overrides of upstream tools', () => {
  it('rename, describe, fix and hide', async () => {
    const input = {
      type: 'object',
      properties: { cloudId: { type: 'string' }, summary: { type: 'string' }, level: { type: 'number' } },
      required: ['cloudId', 'summary', 'level'],
    } as const
    const { url } = await through([tool('createIssue', { input, description: 'Old.' })], {
      overrides: {
        createIssue: {
          name: 'open_ticket',
          description: 'Opens a ticket.',
          annotations: { destructiveHint: false },
          arguments: {
            cloudId: { value: 'a1b2' },
            summary: { name: 'title', description: 'The title.' },
            level: { default: 3 },
          },
        },
      },
    })
    const [listed] = await list(url, 'tools')
    expect(listed).to.include({ name: 'open_ticket', description: 'Opens a ticket.' })
    expect(listed?.['annotations']).to.deep.equal({ destructiveHint: false })
    expect(listed?.['inputSchema']).to.deep.equal({
      type: 'object',
      properties: { title: { type: 'string', description: 'The title.' }, level: { type: 'number', default: 3 } },
      required: ['title'],
    })
    const { result } = await call(url, 'open_ticket', { title: 'Broken', cloudId: 'other', summary: 'x' })
    expect(result.structuredContent.args).to.deep.equal({ cloudId: 'a1b2', summary: 'Broken', level: 3 })
  })

  it('keep the fixed value of an argument whose name another one gets, in any order', async () => {
    const input = { type: 'object', properties: { org: { type: 'string' }, tenant: { type: 'string' } } }
    const org = { name: 'tenant' }
    const tenant = { value: 'fixed' }
    for (const overridden of [
      { org, tenant },
      { tenant, org },
    ]) {
      const { url } = await through([tool('read', { input })], { overrides: { read: { arguments: overridden } } })
      const sent = (await call(url, 'far_read', { tenant: 'x' })).result.structuredContent.args
      expect(sent).to.deep.equal({ org: 'x', tenant: 'fixed' })
      expect((await call(url, 'far_read')).result.structuredContent.args).to.deep.equal({ tenant: 'fixed' })
    }
  })
})

describe('Changes of an upstream server', () => {
  it('reach clients with one notification per list', async () => {
    const clock = createManualClock()
    const { origin, url } = await through([tool('one')], {}, [], { clock })
    const stream = await listen(`${url}/`, { toolsListChanged: true })
    await nextMessage(stream)
    origin.host.runtime.tools.add(tool('two'))
    origin.host.runtime.tools.add(tool('three'))
    await eventually('all tools are listed', async () => {
      await clock.advance(500)
      return (await namesAt(url)).length === 3
    })
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
    stream.drop()
  })

  it('of resources reach clients that subscribe', async () => {
    const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
    const { origin, url } = await through([page])
    const stream = await listen(`${url}/`, { resourceSubscriptions: ['test://page'] })
    await nextMessage(stream)
    const updates = nextMessage(stream)
    let isUpdated = false
    updates.then(() => {
      isUpdated = true
    })
    await eventually('the update arrives', () => {
      origin.host.runtime.resourceUpdated('test://page')
      return isUpdated
    })
    expect((await updates).params.uri).to.equal('test://page')
    stream.drop()
  })
})

describe('Instructions of an upstream server', () => {
  async function served(instructions: 'ignore' | 'append' | undefined, text: string, own: object = {}) {
    const origin = await startHost({
      server: { name: 'origin', version: '1.0.0', instructions: text },
      toolsets: { all: [tool('one')] },
      routes: { '/': { toolsets: 'all' } },
    })
    const { url } = await startHost({
      server: { name: 'gateway', version: '1.0.0', instructions: 'Own text.' },
      toolsets: { own: [tool('local')] },
      routes: { '/': { toolsets: ['own', 'far'] }, '/other': { toolsets: ['own'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { far: { url: `${origin.url}/`, ...(instructions && { instructions }), ...own } } },
      },
    })
    const shown = async (path: string) => (await modern(`${url}${path}`, 'server/discover')).message.result.instructions
    return { url, shown }
  }

  it('are not passed on by default', async () => {
    const { shown } = await served(undefined, 'Foreign text.')
    expect(await shown('/')).to.equal('Own text.')
  })

  it('follow those of the host with `append`, on routes with its toolset', async () => {
    const { url, shown } = await served('append', 'Foreign\u200b text.')
    expect(await shown('/other')).to.equal('Own text.')
    expect(await shown('/')).to.match(/^Own text\.\n\n.*"far".*"far_".*\nForeign\\u\{200b\} text\.$/s)
    const session = await openSession(url)
    expect(session.initialized.message.result.instructions).to.equal(await shown('/'))
  })

  it('are cut, and hidden from callers who can list none of its items', async () => {
    const { shown } = await served('append', 'x'.repeat(20_000))
    expect((await shown('/')).length).to.be.within(8_192, 8_400)
    const hidden = await served('append', 'Foreign text.', { include: ['none'] })
    expect(await hidden.shown('/')).to.equal('Own text.')
  })
})

describe('Resources, prompts and completions of an upstream server', () => {
  it('are served, with access and filters', async () => {
    const complete = { topic: (value: string) => [`${value}!`] }
    const { url } = await through(
      [
        defineResource({ name: 'page', uri: 'test://page', mimeType: 'text/plain', handler: () => 'text' }),
        defineResource({ name: 'hidden', uri: 'test://hidden', handler: () => 'text' }),
        defineResource({
          name: 'on',
          uriTemplate: 'test://on/{topic}',
          complete,
          handler: ({ topic }) => `on ${topic}`,
        }),
        definePrompt({
          name: 'greet',
          arguments: { who: { required: true, complete: value => [`${value}?`] } },
          handler: ({ who }) => `Hello ${who}`,
        }),
      ],
      { resources: ['test://page', 'test://on/*'] },
    )
    expect((await list(url, 'resources')).map(({ uri }) => uri)).to.deep.equal(['test://page'])
    expect((await list(url, 'prompts')).map(({ name }) => name)).to.deep.equal(['far_greet'])
    const read = async (uri: string) => (await modern(url, 'resources/read', { uri })).message
    expect((await read('test://page')).result.contents).to.deep.equal([
      { uri: 'test://page', mimeType: 'text/plain', text: 'text' },
    ])
    expect((await read('test://on/bees')).result.contents[0].text).to.equal('on bees')
    expect((await read('test://hidden')).error.code).to.equal(-32_602)
    const { messages } = (await modern(url, 'prompts/get', { name: 'far_greet', arguments: { who: 'Ada' } })).message
      .result
    expect(messages[0].content.text).to.equal('Hello Ada')
    const ref = { type: 'ref/prompt', name: 'far_greet' }
    const argument = { name: 'who', value: 'A' }
    const { completion } = (await modern(url, 'completion/complete', { ref, argument })).message.result
    expect(completion.values).to.deep.equal(['A?'])
    const template = { type: 'ref/resource', uri: 'test://on/{topic}' }
    const other = (await modern(url, 'completion/complete', { ref: template, argument: { name: 'topic', value: 'b' } }))
      .message
    expect(other.result.completion.values).to.deep.equal(['b!'])
  })
})

describe('The time limit for connecting', () => {
  it('is longer for programs that can download the server', () => {
    const limits = [['npx', '-y', 'server'], '/usr/bin/uvx', 'npx.cmd', 'node'].map(command => {
      const options = { servers: { far: { command } } } as UpstreamOptions
      return resolveServer('far', options, { directory: '.', at: [] }).connectTimeout
    })
    expect(limits).to.deep.equal([60_000, 60_000, 60_000, 15_000])
    const own = { connectTimeout: '5s', servers: { far: { command: 'npx' } } } as const
    expect(resolveServer('far', own, { directory: '.', at: [] }).connectTimeout).to.equal(5_000)
  })
})

describe('Reads of an upstream server', () => {
  it('are requested again if the connection ends', async () => {
    const methods = ['resources/read', 'prompts/get', 'completion/complete', 'tools/call']
    const seen: string[] = []
    const url = await serveScript(({ id, method = '', json, response }) => {
      const isLost = methods.includes(method) && !seen.includes(method)
      seen.push(method)
      if (method === 'server/discover')
        return json({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no' } }, 400)
      if (id === undefined) return void response.writeHead(202).end()
      if (isLost) {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        return void response.destroy()
      }
      json({
        jsonrpc: '2.0',
        id,
        result: {
          protocolVersion: '2025-11-25',
          serverInfo: { name: 'breaking', version: '1' },
          capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
          tools: [{ name: 'add', inputSchema: { type: 'object' } }],
          resources: [{ name: 'page', uri: 'test://page' }],
          resourceTemplates: [],
          prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }],
          contents: [],
          messages: [],
          completion: { values: ['Ada'] },
        },
      })
    })
    const gateway = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: 'far' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url, prefix: '' } } } },
    })
    const ref = { type: 'ref/prompt', name: 'greet' }
    for (const [method, params] of [
      ['resources/read', { uri: 'test://page' }],
      ['prompts/get', { name: 'greet' }],
      ['completion/complete', { ref, argument: { name: 'who', value: 'A' } }],
    ] as const)
      expect((await modern(gateway.url, method, params)).message, method).to.have.property('result')
    const { content } = (await call(gateway.url, 'add')).result
    expect(content[0].text).to.contain('may have been executed')
    const counts = methods.map(method => seen.filter(one => one === method).length)
    expect(counts).to.deep.equal([2, 2, 2, 1])
  })
})

describe('An upstream server that is down', () => {
  it('shows the error of a stack trace, and where the log has all of it', async () => {
    const command = [process.execPath, '-e', "const boot = () => { throw new Error('no database') }; boot()"]
    const gateway = await startHost({
      routes: { '/': { toolsets: ['crashing'] } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { crashing: { command } } } },
    })
    const shown = [logged(gateway, 'MH2942')[0]?.['reason'], gateway.host.inspect('/')?.explainPlugins().join()]
    for (const text of shown)
      expect(text)
        .to.match(/it printed: Error: no database \(.*MH2946\)/)
        .and.not.include('boot')
  })

  it('reports what its program printed, without the values of its variables', async () => {
    const secret = 'hunter2-hunter2'
    const script =
      "console.log('Starting'); console.error('API_KEY is missing: ' + process.env.DESK_SECRET); process.exit(1)"
    const gateway = await startHost({
      routes: { '/': { toolsets: ['crashing'] } },
      plugins: {
        'transport-streamable': {},
        upstream: {
          servers: { crashing: { command: [process.execPath, '-e', script], env: { DESK_SECRET: secret } } },
        },
      },
    })
    const reason = String(logged(gateway, 'MH2942')[0]?.['reason'])
    for (const part of ['(stdout) Starting', 'API_KEY is missing: [redacted: DESK_SECRET]', 'exit code 1', '`passEnv`'])
      expect(reason).to.include(part)
    const texts = logged(gateway, 'MH2946').map(({ line }) => String(line))
    expect(texts.join()).to.include('(stdout) Starting')
    expect(JSON.stringify(gateway.log)).to.not.include(secret)
  })

  it('reports a program that logs to stdout', async () => {
    const script = "setInterval(() => console.log('tick'), 10)"
    const gateway = await startHost({
      routes: { '/': { toolsets: ['chatty'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { chatty: { command: [process.execPath, '-e', script] } } },
      },
    })
    expect(logged(gateway, 'MH2942')[0]?.['reason']).to.match(/must log to stderr; it printed: \(stdout\) tick/)
  })

  it('does not stop others, keeps its lists, and comes back', async () => {
    const definitions = [tool('far')]
    const origin = await startHost({ toolsets: { all: definitions }, routes: { '/': { toolsets: 'all' } } })
    const gateway = await startHost({
      toolsets: { own: [tool('own')] },
      routes: { '/': { toolsets: ['own', 'up', 'down'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { up: { url: `${origin.url}/` }, down: { url: 'http://127.0.0.1:1/' } } },
      },
    })
    expect(await namesAt(gateway.url)).to.deep.equal(['own', 'up_far'])
    const [line] = logged(gateway, 'MH2942')
    expect(line).to.include({ upstream: 'down', state: 'down' })
    expect(gateway.host.inspect('/')?.explainPlugins().join()).to.match(
      /server "up": up, .*1 tool,.*server "down": down since/,
    )
    await origin.host.close({ grace: 0 })
    const { result } = await call(gateway.url, 'up_far')
    expect(result.isError).to.equal(true)
    const outage = gateway.host
      .inspect('/')
      ?.explainPlugins()
      .join()
      .match(/server "up": down since (\S+):/)?.[1]
    expect(result.content[0].text, 'the first error')
      .to.contain(outage ?? 'no outage')
      .and.to.contain('"up"')
    expect(logged(gateway, 'MH2942').map(({ upstream }) => upstream)).to.deep.equal(['down', 'up'])
    expect((await call(gateway.url, 'up_far')).result.content[0].text)
      .to.match(/"up" has been unavailable since 2\d{3}-/)
      .and.not.match(/127\.0\.0\.1|:\/\//)
    expect(gateway.host.inspect('/')?.explainPlugins().join()).to.contain(new URL(origin.url).host)
    expect(await namesAt(gateway.url)).to.deep.equal(['own', 'up_far'])
    expect((await call(gateway.url, 'own')).result.structuredContent.name).to.equal('own')
  })

  it('is described as up, with the reason, if only its lists cannot be read', async () => {
    const clock = createManualClock()
    let isBroken = false
    const url = await serveModern(
      ({ id, json }) => {
        if (isBroken) json({ jsonrpc: '2.0', id, error: { code: -32_603, message: 'no database' } })
        else json({ jsonrpc: '2.0', id, result: { tools: [{ name: 'a', inputSchema: { type: 'object' } }] } })
      },
      { tools: {} },
    )
    const config = {
      toolsets: {},
      routes: { '/': { toolsets: 'far' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url, refresh: '1m' } } } },
    }
    const gateway = await startHost(config, undefined, { clock })
    isBroken = true
    await clock.advance(120_000)
    await eventually('the lists are read again', () => logged(gateway, 'MH2944').length > 0)
    expect(gateway.host.inspect('/')?.explainPlugins().join()).to.match(
      /: up, .*1 tool,.*; the lists could not be read at 2\d{3}-.*no database/,
    )
  })

  it('delays startup for 3 s if its tools are accepted, otherwise for 15 s', async () => {
    for (const [isAccepted, limit] of [
      [true, 3_000],
      [false, 15_000],
    ] as const) {
      let isOpen = false
      const waiting: Array<() => void> = []
      const url = await serveModern(
        ({ id, json }) => {
          const answer = () =>
            json({ jsonrpc: '2.0', id, result: { tools: [{ name: 'a', inputSchema: { type: 'object' } }] } })
          if (isOpen) answer()
          else waiting.push(answer)
        },
        { tools: {} },
      )
      const servers = { far: { url } }
      const settings = resolveServer('far', { servers }, { directory: '.', at: [] })
      const lists = {
        tools: [{ name: 'a', inputSchema: { type: 'object' } }],
        resources: [],
        resourceTemplates: [],
        prompts: [],
      }
      const entry = createLockEntry(lists, false, settings)
      const folder = await makeFolder(
        isAccepted ? { 'mcp.lock.json': JSON.stringify({ upstreams: { far: entry } }) } : {},
      )
      const clock = createManualClock()
      let gateway: StartedHost | undefined
      const starting = startHost(
        {
          toolsets: {},
          routes: { '/': { toolsets: 'far' } },
          plugins: { 'transport-streamable': {}, upstream: { servers } },
        },
        folder,
        { clock },
      ).then(started => {
        gateway = started
      })
      await eventually('the lists are requested', () => waiting.length > 0)
      await clock.advance(limit - 1)
      expect(gateway).to.equal(undefined)
      await clock.advance(1)
      await starting
      const { url: own } = gateway as unknown as StartedHost
      expect(await namesAt(own)).to.deep.equal(isAccepted ? ['far_a'] : [])
      isOpen = true
      for (const answer of waiting) answer()
      await eventually('its tools are listed', async () => (await namesAt(own)).join() === 'far_a')
    }
  })

  it('stops startup with whenDown "fail"', async () => {
    const { origin } = await serve((_, response) => void response.writeHead(500).end())
    const failure = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: ['far', 'other'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { whenDown: 'fail', servers: { far: { url: origin }, other: { url: origin } } },
      },
    }).then(() => '', String)
    for (const name of ['far', 'other'])
      expect(failure).to.match(new RegExp(`plugins\\.upstream\\.servers\\.${name}: cannot connect: .*500`))
  })
})

describe('mcp-host doctor --config', () => {
  it('connects to each upstream server', async () => {
    const definitions = [tool('one'), tool('two'), definePrompt({ name: 'greet', handler: () => 'Hello' })]
    const origin = await startHost({ toolsets: { all: definitions }, routes: { '/': { toolsets: 'all' } } })
    const servers = {
      up: { url: `${origin.url}/`, exclude: ['two'], prompts: ['g'] },
      down: { url: 'http://127.0.0.1:1/' },
      program: { command: 'no-such-program' },
    }
    const config = {
      server: { name: 'a', version: '1.0.0' },
      routes: { '/': { toolsets: ['up', 'down', 'program'] } },
      plugins: { 'transport-streamable': {}, upstream: { servers } },
    }
    const loaded = { file: 'config', config, locate: () => undefined, isInline: true as const }
    const findings = await examineConfig(loaded, createTestLog())
    expect(findings.map(({ level }) => level)).to.deep.equal(['ok', 'wrong', 'wrong'])
    expect(findings[0]).to.include({ check: 'upstream: server "up"' })
    expect(findings[0]?.text).to.match(
      /test-host 1\.2\.3, protocol version 2026-07-28, 1 tool, 0 resources, 0 prompts$/,
    )
    expect(findings[2]?.text).to.match(/no-such-program.*ENOENT/)
  })

  it('reports names that two toolsets of a route have in common, with both places', async () => {
    const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'page' })
    const origin = await startHost({ toolsets: { all: [page, tool('one')] }, routes: { '/': { toolsets: 'all' } } })
    const url = `${origin.url}/`
    const examine = async (toolsets: string[], more: object = {}) => {
      const config = {
        server: { name: 'a', version: '1.0.0' },
        toolsets: { own: [page, tool('two_one')] },
        routes: { '/': { toolsets }, '/three': { toolsets: ['three'] } },
        plugins: {
          'transport-streamable': {},
          upstream: { servers: { one: { url }, two: { url, ...more }, three: { url } } },
        },
      }
      const loaded = { file: 'config', config, locate: () => undefined, isInline: true as const }
      const findings = await examineConfig(loaded, createTestLog())
      return findings
        .filter(({ level }) => level !== 'ok')
        .map(({ check, level, text }) => `${check}: ${level} ${text}`)
    }
    const [clash, ...others] = await examine(['one', 'two'])
    expect(clash).to.match(/^upstream: server "two": wrong MH1107: .*"test:\/\/page".*servers\.one.*servers\.two/)
    expect(others).to.deep.equal([])
    expect(await examine(['one', 'two'], { uris: 'wrap' })).to.deep.equal([])
    expect((await examine(['own', 'two'])).join()).to.match(/MH1107: .*"own".*servers\.two/)
    expect((await examine(['own', 'two'], { resources: false })).join()).to.match(/MH1107: .*"two_one".*"own"/)
    expect(await examine(['own', 'two'], { resources: false, prefix: 'x_' })).to.deep.equal([])
  })

  it('counts the differences of an upstream server from the lock file', async () => {
    const definitions = [tool('same'), tool('changed', { description: 'now' }), tool('new')]
    const origin = await startHost({ toolsets: { all: definitions }, routes: { '/': { toolsets: 'all' } } })
    const settings = resolveServer('far', { servers: { far: { url: `${origin.url}/` } } }, { directory: '.', at: [] })
    const { snapshot } = await readServer(settings)
    const before = {
      ...snapshot,
      tools: [...snapshot.tools.slice(0, 1), { ...snapshot.tools[1], description: 'before' }, { name: 'removed' }],
    }
    const lock = JSON.stringify({ upstreams: { far: createLockEntry(before, false, settings) } })
    const folder = await makeFolder({ 'mcp.lock.json': lock })
    const config = {
      server: { name: 'a', version: '1.0.0' },
      routes: { '/': { toolsets: ['far'] } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: `${origin.url}/` } } } },
    }
    const loaded = { file: join(folder, 'config'), config, locate: () => undefined, isInline: true as const }
    const [finding] = await examineConfig(loaded, createTestLog())
    expect(finding).to.include({ level: 'note', fix: 'review them with `mcp-host accept far --dry-run`' })
    expect(finding?.text).to.match(/3 tools.*; differences from the lock file: 1 changed, 1 new, 1 removed$/)
  })

  it('uses the access token of the host', async () => {
    const received: unknown[] = []
    const { origin } = await serve((request, response) => {
      received.push(request.headers.authorization)
      response.writeHead(401).end()
    })
    const auth = { kind: 'client-credentials', clientId: 'a', clientSecret: 'b', issuer: 'https://127.0.0.1:1' }
    const config = {
      server: { name: 'a', version: '1.0.0' },
      routes: { '/': { toolsets: ['far'] } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: origin, auth } } } },
    }
    const loaded = { file: 'config', config: config as never, locate: () => undefined, isInline: true as const }
    const [finding] = await examineConfig(loaded, createTestLog())
    expect(finding?.level).to.equal('wrong')
    expect(finding?.text).to.match(/127\.0\.0\.1:1/)
    expect(received).to.deep.equal([])
  })
})

describe('An upstream server that lies', () => {
  const ROUTES = { '/': { toolsets: 'far' } }
  const started = (url: string) =>
    startHost({
      toolsets: {},
      routes: ROUTES,
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url } } } },
    })

  /** Answers `tools/list` with these pages. */
  const servePages = (pageOf: (cursor: unknown) => object) =>
    serveScript(({ id, method, params, json }) => {
      const capabilities = { tools: {} }
      if (method === 'server/discover')
        json({
          jsonrpc: '2.0',
          id,
          result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities },
        })
      else json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...pageOf(params['cursor']) } })
    })

  it('is reported: no MCP server, endless pages, too many tools', async () => {
    const { origin } = await serve(
      (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello'),
    )
    const inputSchema = { type: 'object' }
    const endless = await servePages(cursor => ({ tools: [], nextCursor: cursor === undefined ? 'a' : 'a' }))
    const many = await servePages(cursor => {
      const from = Number(cursor ?? 0)
      const tools = Array.from({ length: 600 }, (_, index) => ({ name: `t${from + index}`, inputSchema }))
      return { tools, nextCursor: String(from + 600) }
    })
    for (const [url, text] of [
      [origin, /MCP|JSON|response/i],
      [endless, /repeats the cursor/],
      [many, /more than 1000 items/],
    ] as const) {
      const host = await started(url)
      const [line] = logged(host, 'MH2942')
      expect(line?.['reason'], url).to.match(text)
      expect(await namesAt(host.url)).to.deep.equal([])
    }
  })

  it('has its invalid tools left out', async () => {
    const tools = [
      { name: 'good', inputSchema: { type: 'object' } },
      { name: 'text', inputSchema: { type: 'string' } },
      { inputSchema: { type: 'object' } },
      ...Array.from({ length: 900 }, (_, index) => ({ name: `bad${index}`, inputSchema: { type: 'array' } })),
    ]
    const host = await started(await servePages(() => ({ tools })))
    expect(await namesAt(host.url)).to.deep.equal(['far_good'])
    expect(logged(host, 'MH1115')[0]).to.include({ toolset: 'far', withheld: 901 }).and.not.have.property('fix')
  })
})

describe('An upstream server whose lists depend on the client', () => {
  it('lists the tools that send requests to the client, except roots and those that `asks` excludes', async () => {
    const url = await serveScript(({ id, method, params, json }) => {
      const { capabilities = {} } = params as { capabilities?: object }
      if (method === 'initialize') tools = Object.keys(capabilities).sort()
      const handshake = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a' } }
      const listed = tools.map(name => ({ name, inputSchema: { type: 'object' } }))
      json({ jsonrpc: '2.0', id, result: method === 'initialize' ? handshake : { tools: listed } })
    })
    let tools: string[] = []
    for (const [server, expected] of [
      [{}, ['elicitation', 'extensions', 'sampling']],
      [{ asks: { sample: false, roots: true } }, ['elicitation', 'extensions', 'roots']],
      [{ sessions: 'shared' }, ['extensions']],
    ] as const) {
      const servers = { far: { url, prefix: '', revision: '2025-11-25', ...server } } as const
      const plugins = { 'transport-streamable': {}, upstream: { servers } }
      const host = await startHost({ toolsets: {}, routes: { '/': { toolsets: 'far' } }, plugins })
      expect(await namesAt(host.url)).to.deep.equal(expected)
    }
  })
})

describe('Trust in an upstream server', () => {
  const serving = async (tools: object[], prompts: object[] = []) => {
    const server = await serveModern(
      ({ id, method, json }) => {
        const lists = method === 'tools/list' ? { tools } : { prompts }
        json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...lists } })
      },
      { tools: {}, prompts: {} },
    )
    return startHost({
      toolsets: {},
      routes: { '/': { toolsets: 'far' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: server, prefix: '' } } } },
    })
  }

  it('escapes invisible characters of every kind, and leaves out items whose names have them', async () => {
    const hidden = [
      '\u00ad',
      '\u034f',
      '\u061c',
      '\u180e',
      '\u200d',
      '\u2028',
      '\u2029',
      '\u206a',
      '\u3164',
      '\ufe0f',
      '\ufff9',
      '\u{e0100}',
      '\u0085',
      '\u007f',
      '\b',
    ]
    const emoji = '\u{1f469}\u200d\u{1f4bb} \u2764\ufe0f\ntext\t\\n'
    const object = (properties: object) => ({ type: 'object', properties })
    const about = hidden.map(one => `a${one}b`)
    const host = await serving(
      [
        { name: 'shown', inputSchema: object({ a: { description: emoji, enum: about } }), _meta: { note: about[0] } },
        { name: 'key', inputSchema: object({ 'a\u200bb': {} }) },
      ],
      [{ name: 'good' }, { name: 'bad', arguments: [{ name: 'a\u00adb' }] }],
    )
    const [shown, ...more] = await list(host.url, 'tools')
    expect(more).to.deep.equal([])
    const schema = shown?.['inputSchema'] as { properties: Record<string, Record<string, unknown>> } | undefined
    const a = schema?.properties['a']
    expect(a?.['description']).to.equal(emoji)
    expect(a?.['enum']).to.deep.equal(hidden.map(one => `a\\u{${one.codePointAt(0)?.toString(16)}}b`))
    expect(shown?.['_meta']).to.include({ note: 'a\\u{ad}b' })
    expect((await list(host.url, 'prompts')).map(({ name }) => name)).to.deep.equal(['good'])
    expect(logged(host, 'MH2945')[0]).to.include({ omitted: 2 })
  })

  it('leaves out large and deep items, and refuses large lists', async () => {
    const inputSchema = { type: 'object' }
    const tools = [
      { name: 'small', inputSchema },
      { name: 'meta', inputSchema, _meta: { x: 'x'.repeat(70_000) } },
      { name: 'hints', inputSchema, annotations: { x: 'x'.repeat(70_000) } },
    ]
    expect(await namesAt((await serving(tools)).url)).to.deep.equal(['small'])
    const args = [{ name: 'a', description: 'x'.repeat(70_000) }]
    const { url } = await serving([], [{ name: 'large', arguments: args }])
    expect(await list(url, 'prompts')).to.deep.equal([])
    const large = await serving(
      Array.from({ length: 70 }, (_, at) => ({ name: `t${at}`, inputSchema, x: 'x'.repeat(62_000) })),
    )
    expect(await namesAt(large.url)).to.deep.equal([])
    expect(logged(large, 'MH2942')).to.have.lengthOf(1)
  })

  it('leaves out long URIs, and reads templates in linear time', async () => {
    const resources = [{ uri: `test:${'x'.repeat(8_192)}`, name: 'long' }]
    const resourceTemplates = [
      { uriTemplate: `test:${'{'.repeat(60_000)}`, name: 'open' },
      { uriTemplate: 'test:{one}/{two}', name: 'good' },
    ]
    const server = await serveModern(
      ({ id, method, json }) => {
        const lists = method === 'resources/list' ? { resources } : { resourceTemplates }
        json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...lists } })
      },
      { resources: {}, completions: {} },
    )
    const gateway = await startHost({
      toolsets: {},
      routes: { '/': { toolsets: 'far' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { far: { url: server } } } },
    })
    expect(await list(gateway.url, 'resources')).to.deep.equal([])
    const templates = await list(gateway.url, 'resourceTemplates', 'resources/templates')
    expect(templates.map(({ name }) => name)).to.deep.equal(['good'])
    expect(logged(gateway, 'MH2945')[0]).to.include({ omitted: 2 })
  })

  it('leaves out large schemas and references to other documents, and escapes invisible characters', async () => {
    const big = { type: 'object', properties: { a: { type: 'string', description: 'x'.repeat(2_000) } } } as const
    const { gateway, url } = await through(
      [tool('big', { input: big }), tool('plain', { description: 'Safe\u202e text\u{e0041}' })],
      { maxSchema: 1_000 },
    )
    const [listed, ...more] = await list(url, 'tools')
    expect(more).to.deep.equal([])
    expect(listed).to.include({ name: 'far_plain', description: 'Safe\\u{202e} text\\u{e0041}' })
    expect(logged(gateway, 'MH2945')).to.have.lengthOf(1)
  })

  it('limits the size and depth of results', async () => {
    let deep: unknown = 'end'
    for (let level = 0; level < 70; level++) deep = { deep }
    const { url } = await through(
      [tool('large', { handler: () => 'x'.repeat(5_000) }), tool('deep', { handler: () => ({ deep }) })],
      { maxResult: '2kb' },
    )
    for (const [name, text] of [
      ['far_large', /too large/],
      ['far_deep', /levels/],
    ] as const) {
      const { result } = await call(url, name)
      expect(result.isError, name).to.equal(true)
      expect(result.content[0].text).to.match(text)
    }
  })

  it('forwards named headers only, and never the token of the caller', async () => {
    const show = tool('show', { handler: (_: unknown, ctx: { headers: object }) => ({ headers: ctx.headers }) })
    const { url } = await through([show], { headers: { 'x-own': 'of the host' }, forwardHeaders: ['x-tenant'] })
    const headers = { authorization: 'Bearer secret', cookie: 'a=b', 'x-tenant': 'acme', 'x-other': 'no' }
    const { result } = await call(url, 'far_show', {}, { headers })
    expect(result.structuredContent.headers).to.include({ 'x-own': 'of the host', 'x-tenant': 'acme' })
    expect(JSON.stringify(result)).to.not.match(/secret|a=b|x-other/)
    for (const name of ['authorization', 'Cookie', 'mcp-session-id', 'x-forwarded-for', 'host']) {
      const failure = await through([show], { forwardHeaders: [name] }).then(() => '', String)
      expect(failure, name).to.match(/never forwarded/)
    }
    for (const name of ['Host', 'content-length', 'mcp-session-id', 'a name']) {
      const failure = await through([show], { headers: { [name]: '1' } }).catch(error => error)
      expect(failure, name).to.have.property('code', 'MH2943')
    }
  })
})
