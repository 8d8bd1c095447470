// Tests tool keys of plugins: wrappers of handlers, list metadata, resources, checks and types.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { ToolKey } from '../../core/plugin.ts'
import { META } from '../../core/transport.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern, type RpcOptions } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const ID = 'com.example/keys'
const DECLARED: RpcOptions = { meta: { [META.clientCapabilities]: { extensions: { [ID]: {} } } } }

const page = defineResource({ name: 'page', uri: 'ui://page', handler: () => 'a page' })
const input = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const
const runs: string[] = []
const ran = (name: string, more: object = {}) =>
  defineTool({
    name,
    input,
    ...more,
    handler: ({ n }) => {
      runs.push(`${name} ${n}`)
      return `${n}`
    },
  })

const open = ran('open', { page: 'shown', _meta: { own: 1, shown: 'no' } })
const closed = ran('closed', { page: 'shown', access: 'nobody' })
const later = ran('later', { later: 'optional' })
const plain = ran('plain')
const TOOLS = [open, closed, later, plain]

/** Decides that nobody may use what says `nobody`. */
const access = plugin(
  host =>
    host.provide('access', {
      audienceOf: () => ({
        key: 'all',
        denialOf: ({ definition }: { definition: { access?: string } }) =>
          definition.access === undefined ? undefined : { kind: 'forbidden', listed: false, scopes: [], by: 'test' },
      }),
      authorize: () => undefined,
      deniesInBody: () => false,
    } as never),
  { provides: ['access'] },
)

const PAGE = { type: 'string', description: 'The page.' } as const
const LATER = { enum: ['optional', 'required'] } as const
const toolKeys = { page: PAGE, later: LATER }

const pageKey: ToolKey<string> = {
  meta: (value, { name }) => ({ [value]: `${name} has a page` }),
  resources: () => [page],
}

const around: string[] = []
function addKeys(host: InternalHost) {
  const added = host.extension(ID, { results: { 'tools/call': ['later'] } })
  host.toolKey('page', pageKey)
  host.toolKey('later', {
    onCall(call, _value, run, { name }) {
      around.push(name)
      return added.settingsOf(call) ? added.result('later', { of: name }) : run()
    },
  })
}

