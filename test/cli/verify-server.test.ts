// Tests how `mcp-host login` decides whether a URL is an MCP server.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { verifyServer } from '../../cli/client/login-flow.ts'
import { defineTool } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startDesk, stopDesks } from './login-setup.ts'

const { signal } = new AbortController()
const toolsets = { all: [defineTool({ name: 'hello', handler: () => 'hello' })] }
const startOwn = () =>
  startHost({
    toolsets,
    routes: { '/admin': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, health: {} },
  })

const failure = (code: number, id?: unknown) => ({ jsonrpc: '2.0', error: { code, message: 'no' }, id })

describe('server at a URL', () => {
  afterEach(stopHosts)
  after(stopDesks)

  it('is MCP at the route of our host, and not at other paths', async () => {
    const { url } = await startOwn()
    const found = await Promise.all(
      ['/admin', '/admin/nope', '/health'].map(path => verifyServer(url + path, fetch, signal)),
    )
    expect(found).to.deep.equal([{ kind: 'mcp' }, { kind: 'other', status: 404 }, { kind: 'other', status: 405 }])
  })

  it('does not count the check as a client with an older protocol version', async () => {
    const revisions: unknown[] = []
    const observes = plugin(host =>
      host.onFinish(({ method, revision }) => void revisions.push(`${method} ${revision}`)),
    )
    const { url } = await startHost({
      toolsets,
      routes: { '/admin': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, observes },
    })
    expect(await verifyServer(`${url}/admin`, fetch, signal)).to.deep.equal({ kind: 'mcp' })
    await eventually('the record', () => revisions.length > 0)
    expect(revisions).to.deep.equal(['server/discover 2026-07-28'])
  })

  for (const [status, body, expected] of [
    [200, failure(-32_602, 1), 'mcp'],
    [200, '<html>', 'other'],
    [404, failure(-32_601, 1), 'mcp'],
    [404, failure(-32_001), 'mcp'],
    [404, failure(-32_001, null), 'mcp'],
    [400, failure(-32_602, 1), 'mcp'],
    [404, failure(-32_600), 'other'],
    [405, failure(-32_600, null), 'other'],
    [405, failure(-32_001), 'other'],
    [400, failure(-32_000, null), 'mcp'],
    [403, failure(-32_000), 'refused'],
    [503, failure(-32_603), 'unsure'],
  ] as const) {
    it(`that responds ${status} ${JSON.stringify(body)} is "${expected}"`, async () => {
      const server = createServer(async (request, response) => {
        if (typeof body === 'string') return response.writeHead(status, { 'content-type': 'text/html' }).end(body)
        const text = (await request.toArray()).join('')
        const { id } = text === '' ? {} : JSON.parse(text)
        const answer = 'id' in body && body.id === 1 ? { ...body, id } : body
        return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo
      const found = await verifyServer(`http://127.0.0.1:${port}/mcp`, fetch, signal)
      server.close()
      expect(found).to.deep.equal(expected === 'mcp' ? { kind: 'mcp' } : { kind: expected, status })
    })
  }

  it('is checked before the browser opens, and nothing is stored', async () => {
    const [{ url }, desk] = await Promise.all([startOwn(), startDesk()])
    const [wrong, health] = [await desk.run(['login', `${url}/admin/nope`]), await desk.run(['login', `${url}/health`])]
    expect([wrong.code, wrong.stdout, health.code, health.stdout]).to.deep.equal([1, '', 1, ''])
    expect(wrong.stderr).to.include(`${url}/admin/nope (404`)
    expect(health.stderr).to.include(`${url}/health`).and.include('HTTP 405').and.include('MCP')
    expect([desk.browser.opened.length, (await desk.run(['status'])).stdout]).to.deep.equal([
      0,
      'no logins on this machine\n',
    ])
  })

  it('behind a login is checked with the token, and the login is undone', async () => {
    const { fake, run } = await startDesk()
    const { rs, as } = fake
    rs.settings.metadata = { resource: rs.url }
    const body = JSON.stringify(failure(-32_600))
    let asked = 0
    Object.defineProperty(rs.settings, 'challenges', {
      get() {
        if (++asked === 2)
          rs.failNext('/mcp', { status: 404, headers: { 'content-type': 'application/json' }, body }, 50)
        return [`Bearer resource_metadata="${rs.url}/.well-known/oauth-protected-resource/mcp"`]
      },
    })
    const { code, stdout, stderr } = await run(['login', fake.serverUrl])
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.include(`${fake.serverUrl} (404`)
    expect(as.tokens.issued.filter(({ active }) => active)).to.deep.equal([])
  })
})
