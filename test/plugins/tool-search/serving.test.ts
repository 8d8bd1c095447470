// Routes with `search`: tool lists in every protocol version, notifications, startup errors and reload.
import { expect } from 'chai'
import { type Config, defineTool } from '../../../core/index.ts'
import { HANDSHAKE_REVISIONS } from '../../../core/transport.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { eventually } from '../../support/eventually.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { legacy, modern, type RpcMessage } from '../../support/rpc.ts'
import { listen, nextMessage, openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { selectCases } from '../../support/thorough.ts'

afterEach(stopHosts)
after(stopReloading)

const OWN = ['call_tool', 'find_tools']
const TOOLS = Array.from({ length: 300 }, (_, index) =>
  defineTool({
    name: `${['order', 'stock', 'user'][index % 3]}_${index}`,
    description: `Does number ${index}.`,
    handler: () => `ran ${index}`,
  }),
)
const PINNED = { pinned: ['order_0', 'stock_1*'] }
const IN_LIST = [...OWN, ...TOOLS.map(({ name }) => name).filter(name => /^(?:order_0|stock_1.*)$/.test(name))].sort()

const serve = (routes: Config['routes'], more: Partial<Config> = {}) =>
  startHost({ toolsets: { all: TOOLS }, routes, ...more })
const namesIn = ({ result }: RpcMessage): string[] => result.tools.map(({ name }: { name: string }) => name)
const namesAt = async (url: string) => namesIn((await modern(url, 'tools/list')).message)
const found = ({ result }: RpcMessage): string[] =>
  JSON.parse(result.content[0].text).tools.map(({ name }: { name: string }) => name)

describe('Route with `search`', () => {
  it('lists pinned tools and its two own tools of 300, and calls any tool by name', async () => {
    const { url } = await serve({ '/': { toolsets: 'all', search: PINNED }, '/plain': { toolsets: 'all' } })
    expect(IN_LIST).to.have.lengthOf(2 + 1 + 39)
    expect(await namesAt(url)).to.deep.equal(IN_LIST)
    expect(await namesAt(`${url}/plain`)).to.have.lengthOf(300)
    for (const { name } of selectCases(TOOLS, 15)) {
      const { result } = (await modern(url, 'tools/call', { name })).message
      expect(result.content[0].text).to.equal(`ran ${name.split('_')[1]}`)
    }
    const { error } = (await modern(`${url}/plain`, 'tools/call', { name: 'find_tools', arguments: { query: 'a' } }))
      .message
    expect(error.message).to.contain('unknown tool')
  })

  it('without pins lists only its two own tools, for each way to configure it', async () => {
    const off = { 'tool-search': false as const }
    const { url } = await serve({
      '/short': { toolsets: 'all', search: {} },
      '/long': { toolsets: 'all', plugins: { 'tool-search': {} } },
      '/off': { toolsets: 'all', plugins: off },
    })
    expect(await namesAt(`${url}/short`)).to.deep.equal(OWN)
    expect(await namesAt(`${url}/long`)).to.deep.equal(OWN)
    expect(await namesAt(`${url}/off`)).to.have.lengthOf(300)
    const plugins = { 'transport-streamable': {}, 'tool-search': { pinned: ['user_2'] } }
    const general = await serve(
      { '/': { toolsets: 'all' }, '/own': { toolsets: 'all', search: {} }, '/off': { toolsets: 'all', plugins: off } },
      { plugins },
    )
    expect(await namesAt(general.url)).to.deep.equal([...OWN, 'user_2'])
    expect(await namesAt(`${general.url}/own`), 'its own options over the general ones').to.deep.equal(OWN)
    expect(await namesAt(`${general.url}/off`)).to.have.lengthOf(300)
  })

  it('finds and calls tools in every protocol version', async () => {
    const { url } = await serve({
      '/': { toolsets: 'all', search: PINNED },
      '/stateless': { toolsets: 'all', search: PINNED, stateless: true },
    })
    const query = { name: 'find_tools', arguments: { query: 'user 299' } }
    const call = { name: 'call_tool', arguments: { name: 'user_299' } }
    const check = async (ask: (method: string, params?: Record<string, unknown>) => Promise<RpcMessage>) => {
      expect(namesIn(await ask('tools/list'))).to.deep.equal(IN_LIST)
      expect(found(await ask('tools/call', query))[0]).to.equal('user_299')
      expect((await ask('tools/call', call)).result.content[0].text).to.equal('ran 299')
    }
    await check(async (method, params) => (await modern(url, method, params)).message)
    for (const revision of HANDSHAKE_REVISIONS) {
      const options = { revision }
      await check(async (method, params) => (await legacy(`${url}/stateless`, method, params, options)).message)
      const session = await openSession(url, { revision })
      await check(async (method, params) => (await session.request(method, params)).message)
    }
  })

  it('returns five tools, or up to 20 on request, as text and structured content', async () => {
    const { url } = await serve({ '/': { toolsets: 'all', search: {} } })
    const find = async (args: object) =>
      (await modern(url, 'tools/call', { name: 'find_tools', arguments: args })).message
    const five = await find({ query: 'order' })
    expect(found(five)).to.have.lengthOf(5)
    expect(five.result.structuredContent).to.deep.equal(JSON.parse(five.result.content[0].text))
    expect(five.result.structuredContent.tools[0]).to.deep.equal({
      name: 'order_0',
      description: 'Does number 0.',
      inputSchema: { type: 'object' },
    })
    expect(found(await find({ query: 'order', limit: 20 }))).to.have.lengthOf(20)
    expect(found(await find({ query: 'order' })), 'of equals by name').to.deep.equal([
      'order_0',
      'order_102',
      'order_105',
      'order_108',
      'order_111',
    ])
    for (const args of [{ query: 'order', limit: 21 }, { query: 'order', limit: 0 }, { query: '' }, {}]) {
      expect((await find(args)).result, JSON.stringify(args)).to.have.property('isError', true)
    }
    const long = await find({ query: 'x'.repeat(513) })
    expect(long.result.content[0].text).to.contain('512')
    const nothing = await find({ query: 'zebra' })
    expect(nothing.result.structuredContent).to.deep.equal({
      tools: [],
      hint: 'No tool fits. Try other words: what is done, and to what.',
    })
    expect(found(await find({ query: ' - !? ' }))).to.deep.equal([])
  })

  it('paginates pinned tools', async () => {
    const many = Array.from({ length: 900 }, (_, index) =>
      defineTool({ name: `${index % 3 === 0 ? 'b' : 'a'}${index}`, handler: () => '' }),
    )
    const { url } = await startHost({
      toolsets: { all: many },
      routes: { '/': { toolsets: 'all', search: { pinned: ['a*'] } } },
    })
    const first = (await modern(url, 'tools/list')).message
    const second = (await modern(url, 'tools/list', { cursor: first.result.nextCursor })).message
    expect([namesIn(first).length, namesIn(second).length]).to.deep.equal([500, 102])
    expect([...namesIn(first), ...namesIn(second)].filter(name => name.startsWith('b'))).to.deep.equal([])
    expect(second.result).not.to.have.property('nextCursor')
  })

  it('marks its list as cacheable for all callers, unless callers differ', async () => {
    const { url } = await serve({ '/': { toolsets: 'all', search: PINNED } })
    expect((await modern(url, 'tools/list')).message.result.cacheScope).to.equal('public')
    const varying = plugin(host => host.variesByCaller())
    const plugins = { 'transport-streamable': {}, varying }
    const own = await serve({ '/': { toolsets: 'all', search: PINNED } }, { plugins })
    expect((await modern(own.url, 'tools/list')).message.result.cacheScope).to.equal('private')
  })

  it('sends list_changed, finds added tools, and lists them if a glob pins them', async () => {
    const { url, host } = await serve({ '/': { toolsets: 'all', search: PINNED } })
    const stream = await listen(url, { toolsListChanged: true })
    const session = await openSession(url)
    const opened = await session.get()
    await nextMessage(stream)
    const find = async () =>
      found((await modern(url, 'tools/call', { name: 'find_tools', arguments: { query: 'zebra crossing' } })).message)
    expect(await find()).to.deep.equal([])
    host.runtime.tools.add(defineTool({ name: 'paint_zebra_crossing', handler: () => 'painted' }))
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
    expect((await nextMessage(opened)).method).to.equal('notifications/tools/list_changed')
    expect(await find()).to.deep.equal(['paint_zebra_crossing'])
    expect(await namesAt(url)).to.deep.equal(IN_LIST)
    host.runtime.tools.add(defineTool({ name: 'stock_1_zebra', handler: () => '' }))
    expect(await namesAt(url)).to.deep.equal([...IN_LIST, 'stock_1_zebra'].sort())
    host.runtime.tools.remove('paint_zebra_crossing')
    expect(await find()).to.deep.equal(['stock_1_zebra'])
  })
})

describe('`search` configuration errors', () => {
  const stopped = (search: object, words: string | RegExp, more: object = {}) =>
    expectStopped({ toolsets: { all: TOOLS }, routes: { '/': { toolsets: 'all', search, ...more } } } as never, words)

  it('fail startup with their location', async () => {
    await stopped({ pinned: ['ordr_0'] }, 'there is no tool "ordr_0" to pin; did you mean "order_0"?')
    await stopped({ pinned: ['order_0'], limit: 3 }, /routes\['\/'\]\.search\.limit[\s\S]*unknown option/)
    await stopped({ pined: [] }, 'did you mean "pinned"?')
    await stopped({ pinned: 'order_0' }, /routes\['\/'\]\.search\.pinned[\s\S]*expected/)
    await stopped({}, "`search` and plugins['tool-search']", { plugins: { 'tool-search': {} } })
    await stopped({}, "`search` and plugins['tool-search']", { plugins: { 'tool-search': false } })
    const twin = defineTool({ name: 'call_tool', handler: () => '' })
    const routes = { '/': { toolsets: 'all', search: {} } }
    await expectStopped({ toolsets: { all: [twin] }, routes }, 'two tools are called "call_tool"')
  })

  it('name the line of an invalid pin, in the long and short form', async () => {
    const config = (route: string) => `import { defineTool } from HERE
export default {
  server: { name: 'x', version: '1' },
  http: { port: 0 },
  toolsets: { all: [defineTool({ name: 'a', handler: () => '' })] },
  routes: {
    '/': {
      toolsets: 'all',
      ${route}
    },
  },
  plugins: { 'transport-streamable': {} },
}`
    for (const route of [
      "search: {\n pinned: ['a', 'nobody'] },",
      "plugins: { 'tool-search': {\n pinned: ['a', 'nobody'] } },",
    ]) {
      const [outcome] = await Promise.allSettled([startReloading({ 'mcp.config.ts': config(route) })])
      expect(outcome).to.have.property('status', 'rejected')
      expect((outcome as PromiseRejectedResult).reason.message).to.match(/mcp\.config\.ts:10: .*"nobody"/)
    }
  })

  it('include a warning for a glob that pins no tool', async () => {
    const { log } = await serve({ '/': { toolsets: 'all', search: { pinned: ['later_*'] } } })
    expect(log).to.deep.include({
      level: 'warn',
      code: 'MH2920',
      path: "routes['/'].search.pinned[0]",
      message: `routes['/'].search.pinned[0]: "later_*" pins no tool that is defined at startup`,
    })
  })
})

describe('`search` reload', () => {
  it('applies new pins and notifies clients, but enabling search requires a restart', async () => {
    const config = (search: string) => `import { defineTool } from HERE
const tool = name => defineTool({ name, handler: () => name })
export default {
  server: { name: 'x', version: '1' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: ['a', 'b', 'c'].map(tool) },
  routes: { '/': { toolsets: 'all', ${search} } },
  plugins: { 'transport-streamable': {} },
}`
    const { url, write, reload } = await startReloading({ 'mcp.config.ts': config("search: { pinned: ['a'] }") })
    const session = await openSession(url)
    const opened = await session.get()
    expect(namesIn((await session.request('tools/list')).message)).to.deep.equal(['a', ...OWN])
    await write('mcp.config.ts', config("search: { pinned: ['b'] }"))
    expect((await reload()).taken).to.include("routes['/'].search")
    expect((await nextMessage(opened)).method).to.equal('notifications/tools/list_changed')
    expect(namesIn((await session.request('tools/list')).message)).to.deep.equal(['b', ...OWN])
    await write('mcp.config.ts', config("search: { pinned: ['nobody'] }"))
    const [refused] = await Promise.allSettled([reload()])
    expect(refused).to.have.property('status', 'rejected')
    await write('mcp.config.ts', config(''))
    expect((await reload()).restart).to.deep.equal(["routes['/'].search"])
    const names = async () => namesIn((await session.request('tools/list')).message)
    await eventually('the old pins', names, found => found.join() === ['b', ...OWN].join())
  })
})
