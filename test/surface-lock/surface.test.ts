// Tests the surface of a host: complete, deterministic and free of secrets.
import { expect } from 'chai'
import { readSurface } from '../../cli/lock/read-surface.ts'
import { createHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { type Config, definePrompt, defineResource, defineTool } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { StartError } from '../../core/plugin.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { APP_SCHEMA } from '../../plugins/apps/app-schema.ts'
import { defineApp } from '../../plugins/apps/define-app.ts'
import { TASK_SCHEMA } from '../../plugins/tasks/task-key.ts'
import { plugin } from '../fixtures/plugins.ts'
import { lock } from '../plugins/resource-metadata/documents.ts'

const SECRETS = Array.from({ length: 4 }, (_, index) => `planted-secret-${index}-long-enough-to-be-one`)
const input = {
  type: 'object',
  properties: { b: { type: 'string' }, a: { type: 'number' } },
  required: ['b', 'a'],
} as const

const page = defineResource({ name: 'page', uri: 'ui://page', handler: () => 'a page' })
const tools = [
  defineTool({ name: 'echo', description: 'Echoes', input, handler: () => 'x' }),
  defineTool({ name: 'purge', access: 'admin', visibility: 'listed', handler: () => 'x' }),
  defineTool({
    name: 'shown',
    access: 'admin',
    app: defineApp({ name: 'page', html: '<p>a page</p>' }),
    task: { use: 'required' },
    handler: () => 'x',
  }),
]
const others = [
  defineResource({ name: 'note', uri: 'note://1', handler: () => '' }),
  defineResource({ name: 'notes', uriTemplate: 'notes://{id}', handler: () => '' }),
  definePrompt({ name: 'greet', arguments: { who: { required: true } }, handler: () => '' }),
]

const keys = (settings: object) =>
  plugin(
    (host: InternalHost) => {
      const resources = () => [page]
      host.extension('com.example/keys', { settings: settings as Record<string, unknown> })
      host.toolKey('app', { resources, meta: () => ({ page: 'ui://page' }) })
      host.toolKey('task', {})
    },
    { toolKeys: { app: APP_SCHEMA, task: TASK_SCHEMA } },
  )

const config = (more: Partial<Config> = {}) => ({
  server: { name: 'surface-test', version: '1.2.3', title: 'Surface', instructions: 'Be brief.' },
  http: { port: 0 },
  secrets: SECRETS.slice(0, 2),
  toolsets: { tools, others },
  routes: {
    '/': { toolsets: ['tools', 'others'] },
    '/t/:category?': { toolsets: ':category', default: ['others'] },
    '/guarded': { toolsets: 'others', authorize: { scope: ['read', 'write'], role: 'staff' }, stateless: true },
  },
  plugins: {
    'transport-streamable': {},
    keys: keys({ z: 1, a: { y: 2, b: 3 } }),
    lock: lock(),
    'tool-policy': {
      policies: { admin: { scope: 'mcp.admin', role: ['chief'] } },
      rules: { 'resource:note://*': 'admin' },
    },
    health: { token: SECRETS[2] ?? '' },
  },
  ...more,
})

async function surfaceOf(given: object) {
  const host = await createHost(given as Config, { log: createTestLog(), purpose: 'inspect' })
  try {
    return readSurface(host.served)
  } finally {
    await host.close({ grace: 0 })
  }
}

/** The same with the keys of every plain object in the opposite order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  if (!isPlain) return value
  const symbols = Object.getOwnPropertySymbols(value).map(key => [key, Reflect.get(value, key)] as const)
  const entries = Object.entries(value)
    .reverse()
    .map(([key, entry]) => [key, turned(entry)] as const)
  const copy: Record<PropertyKey, unknown> = Object.fromEntries(entries)
  for (const [key, entry] of symbols) copy[key] = entry
  return copy
}

describe('Host surface', () => {
  it('lists each path, with one entry per toolset of a route parameter', async () => {
    const { routes } = await surfaceOf(config())
    expect(Object.keys(routes)).to.deep.equal(['/', '/guarded', '/t', '/t/others', '/t/tools'])
    const namesAt = (at: string) => {
      const { tools = {}, resources = {}, resourceTemplates = {}, prompts = {} } = routes[at] ?? {}
      return [tools, resources, resourceTemplates, prompts].map(list => Object.keys(list))
    }
    expect(namesAt('/t')).to.deep.equal([[], ['note://1'], ['notes://{id}'], ['greet']])
    expect(namesAt('/t/tools')).to.deep.equal([['echo', 'purge', 'shown'], ['ui://page'], [], []])
    expect(routes['/t/others']).to.deep.include({ route: '/t/:category?', stateless: false, listen: true })
  })

  it('describes items, access requirements and extensions', async () => {
    const { routes, server } = await surfaceOf(config())
    const root = routes['/']
    const admin = ['a signed-in caller', 'role "chief"', 'scope "mcp.admin"']
    expect(root?.tools['echo']?.needs).to.deep.equal([])
    expect(root?.tools['purge']).to.deep.include({ needs: admin, visibility: 'listed' })
    expect(root?.tools['shown']).to.deep.include({ needs: admin, task: 'required' })
    expect(root?.tools['shown']?.shown['_meta']).to.deep.equal({ page: 'ui://page' })
    expect(root?.resources['note://1']?.needs).to.deep.equal(admin)
    // It goes along with a tool that anybody may not call.
    expect(root?.resources['ui://page']?.needs).to.deep.equal([
      'a signed-in caller',
      'one of the tools that it belongs to',
    ])
    expect(root?.capabilities['extensions']).to.deep.equal({ 'com.example/keys': { a: { b: 3, y: 2 }, z: 1 } })
    expect(routes['/guarded']).to.deep.include({ transports: ['transport-streamable'], stateless: true, listen: false })
    const guarded = ['a signed-in caller', 'role "staff"', 'scope "read"', 'scope "write"']
    expect(routes['/guarded']?.needs).to.deep.equal(guarded)
    expect(server).to.deep.equal({ instructions: 'Be brief.', name: 'surface-test', title: 'Surface' })
  })

  it('is identical for repeated calls and reordered config keys', async () => {
    const first = JSON.stringify(await surfaceOf(config()))
    expect(JSON.stringify(await surfaceOf(config()))).to.equal(first)
    expect(JSON.stringify(await surfaceOf(turned(config()) as object))).to.equal(first)
    const other = { ...input, required: ['a', 'b'] }
    const again = { toolsets: { others, tools: [tools[2], tools[1], { ...tools[0], input: other }] } }
    expect(JSON.stringify(await surfaceOf(config(again as object)))).to.equal(first)
  })

  it('changes with any client-visible change, but not with version or port', async () => {
    const { hash } = await surfaceOf(config())
    const server = { ...config().server, version: '9.9.9' }
    const moved = {
      server,
      http: { port: 0, publicUrl: 'https://other.example' },
      secrets: ['another secret, long enough to be one'],
    }
    expect((await surfaceOf(config(moved))).hash).to.equal(hash)
    const plugins = config().plugins
    const changes: object[] = [
      { server: { ...server, instructions: 'Be long.' } },
      { plugins: { ...plugins, keys: keys({ z: 2 }) } },
      { plugins: { ...plugins, 'tool-policy': { policies: { admin: { scope: 'other' } } } } },
      { plugins: { ...plugins, 'transport-sse': {} }, routes: { '/': { toolsets: ['tools', 'others'] } } },
      { stateless: true },
      { configureSession: () => undefined },
      { toolsets: { tools: [{ ...tools[0], description: 'Echoes.' }, ...tools.slice(1)], others } },
      { toolsets: { tools, others: others.slice(1) } },
    ]
    const hashes = await Promise.all(changes.map(async change => (await surfaceOf(config(change))).hash))
    expect(new Set([hash, ...hashes]).size).to.equal(changes.length + 1)
  })

  it('contains no secret of the config', async () => {
    const text = JSON.stringify(await surfaceOf(config()))
    for (const secret of SECRETS) expect(text).not.to.contain(secret)
  })

  it('includes definitions added at run time', async () => {
    const host = await createHost(config() as Config, { log: createTestLog() })
    const before = readSurface(host.served)
    host.runtime.tools.add(defineTool({ name: 'later', handler: () => '' }), { toolset: 'tools' })
    const after = readSurface(host.served)
    await host.close({ grace: 0 })
    expect(before.routes['/']?.tools).not.to.have.property('later')
    expect(after.routes['/']?.tools).to.have.property('later')
    expect(after.routes['/t']).to.deep.equal(before.routes['/t'])
  })

  it('is available to `accept`, which can reject a startup or reload', async () => {
    const closed: string[] = []
    const seen: string[] = []
    const closing = (name: string) => plugin((host: InternalHost) => host.onClose(() => void closed.push(name)))
    const withPlugin = (name: string) => config({ plugins: { ...config().plugins, own: closing(name) } }) as Config
    let refuses = false
    const accept = async ({ served }: Pick<Host, 'served'>) => {
      const { hash } = readSurface(served)
      seen.push(hash)
      if (refuses) throw new StartError('MH3301', 'refused')
    }
    const log = createTestLog()
    const host = await createHost(withPlugin('first'), { log, accept })
    refuses = true
    const loaded = { file: '/config', config: withPlugin('second'), locate: () => undefined, isInline: true as const }
    const [reload] = await Promise.allSettled([host.reload(loaded)])
    const [start] = await Promise.allSettled([createHost(withPlugin('third'), { log, accept })])
    expect([reload, start].map(one => one?.status === 'rejected' && String(one.reason))).to.deep.equal([
      'StartError: refused',
      'StartError: refused',
    ])
    expect(closed).to.deep.equal(['second', 'third'])
    expect(new Set([...seen, readSurface(host.served).hash])).to.have.property('size', 1)
    expect(seen).to.have.lengthOf(3)
    await host.close({ grace: 0 })
  })

  it('contains data URL images as hashes', async () => {
    const src = `data:image/png;base64,${'A'.repeat(5_000)}`
    const pictured = [defineTool({ name: 'pictured', icons: [{ src }], handler: () => '' })]
    const routes = { '/': { toolsets: 'all' } }
    const surface = await surfaceOf({
      ...config(),
      routes,
      toolsets: { all: pictured },
      plugins: { 'transport-streamable': {} },
    })
    expect(JSON.stringify(surface)).not.to.contain('AAAAAAAA')
    const icons = surface.routes['/']?.tools['pictured']?.shown['icons'] as Array<{ src: string }>
    expect(icons[0]?.src).to.match(/^data:sha256-[\w-]{43}$/)
  })

  it('supports names of Object.prototype members', async () => {
    const named = ['__proto__', 'constructor', 'toString'].map(name => defineTool({ name, handler: () => '' }))
    const base = { ...config(), plugins: { 'transport-streamable': {} }, routes: { '/': { toolsets: 'all' } } }
    const { routes } = await surfaceOf({ ...base, toolsets: { all: named } })
    expect(Object.keys(JSON.parse(JSON.stringify(routes['/']?.tools))).sort()).to.deep.equal([
      '__proto__',
      'constructor',
      'toString',
    ])
  })
})
