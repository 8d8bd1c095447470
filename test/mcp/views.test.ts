// Tests lists, pagination and cached views of definitions.
import { expect } from 'chai'
import { type Definition, definePrompt, defineResource, defineTool } from '../../core/index.ts'
import { createCatalog } from '../../core/mcp/definitions/catalog.ts'
import { createViews, PAGE_SIZE, type ViewRequest } from '../../core/mcp/routes/view.ts'
import { LATEST_HANDSHAKE, MODERN_REVISION, rulesOf } from '../../core/transport.ts'
import { createMemoryChangeBus } from '../support/memory-services.ts'
import { legacy, modern, type RpcMessage } from '../support/rpc.ts'
import { createTestLog, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const padded = (index: number) => String(index).padStart(5, '0')
const range = (count: number) => Array.from({ length: count }, (_, index) => padded(index))
const serve = (all: Definition[], more: object = {}) =>
  startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } }, ...more })

const LISTS: ReadonlyArray<[string, string, (name: string) => Definition]> = [
  ['tools/list', 'tools', name => defineTool({ name, handler: () => '' })],
  ['prompts/list', 'prompts', name => definePrompt({ name, handler: () => '' })],
  ['resources/list', 'resources', name => defineResource({ name, uri: `x:${name}`, handler: () => '' })],
  [
    'resources/templates/list',
    'resourceTemplates',
    name => defineResource({ name, uriTemplate: `x:${name}/{a}`, handler: () => '' }),
  ],
]

/** Every page of a list, by following the cursors. */
async function pagesOf(url: string, method: string, list: string, between?: (page: number) => void) {
  const pages: string[][] = []
  for (let cursor: string | undefined; pages.length === 0 || cursor !== undefined; ) {
    const { result } = (await modern(url, method, cursor === undefined ? {} : { cursor })).message
    pages.push(result[list].map(({ name }: RpcMessage) => name))
    cursor = result.nextCursor
    between?.(pages.length)
  }
  return pages
}

describe('Lists', () => {
  it('have a stable order independent of definition order', async () => {
    const make = LISTS[0]?.[2]
    const tools = ['b', 'a', 'C', 'ä', '10', '9', 'a b'].map(name => make?.(name) as Definition)
    const [one, other] = [await serve(tools), await serve(tools.toReversed())]
    const expected = [['10', '9', 'C', 'a', 'a b', 'b', 'ä']]
    for (const { url } of [one, other, one]) {
      expect(await pagesOf(url, 'tools/list', 'tools')).to.deep.equal(expected)
    }
  })

  for (const [method, list, make] of LISTS) {
    // The pages of all kinds are cut by the same code.
    const isSampled = method !== 'tools/list'
    it(`of ${method} have pages of ${PAGE_SIZE} and a cursor on all but the last`, async () => {
      for (const [count, sizes] of [
        [1, [1]],
        [PAGE_SIZE, [PAGE_SIZE]],
        [PAGE_SIZE + 1, [PAGE_SIZE, 1]],
        [2 * PAGE_SIZE, [PAGE_SIZE, PAGE_SIZE]],
      ] as const) {
        if (isSampled && count !== PAGE_SIZE + 1) continue
        const { url } = await serve(range(count).map(make))
        const pages = await pagesOf(url, method, list)
        expect(pages.map(page => page.length)).to.deep.equal(sizes)
        expect(pages.flat()).to.deep.equal(range(count))
      }
    })
  }

  it('are empty on a route without such definitions, which declares no capability for them', async () => {
    const { url } = await serve([], { stateless: true })
    const { capabilities } = (await modern(url, 'server/discover')).message.result
    expect(capabilities).not.to.have.any.keys('tools', 'resources', 'prompts')
    for (const [method, list] of LISTS) {
      const { status, message } = await modern(url, method)
      expect([status, message.result?.[list]], method).to.deep.equal([200, []])
      const older = await legacy(url, method)
      expect([older.status, older.message.result], method).to.deep.equal([200, { [list]: [] }])
    }
  })

  it('reject an unknown cursor with -32602', async () => {
    const { url } = await serve([defineTool({ name: 'a', handler: () => '' })])
    for (const cursor of ['', 'abc', '500', 5, {}, ['a'], Buffer.from('before:a').toString('base64url')]) {
      const { status, message } = await modern(url, 'tools/list', { cursor })
      expect([status, message.error?.code], JSON.stringify(cursor)).to.deep.equal([200, -32602])
    }
  })

  it('neither repeat nor skip unchanged items if changed between pages', async () => {
    const make = (name: string) => defineTool({ name, handler: () => '' })
    const { url, host } = await serve(range(PAGE_SIZE + 10).map(make))
    const pages = await pagesOf(url, 'tools/list', 'tools', page => {
      if (page > 1) return
      // The last item of the first page goes, and one comes before all others.
      host.runtime.tools.remove(padded(PAGE_SIZE - 1), { toolset: 'all' })
      host.runtime.tools.add(make('!'))
    })
    expect(pages.map(page => page.length)).to.deep.equal([PAGE_SIZE, 10])
    expect(pages.flat()).to.deep.equal(range(PAGE_SIZE + 10))
  })

  it('omit non-object output schemas in older protocol versions', async () => {
    const output = (type: string) => defineTool({ name: type, output: { type }, handler: () => '' })
    const { url } = await serve([output('object'), output('array')], { stateless: true })
    const schemas = (message: RpcMessage) => message.result.tools.map((tool: RpcMessage) => tool.outputSchema?.type)
    expect(schemas((await legacy(url, 'tools/list')).message)).to.deep.equal([undefined, 'object'])
    expect(schemas((await modern(url, 'tools/list')).message)).to.deep.equal(['array', 'object'])
  })
})

