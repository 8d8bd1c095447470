// Tests plugin lookup by file, package and value, and the errors for missing plugins and invalid options.
import { expect } from 'chai'
import { definePlugin } from '../../core/internal.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const CORE = new URL('../../core/index.ts', import.meta.url).href

/** The source of a module that exports a plugin: it serves its greeting at `/<path>`. */
const source = (exported = 'export const page') => `
import { definePlugin } from ${JSON.stringify(CORE)}
${exported} = definePlugin({
  options: {
    type: 'object', additionalProperties: false, required: ['path'],
    properties: { path: { type: 'string' }, greeting: { type: 'string', default: 'hello' } },
  },
  setup(host, { path, greeting }) {
    host.endpoint('/' + path, { public: true, methods: { GET: ctx => { ctx.body = greeting } } })
  },
})
`
const asDefault = `${source('const page')}\nexport default page`

const textAt = async (url: string) => (await fetch(url)).text()

describe('Plugin lookup', () => {
  it('loads JavaScript and TypeScript files relative to the config, from any export', async () => {
    const folder = await makeFolder({ 'a.mjs': source(), 'more/b.ts': asDefault })
    const plugins = { './a.mjs': { path: 'a' }, './more/b.ts': { path: 'b', greeting: 'hi' } }
    const { url } = await startHost(withPlugins(plugins), folder)
    expect([await textAt(`${url}/a`), await textAt(`${url}/b`)]).to.deep.equal(['hello', 'hi'])
  })

  it('loads a package installed in the config folder', async () => {
    const manifest = (name: string) => JSON.stringify({ name, type: 'module', exports: './main.js' })
    const folder = await makeFolder({
      'node_modules/mcp-host-page/package.json': manifest('mcp-host-page'),
      'node_modules/mcp-host-page/main.js': asDefault,
      'node_modules/@acme/page/package.json': manifest('@acme/page'),
      'node_modules/@acme/page/main.js': source(),
    })
    const plugins = { 'mcp-host-page': { path: 'plain' }, '@acme/page': { path: 'scoped' } }
    const { url } = await startHost(withPlugins(plugins), folder)
    expect([await textAt(`${url}/plain`), await textAt(`${url}/scoped`)]).to.deep.equal(['hello', 'hello'])
  })

  it('accepts a configured value under any name, with options typed by its factory', async () => {
    const page = definePlugin<{ path: string; greeting?: string }>({
      options: {
        type: 'object',
        additionalProperties: false,
        required: ['path'],
        properties: { path: { type: 'string' }, greeting: { type: 'string', default: 'hello' } },
      },
      setup(host, { path, greeting }) {
        host.endpoint(`/${path}`, {
          public: true,
          methods: {
            GET(ctx) {
              ctx.body = `${host.name}: ${greeting}`
            },
          },
        })
      },
    })
    const { url } = await startHost(withPlugins({ 'my page': page({ path: 'own', greeting: 'hi' }) }))
    expect(await textAt(`${url}/own`)).to.equal('my page: hi')
    // @ts-expect-error: an option of the wrong type is an error where it is written
    await expectStopped(withPlugins({ page: page({ path: 5 }) }), /plugins\.page\.path\s+MH1013 wrong value\s+found 5/)
    // @ts-expect-error: so is one that the plugin does not have
    await expectStopped(withPlugins({ page: page({ path: 'a', greting: 'b' }) }), /"greeting"/)
  })
})

describe('Plugin without options', () => {
  it('is enabled by {} or as a configured value and rejects options', async () => {
    const seen: string[] = []
    const plain = definePlugin({
      provides: ['plain'],
      setup(host, options) {
        seen.push(`${host.name} ${JSON.stringify(options)}`)
      },
    })
    await startHost(withPlugins({ one: plain(), two: plain({}) }))
    expect(seen).to.deep.equal(['one {}', 'two {}'])
    expect(plain.plugin.options.properties).to.deep.equal({})
    const unknown = withPlugins({ one: plain({ a: 1 } as object) })
    await expectStopped(unknown, /plugins\.one\.a\s+MH1011 unknown option\s+.*expected no options/)
    const file = await makeFolder({
      'plain.mjs': `import { definePlugin } from ${JSON.stringify(CORE)}
export default definePlugin({ setup() {} })
`,
    })
    await startHost(withPlugins({ './plain.mjs': {} }), file)
    await expectStopped(withPlugins({ './plain.mjs': { a: 1 } }), 'unknown', file)
    await expectStopped(withPlugins({ './plain.mjs': true as never }), 'found true; expected false or an object', file)
  })

  it('does not compile if its type declares options and its schema is missing', () => {
    // @ts-expect-error: the schema of `a` is missing
    definePlugin<{ a?: number }>({ setup() {} })
    definePlugin<Record<never, never>>({ setup() {} })
  })
})

