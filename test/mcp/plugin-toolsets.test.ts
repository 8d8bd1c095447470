// Tests toolsets of plugins: names, changes at run time, definitions that cannot be served, and reloads.
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { type Definition, definePrompt, defineResource, defineTool } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { type ServedToolset, uncheckedSchema } from '../../core/plugin.ts'
import { hello, plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern } from '../support/rpc.ts'
import { listen, nextMessage } from '../support/session-client.ts'
import { createTestLog, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const tool = (name: string, more: object = {}) => defineTool({ name, handler: () => name, ...more })

/** A plugin that provides one toolset. */
function provider(name: string, definitions?: readonly Definition[], place?: Parameters<InternalHost['toolset']>[2]) {
  let served: ServedToolset | undefined
  const instance = plugin(
    host => {
      served = host.toolset(name, definitions, place)
    },
    { provides: ['toolsets'] },
  )
  const handle = () => served as ServedToolset
  return {
    instance,
    replace: (next: readonly Definition[]) => handle().replace(next),
    withheld: () => handle().withheld,
  }
}

const namesAt = async (url: string, list = 'tools') =>
  ((await modern(url, `${list}/list`)).message.result[list] as Array<{ name: string }>).map(({ name }) => name)

describe('Toolset of a plugin', () => {
  it('is chosen by routes like a toolset of the config', async () => {
    const { instance } = provider('github', [tool('github_search')])
    const routes = {
      '/all': { toolsets: ['all', 'github'] },
      '/only/:name': { toolsets: ':name' },
      '/own': { toolsets: 'all' },
    }
    const { url, host } = await startHost(withPlugins({ instance }, { routes }))
    expect(await namesAt(`${url}/all`)).to.deep.equal(['github_search', 'hello'])
    expect(await namesAt(`${url}/only/github`)).to.deep.equal(['github_search'])
    expect(await namesAt(`${url}/own`)).to.deep.equal(['hello'])
    expect(host.routes.find(({ path }) => path === '/all')?.toolsets).to.deep.equal(['all', 'github'])
    expect(host.inspect('/only/github')?.toolsets).to.deep.equal(['github'])
  })

  it('is part of the hint for unknown names', async () => {
    const { instance } = provider('github')
    await expectStopped(
      withPlugins({ instance }, { routes: { '/': { toolsets: ['all', 'gihub'] } } }),
      /there is no toolset "gihub"; did you mean "github"\?/,
    )
  })

  it('stops startup if its name is in use, with both places', async () => {
    const { instance } = provider('all', [], { at: ['servers', 'all'] })
    await expectStopped(
      withPlugins({ instance }),
      /plugins\.instance\.servers\.all: .*"all", at toolsets\.all; rename one/,
    )
    await expectStopped(
      withPlugins({ one: provider('x').instance, two: provider('x').instance }),
      /plugins\.two: there is another toolset "x", at plugins\.one/,
    )
    await expectStopped(withPlugins({ instance: provider('a/b').instance }), /"a\/b" cannot name a toolset/)
  })

  it('requires the capability "toolsets"', async () => {
    const instance = plugin(host => host.toolset('github', []))
    await expectStopped(withPlugins({ instance }), /host\.toolset\(\) requires provides: \['toolsets'\]/)
  })

  it('does not hide the error of a plugin that fails', async () => {
    const instance = plugin(
      () => {
        throw new Error('no key')
      },
      { provides: ['toolsets'] },
    )
    const config = withPlugins({ instance }, { routes: { '/': { toolsets: 'github' } } })
    const error = await createHost({ server: { name: 'a', version: '1' }, ...config }, { log: createTestLog() }).catch(
      String,
    )
    expect(error)
      .to.match(/no key/)
      .and.not.match(/there is no toolset/)
  })

  it('replaces its definitions with one notification per changed list', async () => {
    const { instance, replace } = provider('github')
    const { url } = await startHost(withPlugins({ instance }, { routes: { '/': { toolsets: ['all', 'github'] } } }))
    replace([tool('one'), tool('two')])
    const changes = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
    const stream = await listen(`${url}/`, changes)
    await nextMessage(stream)
    const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
    replace([tool('one'), tool('two')])
    replace([tool('two'), tool('three'), tool('four'), definePrompt({ name: 'ask', handler: () => '' })])
    replace([tool('two'), tool('three'), tool('four'), definePrompt({ name: 'ask', handler: () => 'other' })])
    replace([tool('three'), tool('four'), page])
    const methods: string[] = []
    for (let index = 0; index < 5; index++) methods.push((await nextMessage(stream)).method as string)
    stream.drop()
    const changed = (kind: string) => `notifications/${kind}/list_changed`
    expect(methods).to.deep.equal(['tools', 'prompts', 'tools', 'resources', 'prompts'].map(changed))
    expect(await namesAt(url)).to.deep.equal(['four', 'hello', 'three'])
    expect((await modern(url, 'tools/call', { name: 'one' })).message.error.code).to.equal(-32602)
  })

  it('withholds definitions that cannot be served, with a reason that is logged once', async () => {
    const wrong = tool('wrong', { timeout: 'long' })
    const { instance, replace, withheld } = provider('github', [wrong, tool('good')])
    const { url, log } = await startHost(
      withPlugins({ instance }, { routes: { '/': { toolsets: ['all', 'github'] } } }),
    )
    const names = () => namesAt(url)
    expect(await names()).to.deep.equal(['good', 'hello'])
    expect([...withheld()]).to.have.lengthOf(1)
    expect(withheld().get('tools wrong')).to.match(/timeout/)
    for (let index = 0; index < 3; index++) replace([wrong, tool('good'), tool('good')])
    expect(await names()).to.deep.equal(['good', 'hello'])
    expect([...withheld().keys()]).to.deep.equal(['tools wrong', 'tools good'])
    replace([{ name: 'no definition' } as unknown as Definition, tool('access', { access: 'admin' })])
    expect([...withheld().keys()]).to.deep.equal(['definition 0', 'tools access'])
    expect(log.filter(({ code }) => code === 'MH1115')).to.have.lengthOf(3)
  })

  it('stops startup if a route has its name twice, with both places and the fix', async () => {
    const place = { at: ['servers', 'github'], fix: 'set a prefix' }
    const { instance } = provider('github', [tool('hello')], place)
    const routes = { '/': { toolsets: ['all', 'github'] } }
    const text =
      /two tools are called "hello": in toolset "all" and in toolset "github" \(plugins\.instance\.servers\.github\); set a prefix/
    await expectStopped(withPlugins({ instance }, { routes }), text)
    const late = plugin(
      host => {
        const served = host.toolset('github', undefined, place)
        host.onStart(() => served.replace([tool('hello')]))
      },
      { provides: ['toolsets'] },
    )
    const failure = await startHost(withPlugins({ late }, { routes })).then(() => '', String)
    expect(failure).to.match(/two tools are called "hello": in toolset "all" and in .*; set a prefix/)
  })

  it('withholds a name that is in use at run time, until it is free', async () => {
    const one = provider('one', [tool('search')])
    const two = provider('two', [])
    const routes = { '/': { toolsets: ['one', 'two'] }, '/one': { toolsets: 'one' } }
    const { url, host } = await startHost(withPlugins({ one: one.instance, two: two.instance }, { routes }))
    two.replace([tool('search'), tool('other')])
    expect(await namesAt(url)).to.deep.equal(['other', 'search'])
    expect(two.withheld().get('tools search')).to.match(/"search": in toolset "one" .* and in toolset "two"/)
    one.replace([])
    expect(two.withheld().size).to.equal(0)
    expect(await namesAt(url)).to.deep.equal(['other', 'search'])
    one.replace([tool('search')])
    expect([...one.withheld().keys()]).to.deep.equal(['tools search'])
    two.replace([])
    expect(await namesAt(`${url}/one`)).to.deep.equal(['search'])
    host.runtime.tools.add(tool('everywhere'))
    two.replace([tool('everywhere')])
    expect(two.withheld().size).to.equal(1)
    host.runtime.tools.remove('everywhere')
    expect(await namesAt(url)).to.deep.equal(['everywhere', 'search'])
  })

  it('has schemas that are listed and not checked', async () => {
    const input = uncheckedSchema({ type: 'object', required: ['gone'], properties: { n: { type: 'no such type' } } })
    const output = uncheckedSchema({ type: 'object', properties: { n: { type: 'number' } } })
    const handler = (args: object) => ({ content: [], structuredContent: { n: 'text', ...args } })
    const { instance } = provider('github', [tool('free', { input, output, handler })])
    const { url } = await startHost(withPlugins({ instance }, { routes: { '/': { toolsets: 'github' } } }))
    const [listed] = (await modern(url, 'tools/list')).message.result.tools
    expect([listed.inputSchema, listed.outputSchema]).to.deep.equal([input, output])
    const { result } = (await modern(url, 'tools/call', { name: 'free', arguments: { m: 1 } })).message
    expect(result.structuredContent).to.deep.equal({ n: 'text', m: 1 })
  })

  it('keeps its definitions in a reload, which notifies about changes once', async () => {
    const { instance, replace } = provider('github')
    const routes = { '/': { toolsets: ['all', 'github'] } }
    const { url, host } = await startHost(withPlugins({ instance }, { routes }))
    replace([tool('late')])
    const load = (toolsets: Record<string, Definition[]>) => {
      const config = {
        server: { name: 'test-host', version: '1.2.3' },
        ...withPlugins({ instance }, { routes }),
        toolsets,
      }
      const http = { port: 0, keepAliveTimeout: '30s' }
      const secrets = ['a secret for tests, long enough to be one']
      return { file: 'config', config: { ...config, http, secrets }, locate: () => undefined, isInline: true }
    }
    const report = await host.reload(load({ all: [tool('hello'), tool('next')] }) as never)
    expect(report.restart).to.deep.equal([])
    expect(await namesAt(url)).to.deep.equal(['hello', 'late', 'next'])
    const clash = await host.reload(load({ all: [tool('late')] }) as never).then(() => '', String)
    expect(clash).to.match(/two tools are called "late"/)
    expect(await namesAt(url)).to.deep.equal(['hello', 'late', 'next'])
  })
})

it('A plugin without a name serves its definitions on its own routes', async () => {
  const own = plugin(host => host.toolset([{ ...hello, name: 'own' }]))
  const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'all', plugins: { own: false as const } } }
  const { url } = await startHost(withPlugins({ own }, { routes }))
  expect([await namesAt(url), await namesAt(`${url}/off`)]).to.deep.equal([['hello', 'own'], ['hello']])
})
