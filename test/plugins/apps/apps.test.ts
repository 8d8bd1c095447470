// The apps plugin over HTTP: capabilities, lists, page resources and startup errors.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { defineTool, type ToolDefinition } from '../../../core/index.ts'
import { type AppDefinition, defineApp } from '../../../plugins/apps/define-app.ts'
import { withPlugins } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { modern } from '../../support/rpc.ts'
import { initialize, openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const PAGES = join(import.meta.dirname, 'pages')
const MIME = 'text/html;profile=mcp-app'
const UI = 'io.modelcontextprotocol/ui'
const PAGE = '<!doctype html><title>A page</title>'

const plain = defineApp({ name: 'plain', title: 'Plain', html: PAGE })
const bundled = defineApp({
  name: 'bundled',
  title: 'Bundled </title> & more',
  module: pathToFileURL(join(PAGES, 'counter.ts')),
  csp: { connectDomains: ['https://api.acme.example'] },
  permissions: { clipboardWrite: {} },
  prefersBorder: true,
})
const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition =>
  defineTool({ name, ...more, handler: () => ({ of: name }) }) as unknown as ToolDefinition
const serving = (tools: ToolDefinition[], options: object = {}) =>
  withPlugins({ apps: options }, { toolsets: { all: tools } })

const TOOLS = [
  tool('first', { app: plain, _meta: { own: 1, ui: { visibility: ['app'], resourceUri: 'ui://other' } } }),
  tool('second', { app: { name: 'plain', html: PAGE, title: 'Plain' } }),
  tool('third', { app: bundled }),
  defineTool({
    name: 'silent',
    app: plain,
    handler: () => ({ content: [], structuredContent: { n: 1 } }),
  }) as unknown as ToolDefinition,
  tool('none'),
]

describe('apps plugin', () => {
  let url: string
  before(async () => {
    ;({ url } = await startHost(serving(TOOLS), PAGES))
  })
  after(stopHosts)

  const read = async (uri: string) => (await modern(url, 'resources/read', { uri })).message.result.contents[0]

  it('declares the apps extension in every protocol version', async () => {
    const settings = { [UI]: { mimeTypes: [MIME] } }
    expect((await modern(url, 'server/discover')).message.result.capabilities.extensions).to.deep.equal(settings)
    for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const { capabilities, protocolVersion } = (await initialize(url, { revision })).message.result
      expect([protocolVersion, capabilities.extensions]).to.deep.equal([revision, settings])
    }
  })

  it("adds the page URI to the tool's `_meta` next to the author's own keys", async () => {
    const { tools } = (await modern(url, 'tools/list')).message.result
    const meta = new Map(tools.map((one: { name: string; _meta?: object }) => [one.name, one._meta]))
    const uri = 'ui://plain/app.html'
    const ui = { visibility: ['app'], resourceUri: uri }
    expect(meta.get('first')).to.deep.equal({ own: 1, ui, 'ui/resourceUri': uri })
    expect(meta.get('second')).to.deep.equal({ ui: { resourceUri: uri }, 'ui/resourceUri': uri })
    expect(meta.get('none')).to.equal(undefined)
  })

  it('lists one resource for two tools with the same app', async () => {
    const { resources } = (await modern(url, 'resources/list')).message.result
    expect(resources.map(({ uri, mimeType }: { uri: string; mimeType: string }) => [uri, mimeType])).to.deep.equal([
      ['ui://bundled/app.html', MIME],
      ['ui://plain/app.html', MIME],
    ])
  })

  it('serves the page text with its CSP and permissions in `_meta`', async () => {
    expect(await read('ui://plain/app.html')).to.deep.equal({ uri: 'ui://plain/app.html', mimeType: MIME, text: PAGE })
    const { _meta, mimeType } = await read('ui://bundled/app.html')
    const csp = { connectDomains: ['https://api.acme.example'] }
    expect(_meta).to.deep.equal({ ui: { csp, permissions: { clipboardWrite: {} }, prefersBorder: true } })
    expect(mimeType).to.equal(MIME)
  })

  it('bundles a module with its imports, styles and images into one document', async () => {
    const { text } = await read('ui://bundled/app.html')
    expect(text).to.match(/^<!doctype html>\n<html>/)
    expect(text).to.contain('<title>Bundled &lt;/title> &amp; more</title>')
    expect(text.match(/<\/script/gi)).to.have.lengthOf(1)
    expect(text.match(/<\/style/gi)).to.have.lengthOf(1)
    expect(text).to.match(/\/\/-->\n<\/script>/)
    expect(text).to.contain('data:image/svg+xml')
    expect(text).not.to.match(/\b(?:src|href)=/)
  })

  it('includes text content in tool results for all clients', async () => {
    const answer = async (name: string) => (await modern(url, 'tools/call', { name })).message.result
    expect(await answer('third')).to.deep.include({ content: [{ type: 'text', text: '{"of":"third"}' }] })
    const said = [{ type: 'text', text: '{"n":1}' }]
    expect(await answer('silent')).to.deep.include({ content: said, structuredContent: { n: 1 } })
    const session = await openSession(url)
    expect((await session.request('tools/call', { name: 'silent' })).message.result.content).to.deep.equal(said)
  })

  it('does not declare the extension on a route that disables the plugin', async () => {
    const routes = { '/': { toolsets: 'all' }, '/off': { toolsets: 'others', plugins: { apps: false as const } } }
    const config = withPlugins({ apps: {} }, { toolsets: { all: TOOLS, others: [tool('none')] }, routes })
    const { url } = await startHost(config, PAGES)
    const off = (await modern(`${url}/off`, 'server/discover')).message.result.capabilities
    expect(off).not.to.have.property('extensions')
    expect((await modern(`${url}/off`, 'resources/read', { uri: 'ui://plain/app.html' })).message.error.code).to.equal(
      -32601,
    )
  })
})

