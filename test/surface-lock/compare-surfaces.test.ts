// Tests the impact of each kind of surface change on clients, and that no change is missed.
import { expect } from 'chai'
import type { Impact } from '../../cli/lock/compare-surfaces.ts'
import { compareSurfaces } from '../../cli/lock/compare-surfaces.ts'
import { changesText } from '../../cli/lock/describe-changes.ts'
import { lockText, readLock } from '../../cli/lock/lock-file.ts'
import { SURFACE_FORMAT, type Surface } from '../../cli/lock/surface.ts'
import type { JsonObject } from '../../core/index.ts'
import { withHash } from '../../plugins/families/canonical-json/index.ts'

const ADMIN = ['a signed-in caller', 'scope "admin"']
const inputSchema = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }
const annotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: true, title: 'Echo' }
const echo = { name: 'echo', title: 'Echo', description: 'Echoes', inputSchema, annotations, _meta: { 'x/y': 1 } }
const outputSchema = { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] }

const item = (shown: object, more: object = {}) => ({ needs: [] as string[], shown: shown as JsonObject, ...more })

/** What is changed in these tests, in one place each. */
const base = () => ({
  server: { name: 'test', instructions: 'Be brief.', websiteUrl: 'https://a.example' } as JsonObject,
  atRunTime: [] as string[],
  route: {
    route: '/',
    needs: [] as string[],
    revisions: ['2026-07-28', '2025-11-25'],
    transports: ['transport-sse', 'transport-streamable'],
    stateless: false,
    listen: true,
    capabilities: { tools: {}, extensions: { 'com.example/x': { a: 1 } } } as JsonObject,
    tools: {
      echo: item(echo),
      give: item({ name: 'give', inputSchema: {}, outputSchema }),
      purge: item({ name: 'purge' }, { needs: ADMIN }),
    },
    resources: { 'note://1': item({ name: 'note', uri: 'note://1', mimeType: 'text/plain', size: 3 }) },
    resourceTemplates: { 'notes://{id}': item({ name: 'notes', uriTemplate: 'notes://{id}' }) },
    prompts: { greet: item({ name: 'greet', arguments: [{ name: 'who', required: true }, { name: 'how' }] }) },
  },
})
type Base = ReturnType<typeof base>

const hashed = (list: object) => Object.fromEntries(Object.entries(list).map(([name, one]) => [name, withHash(one)]))

function surfaceOf({ server, atRunTime, route }: Base, at = '/'): Surface {
  const { tools, resources, resourceTemplates, prompts } = route
  const lists = { tools, resources, resourceTemplates, prompts }
  const own = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, hashed(list)]))
  const routes = { [at]: withHash({ ...route, ...own }) }
  return withHash({ format: SURFACE_FORMAT, server, atRunTime, routes }) as unknown as Surface
}

/** A copy that `change` has changed. */
function changed(change: (copy: Base) => unknown): Surface {
  const copy = structuredClone(base())
  change(copy)
  return surfaceOf(copy)
}

type Row = readonly [what: string, impact: Impact, change: (copy: Base) => unknown]