describe('Tool key of a plugin', () => {
  let url: string
  before(async () => {
    const plugins = { keys: plugin(addKeys, { toolKeys }), access }
    ;({ url } = await startHost(withPlugins(plugins, { toolsets: { all: TOOLS } })))
  })
  after(stopHosts)

  const call = async (name: string, args: object, options?: RpcOptions) =>
    (await modern(url, 'tools/call', { name, arguments: args }, options)).message

  it('wraps handlers of tools that have the key only', async () => {
    expect((await call('later', { n: 1 }, DECLARED)).result).to.include({ resultType: 'later', of: 'later' })
    expect((await call('later', { n: 2 })).result.content[0].text).to.equal('2')
    expect((await call('plain', { n: 3 }, DECLARED)).result.content[0].text).to.equal('3')
    expect(runs.splice(0)).to.deep.equal(['later 2', 'plain 3'])
    expect(around.splice(0)).to.deep.equal(['later', 'later'])
  })

  it('runs after argument validation and access checks', async () => {
    expect((await call('later', { n: 'x' }, DECLARED)).result).to.include({ isError: true })
    expect((await call('closed', { n: 1 })).error).to.have.property('code')
    expect([runs, around]).to.deep.equal([[], []])
  })

  it('adds its metadata to the `_meta` of the tool in lists', async () => {
    const { tools } = (await modern(url, 'tools/list')).message.result
    const found = new Map<string, { _meta?: object }>(tools.map((tool: { name: string }) => [tool.name, tool]))
    expect([...found.keys()]).to.deep.equal(['later', 'open', 'plain'])
    expect(found.get('open')?._meta).to.deep.equal({ own: 1, shown: 'open has a page' })
    expect(found.get('plain')).not.to.have.property('_meta')
  })

  it('adds resources once for all tools with the key', async () => {
    const { resources } = (await modern(url, 'resources/list')).message.result
    expect(resources.map(({ uri }: { uri: string }) => uri)).to.deep.equal(['ui://page'])
    const { contents } = (await modern(url, 'resources/read', { uri: 'ui://page' })).message.result
    expect(contents[0].text).to.equal('a page')
  })

  it('hides its resources from callers without access to any of the tools', async () => {
    const plugins = { keys: plugin(addKeys, { toolKeys }), access }
    const { url } = await startHost(withPlugins(plugins, { toolsets: { all: [closed] } }))
    expect((await modern(url, 'resources/list')).message.result.resources).to.deep.equal([])
    expect((await modern(url, 'resources/read', { uri: 'ui://page' })).message.error).to.have.property('code')
  })

  it('stops startup if no plugin of the route reads it, and names the plugin to enable', async () => {
    const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'all', plugins: { keys: false as const } } }
    const keys = plugin(addKeys, { toolKeys })
    const off = withPlugins({ keys }, { routes, toolsets: { all: [later] } })
    await expectStopped(off, /"later", whose `later` no plugin of this route reads; enable keys there/)
    const builtIn = withPlugins({}, { toolsets: { all: [ran('task', { task: 'optional' })] } })
    await expectStopped(builtIn, 'tool "task" has `task`, which no plugin reads; enable tasks')
  })

  it('stops startup if the plugin that declares it does not register it', async () => {
    const keys = plugin(() => undefined, { toolKeys })
    const fix = "plugins.keys declares it and must call host.toolKey('later', ...) in setup"
    await expectStopped(withPlugins({ keys }, { toolsets: { all: [later] } }), fix)
    const some = plugin(host => host.routes.some(({ path }) => path === '/') && addKeys(host), { toolKeys })
    const routes = { '/': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { keys: {} } } }
    await expectStopped(withPlugins({ keys: some }, { routes, toolsets: { all: [later] } }), `reads; ${fix}`)
  })

  it('stops startup with its name if its schema is invalid', async () => {
    const keys = plugin(() => undefined, { toolKeys: { later: { type: 'int' } } })
    const wrong = withPlugins({ keys }, { toolsets: { all: [later] } })
    await expectStopped(wrong, /plugins\.keys: the schema of the tool key "later" is not valid/, undefined, 1)
  })

  it('stops startup with a suggestion if no plugin declares it', async () => {
    const keys = plugin(addKeys, { toolKeys })
    const wrong = withPlugins({ keys }, { toolsets: { all: [ran('wrong', { latter: 'optional' })] } })
    await expectStopped(wrong, /latter[\s\S]*did you mean "later"/)
    await expectStopped(withPlugins({}, { toolsets: { all: [later] } }), /\blater\b[\s\S]*unknown option/)
  })

  it('is rejected at run time if no plugin reads it', async () => {
    const { host } = await startHost(withPlugins({}))
    expect(() => host.runtime.tools.add(ran('task', { task: 'optional' }))).to.throw('which no plugin reads')
  })

  it('stops startup if malformed, undeclared, or read by two plugins', async () => {
    const cases: [string, unknown, string][] = [
      ['paeg', {}, 'the tool key "paeg" is not in its `toolKeys`; did you mean "page"?'],
      ['page', () => 1, 'toolKeys.page: wrong value; found a function'],
      ['page', { onCal: () => 1 }, 'onCal: unknown option; did you mean "onCall"?'],
      ['page', { onCall: 1 }, 'onCall: wrong value; found 1; expected a function'],
    ]
    for (const [name, key, text] of cases) {
      const wrong = plugin(host => host.toolKey(name, key as ToolKey), { toolKeys })
      await expectStopped(withPlugins({ wrong }), text)
    }
    const reading = (schema: object) =>
      plugin(host => host.toolKey('page', pageKey), { toolKeys: { page: { ...schema } } })
    const shared = plugin(host => host.toolKey('page', pageKey), { toolKeys })
    const other = plugin(host => host.toolKey('page', pageKey), { toolKeys })
    const both = 'plugins.two: the tool key "page" is already read by plugins.one; disable one of them'
    await expectStopped(withPlugins({ one: shared, two: other }), both)
    const clash = 'it declares the tool key "page", and so does one, with another schema'
    await expectStopped(withPlugins({ one: reading(PAGE), two: reading(LATER) }), clash)
    const taken = plugin(() => undefined, { toolKeys: { timeout: PAGE } })
    await expectStopped(withPlugins({ taken }), 'the tool key "timeout", which is a key of mcp-host')
  })

  it('stops startup for a tool with an invalid value, or one that its plugin refuses', async () => {
    for (const value of ['always', { use: 'optional' }, true]) {
      const plugins = { keys: plugin(addKeys, { toolKeys }) }
      await expectStopped(withPlugins(plugins, { toolsets: { all: [ran('later', { later: value })] } }), /\blater\b/)
    }
    const refusing = plugin(host => host.toolKey('later', { check: () => 'which is refused' }), { toolKeys })
    await expectStopped(withPlugins({ refusing }, { toolsets: { all: [later] } }), 'the tool "later", which is refused')
  })

  it('wraps handlers in the order in which the plugins are set up', async () => {
    const order: string[] = []
    const wrapping = (name: string) =>
      plugin(
        host =>
          host.toolKey(name, {
            onCall(_call, value, run) {
              order.push(`${name} ${value}`)
              return run()
            },
          }),
        { toolKeys: { [name]: PAGE } },
      )
    const tool = ran('both', { inner: 'i', outer: 'o' })
    const plugins = { one: wrapping('outer'), two: wrapping('inner') }
    const { url } = await startHost(withPlugins(plugins, { toolsets: { all: [tool] } }))
    await modern(url, 'tools/call', { name: 'both', arguments: { n: 1 } })
    expect(order).to.deep.equal(['outer o', 'inner i'])
  })
})
