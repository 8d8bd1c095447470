// Tests the HTML page of an MCP endpoint for browsers, and that MCP clients get their usual responses.
import { createHash } from 'node:crypto'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { defineTool, HostError } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'

after(stopHosts)
after(stopIssuers)
after(closePages)

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

const tool = defineTool({ name: 'a_tool', title: 'A <b> tool', description: 'Does <i>it</i>.', handler: () => 'done' })
const secret = defineTool({ name: 'hidden_tool', handler: () => 'done' })

let url: string
before(async () => {
  const { url: authority } = await startIssuer()
  ;({ url } = await startHost({
    server: { name: 'acme <tools> & "more"', version: '1.0.0' },
    toolsets: { all: [tool, secret] },
    routes: {
      '/open': { toolsets: 'all' },
      '/each': { toolsets: 'all', stateless: true },
      '/guarded': { toolsets: 'all', authorize: true },
      '/of/:tenant': { toolsets: 'all' },
    },
    plugins: {
      'transport-streamable': {},
      'auth-jwt': { authority },
      'resource-metadata': { authorizationServers: [authority] },
      'tool-policy': { rules: { hidden_tool: { policy: { scope: 'admin' } } } },
    },
  }))
})

const visit = (path: string, { method = 'GET', accept = BROWSER, ...headers }: Record<string, string> = {}) =>
  fetch(`${url}${path}`, { method, headers: { accept, ...headers } })

