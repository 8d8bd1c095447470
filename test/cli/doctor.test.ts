// Tests `mcp-host doctor` with real hosts behind a proxy that has one fault at a time.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { examine } from '../../cli/doctor/examine.ts'
import type { Finding } from '../../cli/doctor/request.ts'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { HandClient } from '../support/form-browser.ts'
import { startRawServer } from '../support/raw-server.ts'
import { startHost, stopHosts, type TestConfig } from '../support/start-host.ts'
import { type BadProxy, type Faults, startBadProxy, stopProxies } from './bad-proxy.ts'
import { PLUGIN, runCli, stopAll } from './in-process.ts'

const PAGE = 'https://app.example'
const tools = { clock: [defineTool({ name: 'now', handler: () => 'now' })] }

const openConfig: TestConfig = { toolsets: tools, routes: { '/': { toolsets: ['clock'] } } }

function protectedConfig(issuer: string, publicUrl?: string): TestConfig {
  return {
    toolsets: tools,
    http: { port: 0, ...(publicUrl !== undefined && { publicUrl }) },
    routes: { '/mcp': { toolsets: ['clock'], authorize: { scope: 'mcp.tools' }, cors: 'page' } },
    plugins: {
      'transport-streamable': {},
      'auth-jwt': { authority: issuer },
      'resource-metadata': { authorizationServers: [issuer], scopesSupported: ['mcp.tools'] },
      cors: { policies: { page: { origins: [PAGE] } } },
    },
  }
}

const wrongs = (findings: readonly Finding[]) => findings.filter(({ level }) => level === 'wrong')

