// Discovery documents over HTTP: content, access, caching headers and startup errors.
import { createHash } from 'node:crypto'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { lock } from '../resource-metadata/documents.ts'

after(stopHosts)

const CATALOG = '/.well-known/ai-catalog.json'
const BOTH = ['server-card', 'ai-catalog'] as const
const tool = (name: string) => [defineTool({ name, description: 'for members', handler: () => '' })]
const SECRET = 'a secret for tests, long enough to be one'
const SERVER = {
  name: 'com.acme/tools',
  version: '1.4.0',
  title: 'Acme tools',
  description: 'Tools for the Acme warehouse.',
  instructions: 'Only for members: say please.',
  websiteUrl: 'https://acme.example',
  icons: [{ src: 'https://acme.example/a.png', mimeType: 'image/png', sizes: ['48x48'] }],
}

const config = (more: Partial<TestConfig> = {}, options: object = {}): TestConfig => ({
  server: SERVER,
  toolsets: { clock: tool('clock'), café: tool('café'), admin: tool('purge') },
  routes: {
    '/mcp': { toolsets: 'clock' },
    '/admin': { toolsets: 'admin', authorize: true },
    '/t/:category?': { toolsets: { param: 'category', of: ['clock', 'café', 'admin'] }, default: ['clock'] },
    '/tenants/:tenant': { toolsets: 'clock' },
  },
  ...more,
  plugins: {
    'transport-streamable': {},
    lock: lock(),
    discovery: { experimental: [...BOTH], ...options },
    ...more.plugins,
  },
})

/** The shape of a card, as the draft of July 2026 has it. */
const uri = { type: 'string', pattern: '^https?://\\S+$' }
const CARD_SHAPE = {
  type: 'object',
  required: ['$schema', 'name', 'version', 'description'],
  additionalProperties: false,
  properties: {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json' },
    name: { type: 'string', minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' },
    version: { type: 'string', maxLength: 255 },
    description: { type: 'string', minLength: 1, maxLength: 100 },
    title: { type: 'string', minLength: 1, maxLength: 100 },
    websiteUrl: uri,
    icons: {
      type: 'array',
      items: {
        type: 'object',
        required: ['src'],
        additionalProperties: false,
        properties: {
          src: uri,
          mimeType: { type: 'string' },
          sizes: { type: 'array', items: { type: 'string' } },
          theme: { enum: ['light', 'dark'] },
        },
      },
    },
    remotes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['type', 'url'],
        additionalProperties: false,
        properties: {
          type: { enum: ['streamable-http', 'sse'] },
          url: uri,
          supportedProtocolVersions: { type: 'array', items: { type: 'string' } },
        },
      },
    },
  },
}
const isCard = new Ajv2020().compile(CARD_SHAPE)

async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(url, { headers, method })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

interface Entry {
  readonly identifier: string
  readonly type: string
  readonly url?: string
  readonly data?: Record<string, unknown>
}

async function entriesAt(url: string): Promise<Entry[]> {
  const { status, headers, text } = await get(url + CATALOG)
  expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/ai-catalog+json'])
  const { specVersion, entries } = JSON.parse(text)
  expect(specVersion).to.equal('1.0')
  return entries
}

