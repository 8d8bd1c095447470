// Tests the HTML page of an MCP endpoint for browsers, and that MCP clients get their usual responses.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from '../client/node/support/temporary-directory.ts'
import { needsProgram } from '../support/needs-program.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'

after(stopHosts)
after(stopIssuers)
after(removeTemporaryDirectories)

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

const tool = defineTool({ name: 'hidden_tool', handler: () => 'done' })

let url: string
before(async () => {
  const { url: authority } = await startIssuer()
  ;({ url } = await startHost({
    server: { name: 'acme <tools> & "more"', version: '1.0.0' },
    toolsets: { all: [tool] },
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
    it(`is served at ${path} with ${status}, without scripts or external resources`, async () => {
      const response = await visit(path)
      expect(response.status).to.equal(status)
      expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8')
      expect(response.headers.get('content-security-policy')).to.match(
        /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      )
      expect(response.headers.get('x-content-type-options')).to.equal('nosniff')
      expect(response.headers.get('cache-control')).to.equal('no-store')
      expect(response.headers.get('vary')).to.match(/\bAccept\b/)
      expect(response.headers.get('allow')).to.equal(null)
      const page = await response.text()
      expect(page).to.contain(`${url}${path}`)
      expect(page).not.to.match(/<script|src=|href=|url\(|hidden_tool/)
    })
  }

  it('keeps the authentication challenge of a protected route without its server name', async () => {
    const response = await visit('/guarded')
    expect(response.headers.get('www-authenticate')).to.contain('resource_metadata="')
    expect(await response.text())
      .to.contain('mcp-host login')
      .and.not.to.contain('acme')
  })

  it('escapes names and URL parts for HTML and shell', async () => {
    expect(await (await visit('/open')).text()).to.contain(
      '<h1>acme &#60;tools&#62; &#38; &#34;more&#34;: an MCP server</h1>',
    )
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

describe('Browser page in Chromium', function () {
  this.timeout(60_000)
  before(function () {
    needsProgram(this, 'chromium', 'apt-get install chromium')
  })

  it('renders with its styles and no CSP violations', async () => {
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--enable-logging=stderr']
    const profile = `--user-data-dir=${makeTemporaryDirectory()}`
    const { stdout, stderr } = await promisify(execFile)('chromium', [...flags, profile, '--dump-dom', `${url}/open`])
    expect(stdout).to.contain('<h1>acme &lt;tools&gt; &amp; "more": an MCP server</h1>')
    expect(stderr).not.to.match(/Content Security Policy/)
  })
})
