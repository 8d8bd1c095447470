// Tests that responses to allowed cross-origin pages carry CORS headers, including errors and streams.
import { expect } from 'chai'
import { defineTool, HostError } from '../../../core/index.ts'
import { hello, plugin } from '../../fixtures/plugins.ts'
import { openCall } from '../../support/event-reader.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { requestHead, sendRaw } from '../../support/raw-http.ts'
import { legacy, modern, modernRequest, post } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { APP, believeBearer, corsHeaders, names } from './preflight.ts'

const FROM_APP = { Origin: APP }
const AS_ANN = { ...FROM_APP, Authorization: 'Bearer ann' }

const puppet = createPuppet()

let url: string
before(async () => {
  ;({ url } = await startHost({
    http: { port: 0, maxBodySize: '10kb' },
    toolsets: { all: [hello, puppet.tool], other: [defineTool({ name: 'echo', handler: () => 'echo' })] },
    routes: {
      '/plain': { toolsets: 'all' },
      '/open': { toolsets: 'all', cors: 'browser' },
      '/signed-in': { toolsets: 'all', cors: 'browser', authorize: true },
      '/admin': { toolsets: 'all', cors: 'browser', authorize: { scope: 'admin' } },
      '/t/:category': { toolsets: ':category', cors: 'browser', plugins: { 'transport-sse': false } },
    },
    plugins: {
      limiter: plugin(host => {
        host.onRequest((ctx, next) => {
          if (ctx.get('X-Limit') === 'edge') throw new HostError('tooManyRequests', { headers: { 'Retry-After': '7' } })
          return next()
        })
      }),
      'transport-streamable': {},
      'transport-sse': {},
      identify: believeBearer(),
      cors: { policies: { browser: { origins: [APP] } } },
    },
  }))
})
after(stopHosts)

interface Answered {
  readonly status: number
  readonly headers: Headers
}

function expectReadable({ headers }: Answered, what: string) {
  expect(corsHeaders(headers), what).to.have.keys(['access-control-allow-origin', 'access-control-expose-headers'])
  expect(headers.get('access-control-allow-origin'), what).to.equal(APP)
  const exposed = [
    'mcp-session-id',
    'www-authenticate',
    'dpop-nonce',
    'retry-after',
    'ratelimit',
    'ratelimit-policy',
    'mcp-protocol-version',
  ]
  expect(names(headers.get('access-control-expose-headers')), what).to.have.members(exposed)
  expect(names(headers.get('vary')), what).to.include('origin')
}

const list = (path: string, headers: Record<string, string | undefined>) =>
  modern(`${url}${path}`, 'tools/list', {}, { headers })

const REFUSED: Array<[number, string, () => Promise<Answered>]> = [
  [400, 'malformed JSON', () => post(`${url}/open`, '{', FROM_APP)],
  [400, 'an unsupported version', () => list('/open', { ...FROM_APP, 'MCP-Protocol-Version': '1999-01-01' })],
  [401, 'no token', () => list('/signed-in', FROM_APP)],
  [403, 'a token that lacks a scope', () => list('/admin', AS_ANN)],
  [404, 'a category that does not exist', () => list('/t/nothing', FROM_APP)],
  [
    404,
    'an unknown session',
    () => legacy(`${url}/open`, 'ping', {}, { headers: { ...FROM_APP, 'Mcp-Session-Id': 'x' } }),
  ],
  [404, 'an unknown method', () => modern(`${url}/open`, 'no/such', {}, { headers: FROM_APP })],
  [405, 'a verb that is not served', () => fetch(`${url}/open`, { method: 'PUT', headers: FROM_APP })],
  [406, 'an Accept that cannot be met', () => list('/open', { ...FROM_APP, Accept: 'text/html' })],
  [413, 'a body that is too large', () => post(`${url}/open`, ' '.repeat(20_000), FROM_APP)],
  [415, 'a body of another type', () => list('/open', { ...FROM_APP, 'Content-Type': 'text/plain' })],
  [429, 'a limit at the edge, set up before cors', () => list('/open', { ...FROM_APP, 'X-Limit': 'edge' })],
]

describe('cors: responses to an allowed origin', () => {
  it('are readable as JSON, for modern and legacy requests', async () => {
    const now = await list('/open', FROM_APP)
    expect([now.status, now.message.result.tools.length]).to.deep.equal([200, 2])
    expectReadable(now, 'modern')
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
    const opened = await legacy(`${url}/open`, 'initialize', params, { headers: FROM_APP, revision: undefined })
    expect(opened.headers.get('mcp-session-id')).to.be.a('string')
    expectReadable(opened, 'initialize')
  })

  it('are readable as streams: of a call, of a session and of HTTP+SSE', async () => {
    const { response, events } = await openCall(`${url}/open`, 'puppet', { name: 'slow' }, { headers: FROM_APP })
    const { finish } = await puppet.call('slow')
    expect(response.headers.get('content-type')).to.match(/^text\/event-stream/)
    expectReadable(response, 'call')
    finish('done')
    expect((await events.rest()).at(-1)?.result.content[0].text).to.equal('done')

    const over = new AbortController()
    const stream = { headers: { ...FROM_APP, Accept: 'text/event-stream' }, signal: over.signal }
    const old = await fetch(`${url}/open/sse`, stream)
    expectReadable(old, 'HTTP+SSE')
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
    const opened = await legacy(`${url}/open`, 'initialize', params, { headers: FROM_APP, revision: undefined })
    const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' }
    const standalone = await fetch(`${url}/open`, { ...stream, headers: { ...stream.headers, ...session } })
    expect([old.status, standalone.status]).to.deep.equal([200, 200])
    expectReadable(standalone, 'GET')
    over.abort()
  })

  for (const [status, what, send] of REFUSED) {
    it(`are readable with status ${status}: ${what}`, async () => {
      const answer = await send()
      expect(answer.status).to.equal(status)
      expectReadable(answer, what)
    })
  }

  it('expose WWW-Authenticate and Retry-After', async () => {
    expect((await list('/signed-in', FROM_APP)).headers.get('www-authenticate')).to.match(/^Bearer/)
    expect((await list('/admin', AS_ANN)).headers.get('www-authenticate')).to.contain('scope="admin"')
    expect((await list('/open', { ...FROM_APP, 'X-Limit': 'edge' })).headers.get('retry-after')).to.equal('7')
  })
})

describe('cors: responses without CORS headers', () => {
  it('are 403 on a route without a policy, whatever other routes allow', async () => {
    const answer = await list('/plain', FROM_APP)
    expect([answer.status, corsHeaders(answer.headers)]).to.deep.equal([403, {}])
  })

  it('are sent to requests without Origin, with Vary: Origin', async () => {
    const { headers, body } = modernRequest('tools/list')
    const answer = await post(`${url}/open`, body, headers)
    expect([answer.status, corsHeaders(answer.headers)]).to.deep.equal([200, {}])
    expect(names(answer.headers.get('vary'))).to.include('origin')
  })

  it('are sent to an origin that the host allows but the policy does not list', async () => {
    const answer = await list('/open', { Origin: 'http://localhost:5173' })
    expect([answer.status, corsHeaders(answer.headers)]).to.deep.equal([200, {}])
  })

  it('are 403 for a foreign Host header, even from an allowed origin', async () => {
    const headers = { ...FROM_APP, Host: 'evil.example' }
    const answer = await sendRaw(url, requestHead(url, { path: '/open', headers }))
    expect([answer.status, answer.headers.has('access-control-allow-origin')]).to.deep.equal([403, false])
  })
})
