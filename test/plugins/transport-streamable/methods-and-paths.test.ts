import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { requestHead, sendRaw } from '../../support/raw-http.ts'
import { legacy, modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const echo = defineTool({ name: 'echo', handler: () => 'still here' })

let stateful: string
let stateless: string
before(async () => {
  const config = { toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' }, '/Sub/mcp': { toolsets: 'all' } } }
  stateful = (await startHost({ ...config, plugins: { 'transport-streamable': {}, health: {} } })).url
  stateless = (await startHost({ ...config, stateless: true })).url
})
after(stopHosts)

describe('HTTP methods and paths', () => {
  for (const method of ['GET', 'HEAD', 'DELETE', 'PUT', 'OPTIONS', 'PATCH']) {
    it(`${method} on a stateless route gets 405 with Allow: POST, for any headers`, async () => {
      for (const headers of [{}, { 'MCP-Protocol-Version': MODERN_REVISION }, { 'Mcp-Session-Id': 'x' }]) {
        const answer = await fetch(stateless, { method, headers: { Accept: 'text/event-stream', ...headers } })
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST'])
        const text = await answer.text()
        if (method === 'HEAD') expect(text).to.equal('')
        else expect(JSON.parse(text).error.code).to.equal(-32600)
      }
    })
  }

  it('GET and DELETE in 2026-07-28 get 405 with Allow: POST on a route with sessions', async () => {
    for (const method of ['GET', 'DELETE']) {
      const headers = { 'MCP-Protocol-Version': MODERN_REVISION, Accept: 'text/event-stream', 'Mcp-Session-Id': 'x' }
      const answer = await fetch(stateful, { method, headers })
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST'])
    }
  })

  it('HEAD, PUT, OPTIONS and PATCH get 405 with Allow on a route with sessions', async () => {
    for (const method of ['HEAD', 'PUT', 'OPTIONS', 'PATCH']) {
      const answer = await fetch(stateful, { method })
      expect(answer.status, method).to.equal(405)
      expect(answer.headers.get('allow')?.split(', '), method).to.include('POST').and.not.include(method)
    }
  })

  it('HEAD is not served as GET, unless the endpoint allows it', async () => {
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': 'x' }
    const route = await fetch(stateful, { method: 'HEAD', headers })
    expect([route.status, route.headers.get('allow')]).to.deep.equal([405, 'GET, POST, DELETE'])
    expect((await fetch(`${stateful}/health`, { method: 'HEAD' })).status).to.equal(200)
  })

  it('an unknown path gets 404 for every method, before content negotiation', async () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PUT', 'OPTIONS', 'POST']) {
      const answer = await fetch(`${stateful}/nowhere`, { method })
      expect(answer.status, method).to.equal(404)
      expect(answer.headers.get('allow'), method).to.equal(null)
    }
    const { message } = await modern(`${stateful}/nowhere`, 'server/discover')
    expect([message.error.code, message.error.message]).to.deep.equal([
      -32600,
      'Not found: nothing is served at this path; open routes: /, /Sub/mcp',
    ])
  })

  it('a trailing slash or a query selects the same endpoint', async () => {
    for (const path of ['/Sub/mcp', '/Sub/mcp/', '/Sub/mcp?x=1', '/Sub/mcp/?x=/', '?y']) {
      expect((await modern(stateful + path, 'server/discover')).status, path).to.equal(200)
    }
  })

  it('paths are case-sensitive, and longer, doubled or encoded paths differ', async () => {
    const others = ['/sub/mcp', '/SUB/MCP', '/Sub/mcp/more', '/Sub/mcp//', '/Sub//mcp', '/Sub%2Fmcp', '/Sub/mcp%00']
    for (const path of others) {
      expect((await modern(stateful + path, 'server/discover')).status, path).to.equal(404)
    }
  })

  it('invalid request targets are refused without an internal error', async () => {
    const targets = ['/%zz', '/%', '//', '/../..', '*', '/\u00e9', '/a;b', '/?\u0000']
    for (const path of targets) {
      const { status } = await sendRaw(stateful, requestHead(stateful, { method: 'GET', path }))
      expect([400, 404, 405], path).to.include(status)
    }
  })

  it('valid requests work after all previous errors', async () => {
    const { message } = await modern(stateful, 'tools/call', { name: 'echo' })
    expect(message.result.content[0].text).to.equal('still here')
    expect((await legacy(stateless, 'ping')).message.result).to.deep.equal({})
  })
})