describe('App startup errors', () => {
  after(stopHosts)

  const module = join(PAGES, 'counter.ts')
  const wrong: Array<[what: string, app: AppDefinition, words: string]> = [
    ['no page', { name: 'a' }, 'app "a": set a page: `html`, or a `module` to bundle'],
    ['html and module together', { name: 'a', html: PAGE, module }, 'app "a": set `html` or `module`, not both'],
    ['no doctype', { name: 'a', html: '<h1>Hi</h1>' }, 'app "a": its page must begin with <!doctype html>'],
    [
      'missing html file',
      { name: 'a', html: './no.html' },
      `app "a": the file does not exist: ${join(PAGES, 'no.html')}`,
    ],
    ['missing module file', { name: 'a', module: './no.ts' }, "no.ts; paths are relative to the config's folder"],
    [
      'an https URL as module',
      { name: 'a', module: 'https://acme.example/a.js' },
      'takes a path or the URL of a file, not https:',
    ],
    ['a bad name', { name: 'A b', html: PAGE }, 'lower-case letters, digits and . _ -, at most 64'],
    [
      'a bad origin',
      { name: 'a', html: PAGE, csp: { connectDomains: ["https://x; script-src 'self'"] } },
      'connectDomains[0]',
    ],
    ...[
      'https://*.com',
      'https://*',
      'https://*.com:443',
      'http://169.254.169.254',
      'https://a.example:99999',
      'https://a.example:0',
      'https://a..b',
    ].map((origin): [string, AppDefinition, string] => [
      `the origin ${origin}`,
      { name: 'a', html: PAGE, csp: { connectDomains: [origin] } },
      'connectDomains[0]',
    ]),
    ['line breaks in `domain`', { name: 'a', html: PAGE, domain: 'x\r\nSet-Cookie: a' }, 'without spaces or line ends'],
    ['a bad permission', { name: 'a', html: PAGE, permissions: { cam: {} } as never }, 'permissions.cam'],
    ['an unknown key', { name: 'a', htlm: PAGE } as never, 'did you mean "html"'],
  ]
  for (const [what, app, words] of wrong) {
    it(`fails startup: ${what}`, () => expectStopped(serving([tool('one', { app })]), words, PAGES))
  }

  it('fails startup with the file and line of each bundling error', async () => {
    const app = defineApp({ name: 'broken', module: new URL('./pages/broken.ts', import.meta.url) })
    await expectStopped(serving([tool('one', { app })]), /broken\.ts:2:8: Could not resolve "\.\/nowhere\.css"/, PAGES)
    await expectStopped(serving([tool('one', { app })]), /broken\.ts:3:26: Could not resolve "node:fs"/, PAGES)
  })

  it('fails startup if a page exceeds maxPageSize, and lists its largest parts', async () => {
    await expectStopped(
      serving([tool('one', { app: bundled })], { maxPageSize: 500 }),
      /app "bundled": its page has 1 kB, more than the 1 kB of `maxPageSize`; the largest parts are counter\.\w+ \(1 kB\)/,
      PAGES,
    )
  })

  it('fails startup on an invalid `_meta.ui`', async () => {
    for (const ui of ['app', { visibility: [] }, { visibility: ['apps'] }, { visibility: 'app' }]) {
      await expectStopped(serving([tool('one', { app: plain, _meta: { ui } })]), '`_meta.ui', PAGES)
      await expectStopped(serving([tool('of a page', { _meta: { ui } })]), '`_meta.ui', PAGES)
    }
  })

  it('fails startup if two different apps share a name on one route, but not on two routes', async () => {
    const other = tool('other', { app: defineApp({ name: 'plain', html: `${PAGE} another` }) })
    const toolsets = { one: [tool('one', { app: plain })], other: [other] }
    const routes = (both: string[]) => ({ '/': { toolsets: both }, '/b': { toolsets: ['other'] } })
    await expectStopped(
      withPlugins({ apps: {} }, { toolsets, routes: routes(['one', 'other']) }),
      /"ui:\/\/plain\/app\.html".*"\w+" /,
    )
    const { url } = await startHost(withPlugins({ apps: {} }, { toolsets, routes: routes(['one']) }))
    const page = async (path: string) =>
      (await modern(url + path, 'resources/read', { uri: 'ui://plain/app.html' })).message.result.contents[0].text
    expect(await page('')).to.equal(PAGE)
    expect(await page('/b')).to.equal(`${PAGE} another`)
  })

  it('fails startup if a tool has an app but the plugin is disabled', () =>
    expectStopped(withPlugins({}, { toolsets: { all: [tool('one', { app: plain })] } }), 'enable apps'))
})
