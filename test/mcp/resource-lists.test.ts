// Tests `list` of resource templates: entries for one caller at the end of `resources/list`.
import { expect } from 'chai'
import { readSurface } from '../../cli/lock/read-surface.ts'
import { type CallContext, type Config, defineResource, type ResourceDefinition } from '../../core/index.ts'
import { MAX_LIST_TIME, MAX_LISTED, MAX_LISTED_ENTRY, MAX_LISTED_PAGE } from '../../core/mcp/client-limits.ts'
import { PAGE_SIZE } from '../../core/mcp/routes/view.ts'
import { removeFolders } from '../config/folder.ts'
import { as } from '../plugins/tool-policy/bearer-json.ts'
import { serve as serveWithPolicy } from '../plugins/tool-policy/serve-tools.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern, type RpcMessage, type RpcOptions } from '../support/rpc.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { type StartOptions, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)
after(async () => {
  await stopReloading()
  await removeFolders()
})

type List = NonNullable<ResourceDefinition['list']>
const padded = (index: number) => String(index).padStart(5, '0')
const range = (count: number) => Array.from({ length: count }, (_, index) => padded(index))
const entry = (id: string, scheme = 'note') => ({ uri: `${scheme}:${id}`, name: id })
const notes = (list: List, more: Partial<ResourceDefinition> = {}) =>
  defineResource({ name: 'notes', uriTemplate: 'note:{id}', list, handler: ({ id }) => `note ${id}`, ...more })
const fixed = (name: string) => defineResource({ name, uri: `fixed:${name}`, handler: () => '' })

const serve = (all: ResourceDefinition[], more: Partial<Config> = {}, options: StartOptions = {}) =>
  startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } }, ...more }, undefined, options)

const pageOf = async (url: string, cursor?: string, options: RpcOptions = {}) =>
  (await modern(url, 'resources/list', cursor === undefined ? {} : { cursor }, options)).message.result
const namesOf = (result: RpcMessage): string[] => result.resources.map(({ name }: RpcMessage) => name)

/** The names on each page. */
async function pagesOf(page: (cursor?: string) => Promise<RpcMessage>, between?: (page: number) => void) {
  const pages: string[][] = []
  for (let cursor: string | undefined; pages.length === 0 || cursor !== undefined; ) {
    const result = await page(cursor)
    pages.push(namesOf(result))
    cursor = result.nextCursor
    between?.(pages.length)
  }
  return pages
}