describe('Plugin lookup failure stops startup', () => {
  it('and suggests a similar name', async () => {
    await expectStopped(withPlugins({ helth: {} }), /plugins\.helth.*"health"/)
    const routes = { '/': { toolsets: 'all', plugins: { heatlh: {} } } }
    await expectStopped(withPlugins({}, { routes }), /"health"/)
  })

  it('and suggests a similar name for a misspelt `false` entry', async () => {
    const says = `plugins['transport-ssse']: there is no plugin of this name to disable; did you mean "transport-sse"?`
    await expectStopped(withPlugins({ 'transport-ssse': false }), says)
    const routes = { '/': { toolsets: 'all', plugins: { 'transport-ssse': false as const } } }
    await expectStopped(withPlugins({}, { routes }), says)
    // One of the operator's own, off by a condition.
    await startHost(withPlugins({ 'quite-another': false, './gone.ts': false }))
  })

  it('but accepts `false` for built-in plugins and plugins enabled elsewhere', async () => {
    const folder = await makeFolder({ 'a.mjs': source() })
    const off = { toolsets: 'all', plugins: { 'transport-sse': false, './a.mjs': false } } as const
    const routes = { '/': { toolsets: 'all' }, '/off': off }
    const { url } = await startHost(withPlugins({ './a.mjs': { path: 'a' } }, { routes }), folder)
    expect(await textAt(`${url}/a`)).to.equal('hello')
  })

  it('and reports the name and the searched location', async () => {
    const folder = await makeFolder({})
    await expectStopped(withPlugins({ 'quite-another': {} }), `no package of that name in ${folder}`, folder)
    await expectStopped(
      withPlugins({ './gone.ts': {} }),
      `plugins['./gone.ts']: the file does not exist: ${folder}/gone.ts`,
      folder,
    )
  })

  it('and reports a file that throws or does not export exactly one plugin', async () => {
    const folder = await makeFolder({
      'throws.mjs': 'throw new Error("no licence")',
      'none.mjs': 'export const a = 1; export default () => {}',
      'two.mjs': source() + source('export const other').replace(/import.*\n/, ''),
      'default.mjs': `${source('const page')}${source('export const other').replace(/import.*\n/, '')}export default page`,
    })
    await expectStopped(withPlugins({ './throws.mjs': {} }), /throws\.mjs.* cannot be loaded: no licence/, folder)
    await expectStopped(withPlugins({ './none.mjs': {} }), /none\.mjs/, folder)
    await expectStopped(withPlugins({ './two.mjs': {} }), /two\.mjs/, folder)
    const { url } = await startHost(withPlugins({ './default.mjs': { path: 'a' } }), folder)
    expect(await textAt(`${url}/a`)).to.equal('hello')
  })
})

describe('Invalid plugin options stop startup', () => {
  it('with all problems, each with location, found and expected value', async () => {
    const folder = await makeFolder({ 'a.mjs': source() })
    const routes = { '/': { toolsets: 'all', plugins: { './a.mjs': { greeting: 7 } } } }
    const config = withPlugins({ './a.mjs': { pth: 'a' } }, { routes })
    for (const words of [
      /The config has 2 problems/,
      /plugins\['\.\/a\.mjs'\]\.pth\s+MH1011 unknown option; did you mean "path"\?/,
      /routes\['\/'\]\.plugins\['\.\/a\.mjs'\]\.greeting\s+MH1013 wrong value\s+found 7; expected a string/,
    ]) {
      await expectStopped(config, words, folder)
    }
    const builtIn = withPlugins({ health: { path: 'health' } })
    await expectStopped(builtIn, /plugins\.health\.path\s+MH1013 wrong value/)
  })

  it('if the value is not an options object', async () => {
    await expectStopped(withPlugins({ health: 'on' as never }), /plugins\.health\s+MH1013 wrong value/)
    await expectStopped(withPlugins({ health: true as never }), /plugins\.health\s+MH1013 wrong value/)
    await expectStopped(withPlugins({ own: plugin(() => undefined).plugin }), /plugins\.own|plugins\['own'\]/)
  })
})
