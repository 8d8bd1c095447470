// Tests tool keys that extensions read: hooks around handlers, list metadata and resources.
import { expect } from 'chai'
import { defineApp, defineResource, defineTool } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { ToolKey } from '../../core/plugin.ts'
import { META } from '../../core/transport.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern, type RpcOptions } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const ID = 'com.example/keys'
const DECLARED: RpcOptions = { meta: { [META.clientCapabilities]: { extensions: { [ID]: {} } } } }

const shown = defineApp({ name: 'shown', html: '<!doctype html>' })
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

const open = ran('open', { app: shown, _meta: { own: 1, shown: 'no' } })
const closed = ran('closed', { app: shown, access: 'nobody' })
const later = ran('later', { task: 'optional' })
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

const app: ToolKey = {
  meta: ({ name }) => ({ shown: `${name} has a page` }),
  resources: () => [page],
}

const around: string[] = []
function addKeys(host: InternalHost) {
  const added = host.extension(ID, {
    results: { 'tools/call': ['later'] },
    toolKeys: {
      app,
      task: {
        around(call, { name }, run) {
          around.push(name)
          return added.settingsOf(call) ? added.result('later', { of: name }) : run()
        },
      },
    },
  })
}

const provides = ['task', 'app']

describe('Extension tool key', () => {
  let url: string
  before(async () => {
    const plugins = { keys: plugin(addKeys, { provides }), access }
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
    const plugins = { keys: plugin(addKeys, { provides }), access }
    const { url } = await startHost(withPlugins(plugins, { toolsets: { all: [closed] } }))
    expect((await modern(url, 'resources/list')).message.result.resources).to.deep.equal([])
    expect((await modern(url, 'resources/read', { uri: 'ui://page' })).message.error).to.have.property('code')
  })

  it('stops startup if no plugin of the route reads it', async () => {
    const alone = withPlugins({}, { toolsets: { all: [later] } })
    await expectStopped(alone, 'tool "later" has `task`, which no plugin reads')
    const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'all', plugins: { keys: false as const } } }
    const plugins = { keys: plugin(addKeys, { provides }) }
    const off = withPlugins(plugins, { routes, toolsets: { all: [later] } })
    await expectStopped(off, /"later".*`task`/)
  })

  it('is rejected at run time if no plugin reads it', async () => {
    const { host } = await startHost(withPlugins({}))
    expect(() => host.runtime.tools.add(later)).to.throw('which no plugin reads')
  })

  it('stops startup if malformed or read by two extensions', async () => {
    const cases: [object, string][] = [
      [{ toolKeys: { tasks: {} } }, 'no tool has a key "tasks"; there are: task, app'],
      [{ toolKeys: { task: () => 1 } }, 'the key "task" takes an object; found a function'],
      [{ toolKeys: { task: { arround: () => 1 } } }, 'has an unknown part "arround"'],
      [{ toolKeys: { task: { around: 1 } } }, '`around` of the key "task" takes a function; found a number'],
    ]
    for (const [extension, text] of cases) {
      const wrong = plugin(host => void host.extension(ID, extension))
      await expectStopped(withPlugins({ wrong }), text)
    }
    const two = (id: string) => plugin(host => void host.extension(id, { toolKeys: { app } }), { provides })
    const both = withPlugins({ one: two('com.example/one'), other: two('com.example/two') })
    await expectStopped(both, 'the key "app" of tools is read by another extension here')
  })

  it('stops startup for a tool with an invalid value', async () => {
    for (const task of ['always', { use: 'optional', retry: 'never' }, { retry: 'safe' }, true]) {
      const tool = ran('later', { task })
      const plugins = { keys: plugin(addKeys, { provides }) }
      await expectStopped(withPlugins(plugins, { toolsets: { all: [tool] } }), /\btask\b/)
    }
  })
})
