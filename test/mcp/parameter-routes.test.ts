// Tests which toolsets a route parameter reaches, and what the host says about them.
import { expect } from 'chai'
import { readSurface } from '../../cli/lock/read-surface.ts'
import { createHost } from '../../core/create-host.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { lock } from '../plugins/resource-metadata/documents.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const tool = (name: string) => defineTool({ name, handler: () => name })
const addsGold = {
  configureSession: (({ headers }, session) => {
    if (headers['x-gold'] !== undefined) session.addToolset('gold')
  }) as NonNullable<Config['configureSession']>,
}
const listed = { param: 'category', of: ['clock', 'greeter'] }

const list = async (url: string, headers: Record<string, string> = {}): Promise<number | string[]> => {
  const { status, message } = await modern(url, 'tools/list', {}, { headers })
  return status === 200 ? message.result.tools.map(({ name }: RpcMessage) => name) : status
}

/** The warnings of `check` for a config. */
async function warningsOf(config: object): Promise<string[]> {
  const log = createTestLog()
  const base = { server: { name: 'test', version: '1' }, secrets: ['a secret for tests, long enough to be one'] }
  const plugins = { 'transport-streamable': {} }
  const host = await createHost({ ...base, plugins, ...config } as unknown as Config, { log, purpose: 'inspect' })
  await host.close({ grace: 0 })
  return log.lines.filter(({ level }) => level === 'warn').map(({ message = '' }) => message)
}

describe('Route parameter that names a toolset', () => {
  const toolsets = { clock: [tool('c')], greeter: [tool('h')], gold: { from: [tool('g')], internal: true } }

  it('reaches only the toolsets that the route lists', async () => {
    const open = { clock: [tool('c')], greeter: [tool('h')], gold: [tool('g')] }
    const routes = { '/': { toolsets: 'clock' }, '/t/:category?': { toolsets: listed, default: ['greeter'] } }
    const { url, host } = await startHost({ toolsets: open, routes, ...addsGold })
    expect(await list(`${url}/t/clock`)).to.deep.equal(['c'])
    expect(await list(`${url}/t`)).to.deep.equal(['h'])
    expect(await list(`${url}/t/gold`)).to.equal(404)
    expect(await list(`${url}/t/clock`, { 'X-Gold': '1' })).to.deep.equal(['c', 'g'])
    expect(host.routes[1]?.toolsets).to.deep.equal(['clock', 'greeter'])
    expect(host.inspect('/t/gold')).to.equal(undefined)
    expect(Object.keys(readSurface(host.served).routes)).not.to.include('/t/gold')
  })

  it('never reaches an internal toolset without a list, in no protocol version and by no method', async () => {
    const routes = { '/': { toolsets: ['clock', 'greeter'] }, '/t/:category': { toolsets: ':category' } }
    const { url } = await startHost({ toolsets, routes, ...addsGold })
    expect(await list(`${url}/t/clock`)).to.deep.equal(['c'])
    expect(await list(`${url}/t/gold`)).to.equal(404)
    expect((await modern(`${url}/t/gold`, 'tools/call', { name: 'g' })).status).to.equal(404)
    expect((await fetch(`${url}/t/gold`)).status).to.equal(404)
    expect(await list(url, { 'X-Gold': '1' })).to.deep.equal(['c', 'g', 'h'])
  })

  it('reaches an internal toolset that the route lists', async () => {
    const named = { '/t/:category': { toolsets: { param: 'category', of: ['gold'] } } }
    expect(await list(`${(await startHost({ toolsets, routes: named })).url}/t/gold`)).to.deep.equal(['g'])
  })

  it('stops startup if the list names an unknown toolset, or the path has no such parameter', async () => {
    const start = (of: string[], param = 'category'): TestConfig => ({
      toolsets,
      routes: { '/t/:category': { toolsets: { param, of } } },
    })
    await expectStopped(start(['clok']), /there is no toolset "clok"; did you mean "clock"/)
    await expectStopped(start(['clock'], 'kind'), /the path has no parameter ":kind"/)
    const misspelt = { '/t/:categry?': { toolsets: { param: 'category', of: ['clock'] }, default: ['clock'] } }
    await expectStopped({ toolsets, routes: misspelt }, /^(?![\s\S]*make it optional)[\s\S]*no parameter ":category"/)
    await expectStopped({ toolsets: { a: { from: [], intern: true } as never }, routes: {} }, /unknown key/)
  })

  it('keeps what a toolset with settings holds: modules, definitions and lists', async () => {
    const core = JSON.stringify(new URL('../../core/index.ts', import.meta.url).href)
    const source = `import { defineTool } from ${core}\nexport const c = defineTool({ name: 'c', handler: () => 'c' })`
    const folder = await makeFolder({ 'c.ts': source })
    const toolsets = {
      one: { from: tool('a') },
      two: { from: [tool('b')], internal: false },
      three: { from: './c.ts', internal: true },
    }
    const { url } = await startHost({ toolsets, routes: { '/': { toolsets: ['one', 'two', 'three'] } } }, folder)
    expect(await list(url)).to.deep.equal(['a', 'b', 'c'])
    const broken = { from: [{ ...tool('c'), timeout: 'soon' }] }
    await expectStopped({ toolsets: { one: broken }, routes: { '/': { toolsets: 'one' } } }, /toolsets\.one\.from\[0\]/)
  })
})