describe('View cache', () => {
  /** A tool that counts the checks of its access by views. */
  function watched(name: string) {
    const tool = defineTool({ name, handler: () => name })
    const looks = { count: 0 }
    Object.defineProperty(tool, 'access', {
      get() {
        looks.count += 1
        return undefined
      },
    })
    return { tool, looks }
  }

  it('builds views at startup and not per request', async () => {
    const { tool, looks } = watched('a')
    const toolsets = { one: [tool], two: [] }
    const routes = { '/': { toolsets: 'one' }, '/t/:set?': { toolsets: ':set', default: ['one', 'two'] } }
    const { url } = await startHost({ toolsets, routes })
    const atStart = looks.count
    expect(atStart).to.be.greaterThan(0)
    for (const path of ['', '/t', '/t/one', '']) {
      for (const method of ['tools/list', 'server/discover']) {
        expect((await modern(url + path, method)).status).to.equal(200)
      }
      await modern(url + path, 'tools/call', { name: 'a' })
    }
    expect(looks.count).to.equal(atStart)
  })

  it('builds a view once per configureSession combination and again after a change', async () => {
    const { tool, looks } = watched('a')
    const { url, host } = await startHost({
      toolsets: { one: [tool], two: [] },
      routes: { '/': { toolsets: 'one' } },
      configureSession({ headers }, session) {
        if (headers['x-more'] !== undefined) session.addToolset('two')
        if (headers['x-title'] !== undefined) session.server = { ...session.server, title: `${headers['x-title']}` }
      },
    })
    let last = looks.count
    const built = async (headers: Record<string, string>) => {
      await modern(url, 'tools/list', {}, { headers })
      const count = looks.count - last
      last = looks.count
      return count
    }
    expect(await built({})).to.equal(0)
    // `addToolset` checks the combination once, too.
    expect([await built({ 'X-More': '1' }), await built({ 'X-More': '1' })]).to.deep.equal([2, 0])
    expect([await built({ 'X-Title': 'a' }), await built({ 'X-Title': 'b' })]).to.deep.equal([1, 1])
    expect([await built({ 'X-Title': 'a' }), await built({ 'X-More': '2' })]).to.deep.equal([0, 0])
    host.runtime.tools.add(defineTool({ name: 'b', handler: () => '' }))
    last = looks.count
    expect([await built({}), await built({})]).to.deep.equal([1, 0])
  })

  it('serializes each page once', () => {
    const { views, request } = unitViews()
    const first = views(request('a')).page('tools', undefined, rulesOf(MODERN_REVISION))
    expect(views(request('a')).page('tools', undefined, rulesOf(MODERN_REVISION))).to.equal(first)
    expect(views(request('a')).page('tools', undefined, rulesOf(LATEST_HANDSHAKE))).not.to.equal(first)
  })

  it('keeps the 1,000 most recently used combinations', () => {
    const { views, request } = unitViews()
    const [first, second] = [views(request('first')), views(request('second'))]
    for (let index = 0; index < 998; index += 1) views(request(`${index}`))
    expect(views(request('first')), 'within the bound').to.equal(first)
    views(request('one more'))
    expect(views(request('first')), 'used lately').to.equal(first)
    expect(views(request('second')), 'longest unused').not.to.equal(second)
  })

  it('distinguishes every input of a view: toolsets, definitions, server, capabilities, keys, unlisted items, cache scope', () => {
    const { views, request, catalog } = unitViews()
    const base = request('a')
    const extra = [catalog.compile(defineTool({ name: 'x', handler: () => '' }), 'test')]
    const others = [
      { ...base, toolsets: [] },
      { ...base, extra },
      { ...base, server: { ...base.server, version: '2' } },
      { ...base, capabilities: { experimental: { a: {} } } },
      { ...base, cacheScope: 'public' as const },
      { ...base, keys: new Map() },
      { ...base, isHidden: () => true },
    ]
    const all = [base, ...others].map(views)
    expect(new Set(all)).to.have.property('size', 8)
    const { keys, isHidden, ...plain } = base
    const copy = { ...structuredClone(plain), keys, isHidden }
    expect([copy, { ...base, extra: [...extra] }].map(views)).to.deep.equal([all[0], all[2]])
  })
})

/** Views of a catalog without a host around them. */
function unitViews() {
  const bus = createMemoryChangeBus()
  const tool = defineTool({ name: 'a', handler: () => '' })
  const catalog = createCatalog(new Map([['all', [tool]]]), {
    buses: [bus],
    log: createTestLog(),
    problemsOf: () => [],
    decidesAccess: false,
    readsKey: () => false,
    fixForKey: () => '',
    suggest: () => '',
    combinations: () => [],
    check: () => undefined,
  })
  const keys = new Map()
  const isHidden = () => false
  const request = (name: string) => ({
    keys,
    isHidden,
    toolsets: ['all'],
    extra: [],
    server: { name, version: '1' },
    capabilities: {},
    cacheScope: 'private' as const,
  })
  const { find } = createViews(catalog)
  const views = (asked: ViewRequest) => find(asked, { key: '', denialOf: () => undefined })
  return { views, request, catalog }
}