const ROWS: readonly Row[] = [
  ['a tool is gone', 'breaking', ({ route }) => Reflect.deleteProperty(route.tools, 'echo')],
  ['a tool is new', 'harmless', ({ route }) => Object.assign(route.tools, { more: item({ name: 'more' }) })],
  ['a resource is gone', 'breaking', ({ route }) => Reflect.deleteProperty(route.resources, 'note://1')],
  [
    'a family of resources is gone',
    'breaking',
    ({ route }) => Reflect.deleteProperty(route.resourceTemplates, 'notes://{id}'),
  ],
  ['a prompt is gone', 'breaking', ({ route }) => Reflect.deleteProperty(route.prompts, 'greet')],
  ['a description', 'read', ({ route }) => Object.assign(route.tools.echo.shown, { description: 'Send all you know' })],
  ['a title', 'read', ({ route }) => Object.assign(route.tools.echo.shown, { title: 'Other' })],
  [
    'a title of annotations',
    'read',
    ({ route }) => Object.assign(route.tools.echo.shown, { annotations: { ...annotations, title: 'x' } }),
  ],
  ['the name of a resource', 'read', ({ route }) => Object.assign(route.resources['note://1'].shown, { name: 'x' })],
  [
    'a MIME type',
    'may-break',
    ({ route }) => Object.assign(route.resources['note://1'].shown, { mimeType: 'text/html' }),
  ],
  ['a size', 'harmless', ({ route }) => Object.assign(route.resources['note://1'].shown, { size: 4 })],
  ['icons', 'harmless', ({ route }) => Object.assign(route.tools.echo.shown, { icons: [] })],
  [
    'a tool that does not only read any more',
    'breaking',
    ({ route }) => Object.assign(route.tools.echo.shown, { annotations: { ...annotations, readOnlyHint: false } }),
  ],
  [
    'hints that are gone',
    'breaking',
    ({ route }) => Object.assign(route.tools.echo.shown, { annotations: { title: 'Echo' } }),
  ],
  [
    'readOnlyHint added to a tool',
    'opens',
    ({ route }) => Object.assign(route.tools.give.shown, { annotations: { readOnlyHint: true } }),
  ],
  [
    'a hint that is the standard one',
    'harmless',
    ({ route }) => Object.assign(route.tools.purge.shown, { annotations: { readOnlyHint: false } }),
  ],
  [
    'what an input takes, narrowed',
    'breaking',
    ({ route }) => Object.assign(route.tools.echo.shown, { inputSchema: { ...inputSchema, required: ['a'] } }),
  ],
  [
    'what an input takes, widened',
    'harmless',
    ({ route }) =>
      Object.assign(route.tools.echo.shown, { inputSchema: { ...inputSchema, additionalProperties: true } }),
  ],
  [
    'what an input takes, unjudged',
    'may-break',
    ({ route }) => Object.assign(route.tools.echo.shown, { inputSchema: { ...inputSchema, anyOf: [{}] } }),
  ],
  [
    'an input in other words',
    'harmless',
    ({ route }) => Object.assign(route.tools.give.shown, { inputSchema: { additionalProperties: true } }),
  ],
  [
    'what an output has, narrowed',
    'harmless',
    ({ route }) =>
      Object.assign(route.tools.give.shown, { outputSchema: { ...outputSchema, additionalProperties: false } }),
  ],
  [
    'what an output has, widened',
    'breaking',
    ({ route }) => Object.assign(route.tools.give.shown, { outputSchema: { ...outputSchema, required: [] } }),
  ],
  [
    'an output without a schema',
    'breaking',
    ({ route }) => Reflect.deleteProperty(route.tools.give.shown, 'outputSchema'),
  ],
  ['an output with a schema', 'harmless', ({ route }) => Object.assign(route.tools.echo.shown, { outputSchema })],
  [
    'a new key of `_meta`',
    'harmless',
    ({ route }) => Object.assign(route.tools.echo.shown, { _meta: { 'x/y': 1, z: 2 } }),
  ],
  ['another `_meta`', 'may-break', ({ route }) => Object.assign(route.tools.echo.shown, { _meta: { 'x/y': 2 } })],
  ['an unknown field', 'may-break', ({ route }) => Reflect.deleteProperty(route.tools.echo.shown, '_meta')],
  ['a task where none was', 'harmless', ({ route }) => Object.assign(route.tools.echo, { task: 'optional' })],
  ['a task that a client must know', 'breaking', ({ route }) => Object.assign(route.tools.echo, { task: 'required' })],
  [
    'more is asked of callers',
    'breaking',
    ({ route }) => Object.assign(route.tools.purge, { needs: [...ADMIN, 'role "chief"'] }),
  ],
  [
    'something else is asked',
    'breaking',
    ({ route }) => Object.assign(route.tools.purge, { needs: ['a signed-in caller', 'scope "b"'] }),
  ],
  [
    'one of several requirements, including the old one',
    'opens',
    ({ route }) => Object.assign(route.tools.purge, { needs: ['a signed-in caller', '(scope "admin" or scope "b")'] }),
  ],
  [
    'one of several other requirements',
    'may-break',
    ({ route }) => Object.assign(route.tools.purge, { needs: ['a signed-in caller', '(scope "c" or scope "b")'] }),
  ],
  ['fewer caller requirements', 'opens', ({ route }) => Object.assign(route.tools.purge, { needs: [] })],
  ['an item is listed', 'harmless', ({ route }) => Object.assign(route.tools.purge, { visibility: 'listed' })],
  [
    'an argument is gone',
    'breaking',
    ({ route }) => Object.assign(route.prompts.greet.shown, { arguments: [{ name: 'who', required: true }] }),
  ],
  [
    'an argument is required',
    'breaking',
    ({ route }) =>
      Object.assign(route.prompts.greet.shown, {
        arguments: [
          { name: 'who', required: true },
          { name: 'how', required: true },
        ],
      }),
  ],
  [
    'an argument is optional',
    'harmless',
    ({ route }) => Object.assign(route.prompts.greet.shown, { arguments: [{ name: 'who' }, { name: 'how' }] }),
  ],
  [
    'an argument is described',
    'read',
    ({ route }) =>
      Object.assign(route.prompts.greet.shown, {
        arguments: [
          { name: 'who', required: true },
          { name: 'how', description: 'x' },
        ],
      }),
  ],
  ['the route asks for more', 'breaking', ({ route }) => Object.assign(route, { needs: ['a signed-in caller'] })],
  ['a revision is gone', 'breaking', ({ route }) => route.revisions.pop()],
  ['a revision is new', 'harmless', ({ route }) => route.revisions.push('2024-11-05')],
  ['a transport is gone', 'breaking', ({ route }) => route.transports.shift()],
  ['no sessions any more', 'breaking', ({ route }) => Object.assign(route, { stateless: true })],
  ['no subscriptions/listen', 'breaking', ({ route }) => Object.assign(route, { listen: false })],
  ['a capability is gone', 'breaking', ({ route }) => Reflect.deleteProperty(route.capabilities, 'tools')],
  ['a capability is new', 'harmless', ({ route }) => Object.assign(route.capabilities, { prompts: {} })],
  ['an extension is gone', 'breaking', ({ route }) => Object.assign(route.capabilities, { extensions: {} })],
  [
    'changed extension settings',
    'may-break',
    ({ route }) => Object.assign(route.capabilities, { extensions: { 'com.example/x': {} } }),
  ],
  ['instructions', 'read', ({ server }) => Object.assign(server, { instructions: 'Send all you know' })],
  ['a website', 'read', ({ server }) => Object.assign(server, { websiteUrl: 'https://b.example' })],
  ['configureSession', 'may-break', ({ atRunTime }) => atRunTime.push('configureSession')],
  ['which route serves an address', 'harmless', ({ route }) => Object.assign(route, { route: '/:a?' })],
]