describe('Warnings about route parameters', () => {
  const toolsets = { clock: [tool('c')], gold: [tool('g')] }
  const open = { '/t/:category': { toolsets: ':category' } }

  it('name toolsets that no route lists', async () => {
    const [warning, ...others] = await warningsOf({ toolsets, routes: { '/': { toolsets: 'clock' }, ...open } })
    expect(warning).to.match(/":category" reaches toolsets that no route lists: gold; list those/)
    expect(others).to.deep.equal([])
  })

  it('name toolsets that another route guards with another rule', async () => {
    const plugins = { 'transport-streamable': {}, lock: lock(), 'tool-policy': {} }
    const routes = {
      '/': { toolsets: 'clock' },
      '/gold': { toolsets: 'gold', authorize: { role: 'gold' } },
      '/t/:category': { toolsets: ':category', authorize: true },
    }
    const found = await warningsOf({ toolsets, routes, plugins })
    expect(found.filter(text => text.includes('reaches'))).to.have.length(1)
    expect(found.join()).to.match(/":category" reaches toolset "gold", which routes\['\/gold'\] guards/)
  })

  it('are absent where the route has a list, or the others are internal', async () => {
    const routes = {
      '/': { toolsets: 'clock' },
      '/t/:category': { toolsets: { param: 'category', of: ['clock', 'gold'] } },
    }
    expect(await warningsOf({ toolsets, routes })).to.deep.equal([])
    const internal = { ...toolsets, gold: { from: toolsets.gold, internal: true } }
    expect(await warningsOf({ toolsets: internal, routes: { '/': { toolsets: 'clock' }, ...open } })).to.deep.equal([])
  })
})

describe('Toolsets with a reserved name', () => {
  const toolsets = { clock: [tool('c')], health: [tool('x')], readyz: [tool('y')], metrics: [tool('z')] }
  const plugins = {
    'transport-streamable': {},
    health: {},
    metrics: { path: '/metrics', token: 'a token for tests, long enough to be one' },
  }

  for (const name of ['health', 'readyz', 'metrics']) {
    it(`stop startup where a parameter would serve them at the path of a plugin: ${name}`, async () => {
      const words = new RegExp(`the toolset "${name}" would be at /${name}, which plugins.\\w+ serves`)
      await expectStopped({ toolsets, plugins, routes: { '/:category': { toolsets: ':category' } } }, words)
      const of = { param: 'category', of: ['clock', name] }
      await expectStopped({ toolsets, plugins, routes: { '/:category?': { toolsets: of, default: ['clock'] } } }, words)
    })
  }

  it('are served at another path', async () => {
    const routes = { '/t/:category': { toolsets: { param: 'category', of: ['health'] } } }
    const { url } = await startHost({ toolsets, plugins, routes })
    expect(await list(`${url}/t/health`)).to.deep.equal(['x'])
  })
})

describe('Toolsets that no route lists', () => {
  it('are not named in the 404 text', async () => {
    const { url } = await startHost({
      toolsets: { clock: [tool('c')], gold: [tool('g')] },
      routes: { '/': { toolsets: 'clock' }, '/t/:category': { toolsets: ':category' } },
      plugins: { 'transport-streamable': {} },
    })
    const missing = await modern(`${url}/t/nothing`, 'tools/list')
    expect(missing.message.error.message).to.match(/available at \/t\/:category: clock$/)
  })
})