describe('discovery plugin', () => {
  let url: string
  before(async () => {
    ;({ url } = await startHost(config()))
  })

  it('serves a server card on each public route, and the card follows the draft schema', async () => {
    for (const path of ['/mcp', '/t', '/t/clock', '/t/caf%C3%A9', '/tenants/a']) {
      const { status, headers, text } = await get(`${url}${path}/server-card`, {
        Accept: 'application/mcp-server-card+json',
      })
      expect([status, headers.get('content-type')], path).to.deep.equal([200, 'application/mcp-server-card+json'])
      const card = JSON.parse(text)
      expect(isCard(card), JSON.stringify(isCard.errors)).to.equal(true)
      const [{ type, url: remote, supportedProtocolVersions }] = card.remotes
      expect([type, remote]).to.deep.equal(['streamable-http', url + path])
      const { message } = await modern(remote, 'server/discover')
      const { serverInfo, supportedVersions } = message.result
      const known = serverInfo ?? message.result._meta['io.modelcontextprotocol/serverInfo']
      for (const name of ['version', 'title', 'description', 'websiteUrl']) expect(card[name]).to.equal(known[name])
      expect(supportedProtocolVersions).to.include.members(supportedVersions)
    }
    expect(JSON.parse((await get(`${url}/mcp/server-card`)).text).name).to.equal(SERVER.name)
  })

  it('lists all cards in the catalog with their URLs and stable unique names', async () => {
    const entries = await entriesAt(url)
    expect(entries.map(({ identifier }) => identifier)).to.deep.equal([
      'urn:air:acme.com:mcp:tools',
      'urn:air:acme.com:mcp:tools.t',
      'urn:air:acme.com:mcp:tools.t.clock',
      'urn:air:acme.com:mcp:tools.t.caf_c3a9',
      'urn:air:acme.com:mcp:tools.t.admin',
    ])
    for (const { identifier, type, url: at = '' } of entries) {
      expect(type).to.equal('application/mcp-server-card+json')
      const { name } = JSON.parse((await get(at)).text)
      expect(`urn:air:acme.com:mcp:${name.split('/')[1]}`).to.equal(identifier)
    }
  })

  it('omits protected routes, tool names, instructions and secrets', async () => {
    expect((await get(`${url}/admin/server-card`)).status).to.equal(404)
    const cards = await Promise.all((await entriesAt(url)).map(async ({ url: at = '' }) => (await get(at)).text))
    const all = [(await get(url + CATALOG)).text, ...cards].join('\n')
    for (const word of [`${url}/admin/`, 'purge', 'for members', 'Only for', SECRET]) expect(all).not.to.contain(word)
  })

  it('answers 404 for unknown documents and 405 for other HTTP methods', async () => {
    expect((await get(`${url}/t/nothing/server-card`)).status).to.equal(404)
    const refused = await get(`${url}/mcp/server-card`, {}, 'POST')
    expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
  })

  it('allows cross-origin reads and caching, and answers 304 to a matching ETag', async () => {
    for (const path of ['/mcp/server-card', CATALOG]) {
      const plain = await get(url + path)
      const page = await get(url + path, { Origin: 'https://evil.example' })
      for (const { headers, status } of [plain, page]) {
        expect([status, headers.get('access-control-allow-origin')]).to.deep.equal([200, '*'])
        expect(headers.get('access-control-expose-headers')).to.equal('ETag')
        expect(headers.get('cache-control')).to.equal('public, max-age=3600')
      }
      const etag = plain.headers.get('etag') ?? ''
      expect(etag).to.equal(`"${createHash('sha256').update(plain.text).digest('base64url')}"`)
      const again = await get(url + path, { 'If-None-Match': etag })
      expect([again.status, again.text, again.headers.get('etag')]).to.deep.equal([304, '', etag])
      expect((await get(url + path, { 'If-None-Match': '"other"' })).status).to.equal(200)
      const head = await get(url + path, {}, 'HEAD')
      expect([head.status, head.text, head.headers.get('etag')]).to.deep.equal([200, '', etag])
      const asked = await fetch(url + path, {
        method: 'OPTIONS',
        headers: {
          Origin: 'https://a.example',
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'if-none-match',
        },
      })
      expect([asked.status, asked.headers.get('access-control-allow-methods')]).to.deep.equal([204, 'GET'])
      expect(asked.headers.get('access-control-allow-headers')).to.equal('Content-Type,If-None-Match')
    }
  })

  it('ignores the Host and forwarded headers in document URLs', async () => {
    const headers = { 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example', 'X-Forwarded-Proto': 'https' }
    for (const path of ['/mcp/server-card', '/tenants/%22%3E%3Cevil.example/server-card', CATALOG]) {
      const { text } = await get(url + path, headers)
      expect(text.replaceAll('%22%3E%3Cevil.example', '')).not.to.contain('evil')
    }
    const { name } = JSON.parse((await get(`${url}/tenants/evil/server-card`)).text)
    expect(name).to.equal('com.acme/tools.tenants')
  })

  it('includes protected routes if configured, also for a single route', async () => {
    const whole = await startHost(config({}, { protectedRoutes: true }))
    expect((await entriesAt(whole.url)).map(({ identifier }) => identifier)).to.include(
      'urn:air:acme.com:mcp:tools.admin',
    )
    const routes = {
      '/': { toolsets: 'clock' },
      '/admin': {
        toolsets: 'admin',
        authorize: true as const,
        plugins: { discovery: { protectedRoutes: true, name: 'com.acme/admin' } },
      },
      '/off': { toolsets: 'clock', plugins: { discovery: false as const } },
    }
    const some = await startHost(config({ routes }))
    const found = (await entriesAt(some.url)).map(({ identifier, url: at }) => [identifier, at?.slice(some.url.length)])
    expect(found).to.deep.equal([
      ['urn:air:acme.com:mcp:tools', '/server-card'],
      ['urn:air:acme.com:mcp:admin.admin', '/admin/server-card'],
    ])
    expect((await get(`${some.url}/off/server-card`)).status).to.equal(404)
  })

  it('serves only configured documents, with embedded cards in a catalog-only setup', async () => {
    const cards = await startHost(config({}, { experimental: ['server-card'] }))
    expect((await get(cards.url + CATALOG)).status).to.equal(404)
    const catalog = await startHost(
      config({ routes: { '/mcp': { toolsets: 'clock' } } }, { experimental: ['ai-catalog'] }),
    )
    expect((await get(`${catalog.url}/mcp/server-card`)).status).to.equal(404)
    const [entry] = await entriesAt(catalog.url)
    expect(entry).not.to.have.property('url')
    expect(isCard(entry?.data), JSON.stringify(isCard.errors)).to.equal(true)
  })

  it('lists the legacy SSE transport if it is the only one', async () => {
    const plugins = { 'transport-streamable': false as const, 'transport-sse': {} }
    const { url: at } = await startHost(config({ plugins, routes: { '/mcp': { toolsets: 'clock' } } }))
    const { remotes } = JSON.parse((await get(`${at}/mcp/server-card`)).text)
    expect([remotes[0].type, remotes[0].url]).to.deep.equal(['sse', `${at}/mcp/sse`])
  })

  it('uses http.publicUrl if configured', async () => {
    const http = { port: 0, publicUrl: 'https://mcp.acme.example/tools' }
    const { host } = await startHost(config({ http }))
    const listening = `http://127.0.0.1:${new URL(host.url).port}`
    const { remotes } = JSON.parse((await get(`${listening}/mcp/server-card`)).text)
    expect(remotes[0].url).to.equal('https://mcp.acme.example/tools/mcp')
  })

  it('fails startup if a document would be invalid', async () => {
    const server = { ...SERVER, name: 'acme-tools' }
    await expectStopped(config({ server }), 'server.name is "acme-tools"', 'com.acme/tools')
    await expectStopped(config({ server: { ...SERVER, description: 'x'.repeat(101) } }), 'has 101 characters')
    await expectStopped(config({}, { name: 'acme' }), 'a reversed domain name, a slash and a name')
    await expectStopped(config({}, { experimental: [] }), 'experimental')
    await expectStopped(config({ http: { host: '0.0.0.0' } }), 'set http.publicUrl')
    const routes = { '/': { toolsets: 'clock' }, '/mcp': { toolsets: 'clock' } }
    await expectStopped(config({ routes }), /"com\.acme\/tools"/)
    const toolsets = { clock: tool('clock'), 'server-card': tool('x') }
    const byName = { '/t/:category?': { toolsets: ':category', default: ['clock'] } }
    await expectStopped(config({ toolsets, routes: byName }), /"server-card"/)
  })
})
