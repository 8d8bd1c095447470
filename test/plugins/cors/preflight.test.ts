// Tests CORS preflight requests.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { APP, believeBearer, corsHeaders, names, preflight } from './preflight.ts'

const PRESET = [
  'Content-Type',
  'Accept',
  'Authorization',
  'DPoP',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
  'traceparent',
  'tracestate',
  'baggage',
].map(name => name.toLowerCase())

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echo' })] },
    routes: {
      '/': { toolsets: 'all' },
      '/app': { toolsets: 'all', cors: 'browser', authorize: true },
      '/any': { toolsets: 'all', cors: 'any', authorize: true },
      '/cookies': { toolsets: 'all', cors: 'cookies' },
      '/post-only': { toolsets: 'all', cors: 'browser', stateless: true },
      '/t/:category?': { toolsets: ':category', cors: 'browser' },
    },
    plugins: {
      'transport-streamable': {},
      identify: believeBearer(),
      cors: {
        policies: {
          browser: { origins: [APP, 'HTTPS://Other.Acme.Example:443', 'vscode-webview://Panel'] },
          any: { origins: ['*'], maxAge: '2h', headers: ['X-Tenant-Id'] },
          cookies: { origins: [APP], credentials: true },
        },
      },
    },
  }))
})
after(stopHosts)

describe('cors: preflight from an allowed origin', () => {
  it('returns 204 without a body and without a token, on a protected route', async () => {
    const answer = await preflight(`${url}/app`)
    expect([answer.status, await answer.text()]).to.deep.equal([204, ''])
    expect(corsHeaders(answer.headers)).to.include({
      'access-control-allow-origin': APP,
      'access-control-max-age': '600',
    })
    expect(names(answer.headers.get('vary'))).to.include('origin')
  })

  it('allows every HTTP method and MCP request header of every protocol version', async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { headers } = await preflight(`${url}/app`, {
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': PRESET.join(','),
      })
      expect(names(headers.get('access-control-allow-methods'))).to.have.members(['get', 'post', 'delete', 'options'])
      expect(names(headers.get('access-control-allow-headers'))).to.have.members(PRESET)
    }
  })

  it('allows requested Mcp-Param-* headers and no other requested header', async () => {
    const asked = 'mcp-method, mcp-param-region,Mcp-Param-Tenant_2, x-other, mcp-param-, x-mcp-param-a, mcp-param-a b'
    const { headers } = await preflight(`${url}/app`, { 'Access-Control-Request-Headers': asked })
    const allowed = names(headers.get('access-control-allow-headers'))
    expect(allowed).to.have.members([...PRESET, 'mcp-param-region', 'mcp-param-tenant_2'])
  })

  it('allows the request headers of the policy', async () => {
    const allowed = (await preflight(`${url}/any`)).headers.get('access-control-allow-headers')
    expect(names(allowed)).to.have.members([...PRESET, 'x-tenant-id'])
  })

  it('accepts equivalent spellings of a configured origin, and origins with a custom scheme', async () => {
    for (const origin of ['https://other.acme.example', 'vscode-webview://panel']) {
      const { status, headers } = await preflight(`${url}/app`, { Origin: origin })
      expect([status, headers.get('access-control-allow-origin')]).to.deep.equal([204, origin])
    }
  })

  it('is answered before method checks, and for an unknown category', async () => {
    for (const path of ['/post-only', '/t/all', '/t/nothing', '/app/']) {
      expect((await preflight(`${url}${path}`, { 'Access-Control-Request-Method': 'GET' })).status, path).to.equal(204)
    }
  })

  it('allows private network access for listed origins, only on request', async () => {
    const ask = { 'Access-Control-Request-Private-Network': 'true' }
    const name = 'access-control-allow-private-network'
    expect((await preflight(`${url}/app`, ask)).headers.get(name)).to.equal('true')
    expect((await preflight(`${url}/app`)).headers.get(name)).to.equal(null)
    expect((await preflight(`${url}/any`, ask)).headers.get(name)).to.equal(null)
  })

  it('allows credentials only if the policy does', async () => {
    const name = 'access-control-allow-credentials'
    expect((await preflight(`${url}/cookies`)).headers.get(name)).to.equal('true')
    expect((await preflight(`${url}/app`)).headers.get(name)).to.equal(null)
  })

  it('returns * for a policy with any origin, and the configured max age', async () => {
    for (const origin of [APP, 'https://elsewhere.example', 'null']) {
      const { status, headers } = await preflight(`${url}/any`, { Origin: origin })
      expect(status).to.equal(204)
      expect(corsHeaders(headers)).to.include({
        'access-control-allow-origin': '*',
        'access-control-max-age': '7200',
      })
    }
  })
})

describe('cors: rejected preflight', () => {
  const FOREIGN = ['https://evil.example', 'https://app.acme.example.evil.example', 'http://app.acme.example', 'null']

  it('is 403 without CORS headers from a foreign origin', async () => {
    for (const origin of FOREIGN) {
      const { status, headers } = await preflight(`${url}/app`, { Origin: origin })
      expect([status, corsHeaders(headers)], origin).to.deep.equal([403, {}])
    }
  })

  it('has no CORS headers for a host origin that the policy does not list', async () => {
    const { status, headers } = await preflight(`${url}/app`, { Origin: 'http://localhost:5173' })
    expect([status, corsHeaders(headers)]).to.deep.equal([401, {}])
  })

  it('is 403 on a route without a policy, even for origins of other routes', async () => {
    const { status, headers } = await preflight(url)
    expect([status, corsHeaders(headers)]).to.deep.equal([403, {}])
  })

  it('without Access-Control-Request-Method is treated as a plain OPTIONS request', async () => {
    const answer = await fetch(`${url}/cookies`, { method: 'OPTIONS', headers: { Origin: APP } })
    expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, POST, DELETE'])
  })
})