describe('`list` of a resource template', () => {
  it('adds its entries after the other resources, with the MIME type of the template', async () => {
    const list: List = () => [
      { ...entry('b'), title: 'B', size: 3, annotations: { priority: 1 }, icons: [], _meta: { a: 1 } },
      { ...entry('a'), mimeType: 'text/html' },
    ]
    const { url, log } = await serve([notes(list, { mimeType: 'text/plain' }), fixed('z')])
    const { resources, ttlMs, cacheScope, nextCursor } = await pageOf(url)
    expect(resources).to.deep.equal([
      { uri: 'fixed:z', name: 'z' },
      { uri: 'note:a', name: 'a', mimeType: 'text/html' },
      {
        uri: 'note:b',
        name: 'b',
        title: 'B',
        mimeType: 'text/plain',
        size: 3,
        annotations: { priority: 1 },
        icons: [],
        _meta: { a: 1 },
      },
    ])
    expect([ttlMs, cacheScope, nextCursor]).to.deep.equal([0, 'private', undefined])
    expect(log.filter(({ level }) => level !== 'info')).to.deep.equal([])
  })

  it('receives the context of the call, in sessions too', async () => {
    const seen: unknown[] = []
    const list = async ({ session, route, client, signal }: CallContext) => {
      seen.push([session?.id, route.path, route.params, client.revision, signal.aborted])
      return [entry('a')]
    }
    const { url } = await serve([notes(list)], { routes: { '/:set': { toolsets: ':set' } } })
    const session = await openSession(`${url}/all`)
    const { resources, ...rest } = (await session.request('resources/list')).message.result
    expect([resources, rest]).to.deep.equal([[entry('a')], {}])
    expect(namesOf(await pageOf(`${url}/all`))).to.deep.equal(['a'])
    expect(seen).to.deep.equal([
      [session.id, '/:set', { set: 'all' }, '2025-11-25', false],
      [undefined, '/:set', { set: 'all' }, '2026-07-28', false],
    ])
  })

  it('is paginated together with the other resources', async () => {
    for (const [items, entries, sizes] of [
      [0, 0, [0]],
      [PAGE_SIZE, 1, [PAGE_SIZE, 1]],
      [PAGE_SIZE - 1, 2, [PAGE_SIZE, 1]],
      [PAGE_SIZE + 1, PAGE_SIZE, [PAGE_SIZE, PAGE_SIZE, 1]],
      [0, 2 * PAGE_SIZE, [PAGE_SIZE, PAGE_SIZE]],
    ] as const) {
      const { url } = await serve([
        ...range(items).map(fixed),
        notes(() =>
          range(entries)
            .toReversed()
            .map(id => entry(id)),
        ),
      ])
      const session = await openSession(url)
      const legacyPage = async (cursor?: string) =>
        (await session.request('resources/list', cursor === undefined ? {} : { cursor })).message.result
      for (const page of [(cursor?: string) => pageOf(url, cursor), legacyPage]) {
        const pages = await pagesOf(page)
        expect(pages.map(names => names.length)).to.deep.equal(sizes)
        expect(pages.flat()).to.deep.equal([...range(items), ...range(entries)])
      }
    }
  })

  it('neither repeats nor skips unchanged entries if entries change between pages', async () => {
    const ids = new Set(range(PAGE_SIZE + 10))
    const { url } = await serve([notes(() => [...ids].map(id => entry(id)))])
    const pages = await pagesOf(
      cursor => pageOf(url, cursor),
      page => {
        if (page > 1) return
        ids.delete(padded(PAGE_SIZE - 1))
        ids.add('!')
      },
    )
    expect(pages.map(names => names.length)).to.deep.equal([PAGE_SIZE, 10])
    expect(pages.flat()).to.deep.equal(range(PAGE_SIZE + 10))
  })

  it('keeps its cursors valid after the template is removed, for resources only', async () => {
    const { url, host } = await serve([notes(() => range(PAGE_SIZE + 1).map(id => entry(id))), fixed('a')])
    const { nextCursor } = await pageOf(url)
    host.runtime.resources.remove('note:{id}', { toolset: 'all' })
    expect((await pageOf(url, nextCursor)).resources).to.deep.equal([])
    expect(namesOf(await pageOf(url))).to.deep.equal(['a'])
    const other = await modern(url, 'tools/list', { cursor: nextCursor })
    expect(other.message.error.code).to.equal(-32602)
  })

  it('runs only for callers who can read the template', async () => {
    const callers: unknown[] = []
    const own = (name: string, more: Partial<ResourceDefinition>) =>
      defineResource({
        name,
        uriTemplate: `${name}:{id}`,
        list: ({ user }) => {
          callers.push([name, user?.subject])
          return [entry(`of-${user?.subject}`, name)]
        },
        handler: () => '',
        ...more,
      })
    const all = [
      own('open', {}),
      own('admin', { access: 'admin' }),
      own('shown', { access: 'admin', visibility: 'listed' }),
      own('ruled', {}),
    ]
    const { url } = await serveWithPolicy({ rules: { 'resource:ruled:*': { scope: 'rule' } } }, { toolsets: { all } })
    const namesFor = async (subject: string, scopes: string[]) =>
      namesOf(await pageOf(url, undefined, { headers: as({ subject, scopes }) }))
    expect(await namesFor('ada', [])).to.deep.equal(['of-ada'])
    expect(callers).to.deep.equal([['open', 'ada']])
    expect(await namesFor('bob', ['admin', 'rule'])).to.deep.equal(['of-bob', 'of-bob', 'of-bob', 'of-bob'])
  })

  it('runs for templates that are added at run time or by configureSession', async () => {
    const { url, host } = await serve([fixed('a')], {
      stateless: true,
      configureSession({ headers }, session) {
        if (headers['x-more']) session.add(notes(() => [entry('chosen')]))
      },
    })
    expect(namesOf(await pageOf(url, undefined, { headers: { 'X-More': '1' } }))).to.deep.equal(['a', 'chosen'])
    expect(namesOf(await pageOf(url))).to.deep.equal(['a'])
    host.runtime.resources.add(notes(() => [entry('added', 'run')], { uriTemplate: 'run:{id}' }))
    expect(namesOf(await pageOf(url))).to.deep.equal(['a', 'added'])
  })

  it('that fails is logged with the name of the resource, and the other entries are listed', async () => {
    const failing: Array<[string, List, string]> = [
      [
        'throws',
        () => {
          throw new Error('no disk')
        },
        'no disk',
      ],
      [
        'rejects',
        async () => {
          throw new Error('no net')
        },
        'no net',
      ],
      ['object', () => ({ resources: [] }) as never, '`list` must return an array'],
      [
        'asks',
        async ({ roots }) => {
          await roots()
          return []
        },
        'resources/list does not support requests to the client',
      ],
    ]
    const all = failing.map(([name, list]) => notes(list, { name, uriTemplate: `${name}:{id}` }))
    const { url, log } = await serve([...all, notes(() => [entry('a')]), fixed('b')])
    expect(namesOf(await pageOf(url))).to.deep.equal(['b', 'a'])
    const errors = log.filter(({ level }) => level === 'error')
    expect(errors.map(({ message }) => message)).to.deep.equal(failing.map(() => 'a resource list failed'))
    for (const [name, , text] of failing) {
      const line = errors.find(({ resource }) => resource === name)
      expect(String(line?.['err']), name).to.include(text)
    }
  })

  it('is stopped after its time limit', async () => {
    const clock = createManualClock()
    let reason: unknown
    let began = false
    const slow: List = ({ signal }) =>
      new Promise((_, reject) => {
        began = true
        signal.addEventListener('abort', () => {
          reason = signal.reason
          reject(reason)
        })
      })
    const { url, log } = await serve([notes(slow), fixed('a')], {}, { clock })
    const page = pageOf(url)
    await eventually('it runs', () => began)
    await clock.advance(MAX_LIST_TIME)
    expect(namesOf(await page)).to.deep.equal(['a'])
    expect(String(reason)).to.include(`${MAX_LIST_TIME} ms`)
    expect(log.filter(({ level }) => level === 'error')).to.have.length(1)
  })

  it('leaves out invalid entries, and logs the first of them', async () => {
    const invalid: Array<[unknown, string]> = [
      [null, '`uri` must be a string'],
      [{ name: 'a' }, '`uri` must be a string'],
      [entry('a', 'other'), 'the URI does not match the template'],
      [{ uri: 'note:b/c', name: 'a' }, 'the URI does not match the template'],
      [{ uri: 'note:own', name: 'a' }, 'the URI belongs to resource "own"'],
      [{ uri: 'note:a' }, '`name` must be a string'],
      [{ ...entry('a'), size: Number.NaN }, '`size` must be a number'],
      [{ ...entry('a'), icons: {} }, '`icons` must be an array'],
      [{ ...entry('a'), _meta: { n: 1n } }, 'BigInt'],
      [{ ...entry('a'), description: 'x'.repeat(MAX_LISTED_ENTRY) }, `more than ${MAX_LISTED_ENTRY} bytes`],
    ]
    let current: unknown
    const list = () => [current, entry('x'), { ...entry('y'), title: null }, current] as never
    const own = defineResource({ name: 'own', uri: 'note:own', handler: () => '' })
    const { url, log } = await serve([notes(list), own])
    for (const [one, why] of invalid) {
      current = one
      log.length = 0
      const { resources } = await pageOf(url)
      expect(resources, why).to.deep.equal([{ uri: 'note:own', name: 'own' }, entry('x'), entry('y')])
      expect(log.map(({ level }) => level)).to.deep.equal(['warn'])
      expect(log[0]).to.deep.include({ resource: 'notes', uriTemplate: 'note:{id}', count: 2 })
      expect(String(log[0]?.['why'])).to.include(why)
    }
  })

  it('checks at most 100 invalid entries for each page', async () => {
    const invalid = range(250).map(id => entry(`a${id}/b`))
    const { url, log } = await serve([notes(() => [...invalid, entry('z')])])
    expect(await pagesOf(cursor => pageOf(url, cursor))).to.deep.equal([[], [], ['z']])
    expect(log.map(({ count }) => count)).to.deep.equal([100, 100, 50])
  })

  it('lists each URI once, also if two templates return it', async () => {
    const twice = [entry('a'), entry('a')]
    const other = notes(() => [entry('a'), entry('b', 'other')], { name: 'other', uriTemplate: 'other:{id}' })
    const { url } = await serve([other, notes(() => twice)])
    expect(namesOf(await pageOf(url))).to.deep.equal(['a', 'b'])
  })

  it('has a limit of entries, and pages have a limit of bytes', async () => {
    const size = MAX_LISTED_ENTRY - 1_000
    const large = range(40).map(id => ({ ...entry(id), description: 'x'.repeat(size) }))
    let entries = large
    const { url, log } = await serve([notes(() => entries)])
    const pages = await pagesOf(cursor => pageOf(url, cursor))
    expect(pages.flat()).to.deep.equal(range(40))
    expect(pages[0]?.length).to.equal(Math.floor(MAX_LISTED_PAGE / (size + 50)))
    entries = range(MAX_LISTED + 1).map(id => ({ ...entry(id), description: '' }))
    const { nextCursor } = await pageOf(url)
    expect(nextCursor).to.be.a('string')
    const cut = log.filter(({ level }) => level === 'warn')
    expect(cut).to.have.length(1)
    expect(cut[0]).to.deep.include({ resource: 'notes', entries: MAX_LISTED + 1 })
    const end = Buffer.from(`listed:note:${padded(MAX_LISTED - 2)}`).toString('base64url')
    expect(namesOf(await pageOf(url, end))).to.deep.equal([padded(MAX_LISTED - 1)])
  })

  it('lists resources that can be read, watched and completed', async () => {
    const complete = { id: () => ['a', 'b'] }
    const { url, host } = await serve([notes(() => [entry('a')], { complete })])
    const session = await openSession(url)
    const [{ uri }] = (await session.request('resources/list')).message.result.resources
    expect((await session.request('resources/read', { uri })).message.result.contents[0].text).to.equal('note a')
    for (const named of [uri, 'note:{id}']) {
      const params = { ref: { type: 'ref/resource', uri: named }, argument: { name: 'id', value: '' } }
      const { completion } = (await session.request('completion/complete', params)).message.result
      expect(completion.values, named).to.deep.equal(['a', 'b'])
    }
    const stream = await session.get()
    expect((await session.request('resources/subscribe', { uri })).message.result).to.deep.equal({})
    host.runtime.resourceUpdated(uri)
    await stream.until(({ message }) => message?.method === 'notifications/resources/updated')
    stream.drop()
  })

  it('needs a uriTemplate', async () => {
    let thrown: unknown
    const one = defineResource({ name: 'one', uri: 'one:a', list: () => [], handler: () => '' })
    await serve([one]).catch(error => {
      thrown = error
    })
    expect(String(thrown)).to.include('`list` needs a `uriTemplate`')
  })

  it('does not run at startup, for the lock or for `explain`', async () => {
    let runs = 0
    const list = () => {
      runs++
      return [entry('a')]
    }
    const { host, url } = await serve([notes(list)])
    const { routes } = readSurface(host.served)
    expect([routes['/']?.resources, Object.keys(routes['/']?.resourceTemplates ?? {})]).to.deep.equal([
      {},
      ['note:{id}'],
    ])
    host.inspect('/')
    expect(runs).to.equal(0)
    await pageOf(url)
    expect(runs).to.equal(1)
  })

  it('notifies sessions after a reload that changes it', async () => {
    const served = await startReloading({
      'mcp.config.ts': `import { defineConfig, defineResource } from HERE
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [defineResource({ name: 'notes', uriTemplate: 'note:{id}', list: () => [], handler: () => '' })] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {} },
})
`,
    })
    const session = await openSession(served.url)
    const stream = await session.get()
    await served.edit('mcp.config.ts', 'list: () => []', "list: () => [{ uri: 'note:a', name: 'a' }]")
    expect(await served.reload()).to.include({ told: 1 })
    expect((await nextMessage(stream))?.method).to.equal('notifications/resources/list_changed')
    expect(namesOf((await session.request('resources/list')).message.result)).to.deep.equal(['a'])
    stream.drop()
  })
})
