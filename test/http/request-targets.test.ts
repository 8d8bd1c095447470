// Tests malformed request targets and headers over a raw socket: rejection without internal errors.
import { expect } from 'chai'
import { hello } from '../fixtures/plugins.ts'
import { requestBytes, requestHead, sendRaw } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { type StartedHost, startHost, stopHosts } from '../support/start-host.ts'
import { selectCases } from '../support/thorough.ts'

let host: StartedHost
let proxied: StartedHost
before(async () => {
  const config = {
    toolsets: { all: [hello] },
    routes: { '/mcp': { toolsets: 'all', cors: 'page' }, '/t/:set?': { toolsets: ':set', default: ['all'] } },
    plugins: {
      'transport-streamable': {},
      'transport-sse': {},
      health: {},
      cors: { policies: { page: { origins: ['https://app.example'] } } },
      'resource-metadata': { authorizationServers: ['https://login.example'] },
      'dev-auth-server': {},
    },
  }
  host = await startHost(config)
  proxied = await startHost({ ...config, http: { port: 0, trustProxy: true } })
})
after(stopHosts)

const ODD_TARGETS = [
  ...['http://[/', 'foo://bar', 'http://?x', 'http://', 'http:///mcp', 'http://[::1/mcp', 'http://:80/mcp'],
  ...['http://user@localhost/mcp', 'http://localhost:999999/mcp', 'http:mcp', 'mcp', '?x', '*', 'data:,x', '://'],
  ...['//[', '//[/mcp', '///', '/mcp/../health', '/mcp#x', '/mcp%', '/%', '/%ff', '/%00', '/mcp%0d%0a', '/[', '/|'],
  ...['/t/%2561ll', '/mcp\\', '\\mcp', '/;', '/mcp//', '/.', '/..', '/%2e', '/\u00e9', `/${'a/'.repeat(4_000)}`],
  ...[
    '/dev-auth/authorize/%zz',
    '/.well-known/oauth-protected-resource/%',
    '/.well-known//oauth-protected-resource/mcp',
  ],
]
const ODD_NAMES = ['[', '[::1', 'a b', 'x:y:z', 'http://[', '[::]:99999', ',', '\u00e9', '%']

/** Sends a request, which must not fail with a server error. */
async function send(url: string, head: Buffer | string, what: string) {
  const { status } = await sendRaw(url, head)
  expect(status, what).to.be.within(200, 499)
}

const failures = () => [...host.log, ...proxied.log].filter(({ level }) => level === 'error')

describe('Malformed request targets', () => {
  it('cause no 5xx response and no error log on any method', async () => {
    for (const path of ODD_TARGETS) {
      for (const method of selectCases(['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD'], 1)) {
        await send(host.url, requestHead(host.url, { method, path }), `${method} ${path}`)
      }
    }
    expect(failures()).to.deep.equal([])
  })

  it('are checked by the host guard first', async () => {
    for (const path of ['http://[/', 'foo://bar', 'http://?x', '/%', '/nowhere', '/mcp']) {
      for (const headers of [{ Host: 'evil.example' }, { Origin: 'https://evil.example' }]) {
        const { status } = await sendRaw(host.url, requestHead(host.url, { path, headers }))
        expect(status, `${path} ${JSON.stringify(headers)}`).to.equal(403)
      }
    }
  })

  it('in absolute form are validated together with the Host header', async () => {
    const { headers, body } = modernRequest('tools/list')
    const ask = async (path: string, more = {}) =>
      (await sendRaw(host.url, requestBytes(host.url, body, { path, headers: { ...headers, ...more } }))).status
    const { host: own } = new URL(host.url)
    for (const path of [`http://${own}/mcp`, `HTTP://LOCALHOST/%6dcp/`, `http://${own}/mcp?x=//`, `http://${own}/t`]) {
      expect(await ask(path), path).to.equal(200)
    }
    expect(await ask('http://evil.example/mcp')).to.equal(403)
    expect(await ask(`http://${own}/mcp`, { Host: 'evil.example' })).to.equal(403)
    expect(await ask(`http://${own}`)).to.equal(404)
  })
})

describe('Malformed header values', () => {
  it('cause no 5xx response and no error log, also behind a proxy', async () => {
    const paths = ['/mcp', '/nowhere', '/dev-auth/authorize', '/dev-auth/token', '/t/all/sse', 'http://[/']
    for (const { url } of [host, proxied]) {
      for (const path of paths) {
        for (const name of ODD_NAMES) {
          for (const header of selectCases(['Host', 'Origin', 'Referer', 'X-Forwarded-Host', 'X-Forwarded-For'], 1)) {
            const both = { [header]: name, Authorization: 'Bearer x', 'X-Forwarded-Proto': name }
            const method = path === '/t/all/sse' ? 'OPTIONS' : 'GET'
            await send(url, requestHead(url, { method, path, headers: both }), `${path} ${header}: ${name}`)
          }
        }
      }
    }
    expect(failures()).to.deep.equal([])
  })
})