describe('Browser page of an endpoint', () => {
  for (const [path, status] of [
    ['/open', 200],
    ['/each', 200],
    ['/guarded', 401],
  ] as const) {
    it(`is served at ${path} with ${status}, with one script of its own and no external resources`, async () => {
      const response = await visit(path)
      expect(response.status).to.equal(status)
      expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8')
      expect(response.headers.get('content-security-policy')).to.match(
        /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      )
      expect(response.headers.get('x-content-type-options')).to.equal('nosniff')
      expect(response.headers.get('cache-control')).to.equal('no-store')
      expect(response.headers.get('vary')).to.match(/\bAccept\b/)
      expect(response.headers.get('allow')).to.equal(null)
      const page = await response.text()
      expect(page).to.contain(`${url}${path}`)
      const [, script = '', ...more] = page.split(/<script>|<\/script>/)
      const hash = createHash('sha256').update(script).digest('base64')
      expect(response.headers.get('content-security-policy')).to.contain(`script-src 'sha256-${hash}'`)
      expect(more).to.have.lengthOf(1)
      expect(page).not.to.match(/ src=|href="(?!data:,|vscode:|cursor:)|url\(|hidden_tool| on[a-z]+=/)
    })
  }

  it('keeps the authentication challenge of a protected route without its server name', async () => {
    const response = await visit('/guarded')
    expect(response.headers.get('www-authenticate')).to.contain('resource_metadata="')
    expect(await response.text())
      .to.contain('mcp-host login')
      .and.not.match(/acme|a_tool|1\.0\.0/)
  })

  it('lists the tools of an open route that an anonymous client can list', async () => {
    const page = await (await visit('/open')).text()
    expect(page).to.contain('<summary>1 tool</summary>').and.contain('Version 1.0.0')
    expect(page).to.contain(
      '<code>a_tool</code> A &#60;b&#62; tool<br><span class="small">Does &#60;i&#62;it&#60;/i&#62;.</span>',
    )
  })

  it('lists no tools if a plugin requires authentication on the route', async () => {
    const guard = plugin(host => host.authenticate(() => Promise.reject(new HostError('unauthorized'))))
    const guarded = await startHost({
      toolsets: { all: [tool] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, guard },
    })
    const response = await fetch(guarded.url, { headers: { accept: BROWSER } })
    expect(response.status).to.equal(401)
    expect(await response.text())
      .to.contain('<h1>')
      .and.not.contain('a_tool')
  })

  it('has install links for VS Code and Cursor with the URL', async () => {
    const page = await (await visit('/open')).text()
    const [, code = '', cursor = ''] =
      /href="vscode:mcp\/install\?([^"]+)"[\s\S]*href="(cursor:[^"]+)"/.exec(page) ?? []
    const server = { name: 'acme-tools-more', type: 'http', url: `${url}/open` }
    expect(JSON.parse(decodeURIComponent(code))).to.deep.equal(server)
    const { searchParams } = new URL(cursor.replaceAll('&amp;', '&'))
    expect(searchParams.get('name')).to.equal('acme-tools-more')
    const config = Buffer.from(searchParams.get('config') ?? '', 'base64').toString()
    expect(JSON.parse(config)).to.deep.equal({ url: `${url}/open` })
  })

  it('escapes names and URL parts for HTML and shell', async () => {
    expect(await (await visit('/open')).text()).to.contain('<h1>acme &#60;tools&#62; &#38; &#34;more&#34;</h1>')
    for (const odd of [`a'$(id)<b>`, 'x&calc', 'x;id|id', 'x!`id`', "x'(calc)", 'x,*^"']) {
      const page = await (await visit(`/of/${encodeURIComponent(odd)}`)).text()
      const shown = /claude mcp add --transport http [\w-]+ (.*?)<\/code>/.exec(page)?.[1] ?? ''
      expect(page).not.to.contain('<b>')
      expect(shown).to.match(/^[\w%:/.-]+$/)
      expect((await fetch(shown, { headers: { accept: BROWSER } })).status).to.equal(200)
    }
  })

  it('responds to HEAD with the same headers and no body', async () => {
    const [head, get] = await Promise.all([visit('/open', { method: 'HEAD' }), visit('/open')])
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
    for (const name of ['content-type', 'content-security-policy', 'content-length', 'vary'])
      expect(head.headers.get(name), name).to.equal(get.headers.get(name))
  })

  for (const [what, path, options, status] of [
    ['a client that takes anything', '/open', { accept: '*/*' }, 400],
    ['a client that wants a stream and would take HTML', '/open', { accept: 'text/html, text/event-stream' }, 400],
    ['one that refuses HTML', '/open', { accept: 'text/html;q=0, application/json' }, 406],
    ['HEAD of a client', '/open', { method: 'HEAD', accept: '*/*' }, 405],
    ['a GET where there are no sessions', '/each', { accept: 'application/json' }, 405],
    ['DELETE', '/each', { method: 'DELETE' }, 405],
    ['POST', '/open', { method: 'POST' }, 415],
    ['a client of a guarded route', '/guarded', { accept: 'application/json, text/event-stream' }, 401],
    ['a path where nothing is', '/nowhere', {}, 404],
    ['a page of another origin', '/open', { origin: 'https://evil.example' }, 403],
  ] as const) {
    it(`is not served for ${what}`, async () => {
      const response = await visit(path, options)
      expect(response.status).to.equal(status)
      expect(response.headers.get('content-type')).to.match(/^application\/json/)
    })
  }

  it('is not served for a foreign Host', async () => {
    const head = requestHead(`${url}/open`, { method: 'GET', headers: { Host: 'evil.example', Accept: BROWSER } })
    const { status, text } = await sendRaw(`${url}/open`, head)
    expect(status).to.equal(403)
    expect(text).not.to.contain('<html')
  })
})

describe('Browser page at / without a route', () => {
  const pageAt = async (routes: Parameters<typeof startHost>[0]['routes'], path = '/', accept = BROWSER) => {
    const { url: authority } = await startIssuer()
    const plugins = { 'transport-streamable': {}, 'auth-jwt': { authority, audience: 'a' } }
    const { url: at } = await startHost({ toolsets: { all: [tool] }, routes, plugins })
    return fetch(`${at}${path}`, { headers: { accept }, redirect: 'manual' })
  }
  const [open, guarded] = [{ toolsets: 'all' }, { toolsets: 'all', authorize: true as const }]

  for (const [what, routes, location] of [
    ['the first open route', { '/:tenant/mcp': open, '/in': guarded, '/a b': open, '/mcp': open }, '/a%20b'],
  ] as const) {
    it(`redirects to ${what}`, async () => {
      const { status, headers } = await pageAt(routes, '/?to=//evil.example')
      expect([status, headers.get('location')]).to.deep.equal([302, location])
      expect([headers.get('cache-control'), headers.get('vary')]).to.deep.equal(['no-store', 'Accept'])
    })
  }

  for (const [what, routes, path, accept] of [
    ['one protected route', { '/in': guarded }, '/', BROWSER],
    ['several protected routes', { '/in': guarded, '/also': guarded }, '/', BROWSER],
    ['routes with parameters only', { '/of/:tenant': open }, '/', BROWSER],
    ['other paths', { '/mcp': open }, '/nowhere', BROWSER],
    ['programs', { '/mcp': open }, '/', '*/*'],
  ] as const) {
    it(`is 404 for ${what}`, async () => {
      const response = await pageAt(routes, path, accept)
      expect([response.status, response.headers.get('location')]).to.deep.equal([404, null])
      expect(await response.text()).to.contain('nothing is served at this path')
    })
  }
})

describe('Browser page in Chromium', () => {
  let browser: Browser
  before(async function () {
    browser = await launchBrowser(this)
  })

  it('renders with its styles and no CSP violations, and copies commands', async () => {
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
    const tab = await context.newPage()
    const faults = watchFaults(tab)
    await tab.goto(`${url}/open`)
    expect(await tab.textContent('h1')).to.equal('acme <tools> & "more"')
    await tab.click('button:has-text("Copy the URL")')
    await tab.waitForSelector('text=Copied.', { state: 'attached' })
    expect(await tab.evaluate('navigator.clipboard.readText()')).to.equal(`${url}/open`)
    expect(faults).to.deep.equal([])
    await context.close()
  })

  it('has no copy buttons if scripts are disabled', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const tab = await context.newPage()
    await tab.goto(`${url}/open`)
    expect(await tab.locator('button:visible').count()).to.equal(0)
    await context.close()
  })
})