describe('mcp-host doctor', () => {
  let issuer: string
  let proxy: BadProxy
  /** The protected URL behind the proxy. */
  let url: string
  let token: string

  before(async () => {
    proxy = await startBadProxy()
    url = `${proxy.url}/mcp`
    const plugins = { 'transport-streamable': {}, 'dev-auth-server': { scopes: ['mcp.tools'], resources: [url] } }
    issuer = `${(await startHost({ ...openConfig, plugins })).url}/dev-auth`
    proxy.target = (await startHost(protectedConfig(issuer, proxy.url))).url
    const client = await new HandClient(issuer).start()
    token = (await client.signIn('dev', { resource: url, scope: 'mcp.tools' })).access_token
  })
  after(async () => {
    await stopAll()
    await stopProxies()
    await stopHosts()
    await removeFolders()
  })
  beforeEach(() => {
    proxy.faults = {}
  })

  it('finds no problem with a protected server, with every check', async () => {
    const findings = await examine(url, { token, origin: PAGE })
    expect(findings.filter(({ level }) => level !== 'ok')).to.deep.equal([])
    expect(new Set(findings.map(({ check }) => check))).to.have.all.keys(
      'address',
      'challenge',
      'metadata',
      'identity provider',
      'clock',
      'token',
      'host guard',
      'cors',
      'stream',
      ...['challenge', 'resource', 'scopes', 'issuer', 'pkce', 'registration', 'authentication', 'renewal'].map(
        name => `client: ${name}`,
      ),
      'client: response',
    )
  })

  it('reports an open server as open, without a problem', async () => {
    const findings = await examine((await startHost(openConfig)).url)
    expect(wrongs(findings)).to.deep.equal([])
    expect(findings.find(({ check }) => check === 'challenge')).to.include({ level: 'note' })
    expect(findings.find(({ check }) => check === 'stream')).to.include({ level: 'ok' })
  })

  for (const [what, faults, check, words] of [
    ['the challenge is lost', { headers: { 'www-authenticate': null } }, 'challenge', /DPoP challenge/],
    [
      'the challenge names no metadata',
      { headers: { 'www-authenticate': 'Bearer scope="a"' } },
      'challenge',
      /resource_metadata/,
    ],
    [
      'the challenge has a relative URL',
      { headers: { 'www-authenticate': 'Bearer resource_metadata="/meta"' } },
      'challenge',
      /not an absolute URL/,
    ],
    [
      'the metadata is not passed on',
      { without: /well-known/ },
      'metadata',
      /oauth-protected-resource\/mcp: answered 404/,
    ],
    ['the metadata is served as a page', { headers: { 'content-type': 'text/html' } }, 'metadata', /text\/html/],
    [
      'pages may not read the metadata',
      { headers: { 'access-control-allow-origin': null } },
      'metadata',
      /Access-Control-Allow-Origin/,
    ],
    ['its clock is wrong', { headers: { date: 'Mon, 01 Jan 2024 00:00:00 GMT' } }, 'clock', /apart/],
    ['any Host is served', { sent: { host: '127.0.0.1' } }, 'host guard', /Host/],
    ['any Origin is served', { sent: { origin: null } }, 'host guard', /origin/],
    [
      'the preflight forgets headers of 2026-07-28',
      {
        headers: {
          'access-control-allow-headers':
            'Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Session-Id, Last-Event-ID',
        },
      },
      'cors',
      /Mcp-Name$/,
    ],
    [
      'the page cannot read the challenge',
      { headers: { 'access-control-expose-headers': 'Mcp-Session-Id' } },
      'cors',
      /WWW-Authenticate$/,
    ],
    ['streams are kept back until they end', { buffers: true }, 'stream', /before the first event/],
  ] as ReadonlyArray<readonly [string, Faults, string, RegExp]>) {
    it(`finds that ${what}, and prints the fix`, async () => {
      proxy.faults = faults
      const found = wrongs(await examine(url, { token, origin: PAGE })).filter(finding => finding.check === check)
      expect(found.map(({ text }) => text).join('\n')).to.match(new RegExp(words.source, `${words.flags}m`))
      for (const { fix } of found) expect(fix).to.match(/\w{3}/)
    })
  }

  it('finds that the metadata has another URL than clients call', async () => {
    const { url: inner } = await startHost(protectedConfig(issuer))
    const outer = await startBadProxy()
    outer.target = inner
    const found = wrongs(await examine(`${outer.url}/mcp`))
    const texts = found.map(({ text }) => text)
    expect(texts.some(text => text.includes(`${inner}/mcp`) && text.includes(`${outer.url}/mcp`))).to.equal(true)
    expect(found.find(({ check }) => check === 'metadata')?.fix).to.contain('http.publicUrl')
  })

  describe('behind a path prefix', () => {
    let base: BadProxy
    let address: string
    before(async () => {
      const prefix = await startBadProxy()
      const publicUrl = `${prefix.url}/base`
      address = `${publicUrl}/mcp`
      const config = protectedConfig(`${publicUrl}/dev-auth`, publicUrl)
      const development = { 'dev-auth-server': { scopes: ['mcp.tools'], resources: [address] } }
      prefix.target = (await startHost({ ...config, plugins: { ...config.plugins, ...development } })).url
      base = prefix
    })
    const metadataFindings = async (faults: Faults) => {
      base.faults = { strips: '/base', ...faults }
      const findings = await examine(address)
      return findings.filter(({ check, level }) => level !== 'ok' && /metadata|identity/.test(check))
    }

    it('finds no problem if the well-known URLs at the root are forwarded', async () => {
      expect(await metadataFindings({})).to.deep.equal([])
    })

    it('finds that the well-known URLs at the root are missing', async () => {
      const origin = new URL(address).origin
      const found = await metadataFindings({ without: /^\/\.well-known/ })
      expect(found.map(({ level, text }) => [level, text])).to.deep.equal([
        [
          'note',
          `${origin}/.well-known/oauth-protected-resource/base/mcp answered 404: clients that do not read the challenge find no metadata`,
        ],
        [
          'note',
          `${origin}/.well-known/oauth-authorization-server/base/dev-auth answered 404: clients that know only RFC 8414 find no metadata`,
        ],
      ])
      for (const { fix } of found) expect(fix).to.contain('/.well-known')
    })
  })

  it('--config prints an error of a plugin with its lines', async () => {
    const folder = await makeFolder({
      'mcp.config.mjs': `import { definePlugin } from '${PLUGIN}'
const faulty = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup() {},
  examine() { throw new Error('first\\nsecond') },
})
export default {
  server: { name: 'a', version: '1' },
  toolsets: { all: [] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, faulty: faulty() },
}
`,
    })
    const { stdout } = await runCli(['doctor', '--config', 'mcp.config.mjs'], folder)
    expect(stdout).to.match(/first\n +second\n/)
  })

  it('names a check that throws', async () => {
    proxy.faults = { cuts: 'OPTIONS' }
    const findings = await examine(url)
    expect(findings.find(({ check }) => check === 'cors')).to.deep.include({
      level: 'note',
      text: 'the check failed: socket hang up',
    })
  })

  it('finds an unavailable identity provider, and unavailable keys', async () => {
    const gone = await startHost(protectedConfig('http://127.0.0.1:9/issuer'))
    const texts = wrongs(await examine(`${gone.url}/mcp`)).map(({ text }) => text)
    expect(texts.join('\n')).to.match(/http:\/\/127\.0\.0\.1:9\/\S*issuer/)

    const keyless = await startBadProxy()
    keyless.target = new URL(issuer).origin
    keyless.faults = { without: /jwks/ }
    const plugins = { 'transport-streamable': {}, 'dev-auth-server': {} }
    const { url: own } = await startHost({ ...openConfig, http: { port: 0, publicUrl: keyless.url }, plugins })
    keyless.target = own
    const { url: of } = await startHost(protectedConfig(`${keyless.url}/dev-auth`))
    const more = wrongs(await examine(`${of}/mcp`)).map(({ text }) => text)
    expect(more.join('\n')).to.match(new RegExp(`${keyless.url}/dev-auth/jwks.*404`))
  })

  it('finds that a token is rejected, and why', async () => {
    const [finding] = wrongs(await examine(url, { token: `${token}x` }))
    expect(finding).to.include({ check: 'token' })
    expect(finding?.text).to.match(/401: \w/)
  })

  it('finds that a web page of the given origin cannot call', async () => {
    const [finding] = wrongs(await examine(url, { origin: 'https://other.example' }))
    expect(finding?.text).to.match(/https:\/\/other\.example/)
  })

  it('finds that a URL is not served, or that nothing responds', async () => {
    const [missing] = wrongs(await examine(`${proxy.url}/nope`))
    expect(missing?.text).to.include(`${proxy.url}/nope`)
    const [dead] = wrongs(await examine('http://127.0.0.1:9/'))
    expect(dead?.text).to.match(/^http:\/\/127\.0\.0\.1:9\//)
  })

  it('finds that a server is not an MCP server, after one request', async () => {
    let requests = 0
    const api = createServer((request, response) => {
      requests += 1
      response.writeHead(Number(request.url?.slice(1)) || 404, { 'Content-Type': 'application/json' }).end('{"id":7}')
    })
    await once(api.listen(0, '127.0.0.1'), 'listening')
    const { port } = api.address() as AddressInfo
    for (const status of [200, 201]) {
      const address = `http://127.0.0.1:${port}/${status}`
      const text = `${address} is not an MCP server: ${status} without a JSON-RPC message`
      expect(await examine(address)).to.deep.equal([{ check: 'address', level: 'wrong', text, fix: 'Check the URL.' }])
    }
    expect(requests).to.equal(2)
    const [refused] = await examine(`http://127.0.0.1:${port}/400`)
    expect(refused?.text).to.match(/is not an MCP server: 400/)
    api.close()
  })

  it('finds that a server responds with a protocol upgrade', async () => {
    const raw = await startRawServer('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n')
    try {
      const [upgraded] = wrongs(await examine(raw.url))
      expect(upgraded?.text).to.include(raw.url).and.include('closed without a response')
    } finally {
      await raw.stop()
    }
  })

  it('prints one line per check and exits 0 without problems', async () => {
    const { code, stdout, stderr } = await runCli(['doctor', '--url', url, '--token', token], await makeFolder({}))
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout)
      .to.match(/^ok +address /m)
      .and.to.match(/^ok +stream /m)
    expect(stdout).to.not.contain(token)
  })

  it('--json prints the findings with their fixes, and exits 1 if there is a problem', async () => {
    const { code, stdout } = await runCli(['doctor', '--url', 'http://127.0.0.1:9/', '--json'], await makeFolder({}))
    expect(code).to.equal(1)
    const { healthy, findings } = JSON.parse(stdout)
    expect(healthy).to.equal(false)
    expect(findings).to.have.length(1)
    expect(findings[0]).to.include({ check: 'address', level: 'wrong' }).and.to.have.property('fix')
  })

  for (const args of [
    ['doctor'],
    ['doctor', '--url', 'ftp://localhost:9'],
    ['doctor', 'localhost:9', '--url', '::1'],
  ]) {
    it(`requires one URL: ${args.join(' ')}`, async () => {
      const { code, stderr } = await runCli(args, await makeFolder({}))
      expect(stderr).to.match(/^mcp-host: error \w+: .* URL/)
      expect(code).to.equal(2)
    })
  }

  it('adds the scheme to a URL without one', async () => {
    const folder = await makeFolder({})
    const { url } = JSON.parse((await runCli(['doctor', '127.0.0.1:9/mcp', '--json'], folder)).stdout)
    expect(url).to.equal('http://127.0.0.1:9/mcp')
  })
})