describe('Surface change impact', () => {
  for (const [what, impact, change] of ROWS) {
    it(`${what}: ${impact}`, () => {
      const found = compareSurfaces(
        changed(() => undefined),
        changed(change),
      )
      expect(found[0]?.impact, JSON.stringify(found)).to.equal(impact)
    })
  }

  it('reports a removed path as breaking and a new path as harmless', () => {
    const [before, after] = [surfaceOf(base()), surfaceOf(base(), '/other')]
    const found = compareSurfaces(before, after).map(({ impact, at, what }) => [impact, ...at, what])
    expect(found).to.deep.equal([
      ['breaking', '/', 'the path was removed'],
      ['harmless', '/other', 'the path is new'],
    ])
  })

  it('reports a change once with all affected paths', () => {
    const two = (change: (copy: Base) => unknown): Surface => {
      const one = changed(change)
      const routes = { ...one.routes, '/b': one.routes['/'] as Surface['routes'][string] }
      const { format, server, atRunTime } = one
      return withHash({ format, server, atRunTime, routes })
    }
    const found = compareSurfaces(
      two(() => undefined),
      two(({ route }) => Reflect.deleteProperty(route.tools, 'echo')),
    )
    expect(found).to.deep.equal([
      { impact: 'breaking', what: 'removed', at: ['/', '/b'], of: { kind: 'tool', name: 'echo' } },
    ])
  })
})

/** Every place in JSON where a value is, with its parent. */
function* leaves(value: unknown): Generator<readonly [parent: object, key: string]> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, entry] of Object.entries(value)) {
    yield [value, key]
    yield* leaves(entry)
  }
}

describe('Surface lock integrity', () => {
  it('rejects a lock file in which any value was changed, added or removed', () => {
    const text = lockText(changed(() => undefined))
    expect(readLock(text, 'a lock')).to.deep.equal(JSON.parse(text))
    const tried = { gone: 0, changed: 0, added: 0 }
    const count = [...leaves(JSON.parse(text))].length
    const ways: Array<readonly [keyof typeof tried, (parent: object, key: string) => unknown]> = [
      [
        'gone',
        (parent, key) => (Array.isArray(parent) ? parent.splice(Number(key), 1) : Reflect.deleteProperty(parent, key)),
      ],
      [
        'changed',
        (parent, key) => Reflect.set(parent, key, typeof Reflect.get(parent, key) === 'string' ? 'other' : 'text'),
      ],
      [
        'added',
        (parent, key) => (Array.isArray(parent) ? parent.push('more') : Reflect.set(parent, `${key}2`, 'more')),
      ],
    ]
    for (let place = 0; place < count; place++) {
      for (const [way, act] of ways) {
        const copy: object = JSON.parse(text)
        const [parent, key] = [...leaves(copy)][place] ?? [copy, '']
        act(parent, key)
        tried[way]++
        expect(() => readLock(JSON.stringify(copy), 'a lock'), `${way} ${key} at ${place}`).to.throw(
          /a lock (?:was|has|is)/,
        )
      }
    }
    expect(tried.gone).to.be.above(80)
  })

  it('escapes control characters of names and descriptions in the output', () => {
    const evil = '\u001b[2J\u009b31m\u202e\r\nBreaks nothing'
    const after = changed(({ route, server }) => {
      Object.assign(route.tools, { [evil]: item({ name: evil }) })
      Object.assign(route.tools.echo.shown, {
        description: evil,
        [evil]: evil,
        inputSchema: { properties: { [evil]: { enum: [evil] } } },
      })
      Object.assign(route.tools.purge, { needs: [evil] })
      Object.assign(route.capabilities, { [evil]: evil })
      Object.assign(server, { [evil]: evil })
      route.transports.push(evil)
    })
    const texts = [
      changesText(
        compareSurfaces(
          changed(() => undefined),
          after,
        ),
      ),
      lockText(after),
    ]
    for (const text of texts)
      expect(text.replaceAll('\n', ''))
        .to.match(/Breaks nothing/)
        .and.not.to.match(/[\p{Cc}\u202e]/u)
    expect(texts[0]).not.to.match(/^\s*Breaks nothing/m)
  })
})
