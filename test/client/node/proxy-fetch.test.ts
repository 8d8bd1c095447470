// Tests the client behind an HTTP proxy.
import { expect } from 'chai'
import { createAuthFetch as createPortable } from '../../../client/index.ts'
import { createAuthFetch } from '../../../client/node/client.ts'
import { createProxyFetch } from '../../../client/node/index.ts'
import { authErrorOf } from '../support/auth-error-of.ts'
import { startFakeServers, stopServers } from '../support/fake-servers.ts'
import { startClient } from '../support/start-client.ts'
import { startProxy, type TestProxy } from './support/proxy.ts'

let proxy: TestProxy
beforeEach(async () => {
  proxy = await startProxy()
})
afterEach(async () => {
  await proxy.close()
  await stopServers()
})

it('sends login and API requests through the proxy', async () => {
  const fake = await startFakeServers()
  const withUser = proxy.url.replace('http://', 'http://me:pass-word@')
  const { post, authFetch } = startClient(fake, { fetch: createProxyFetch({ proxy: withUser }) })
  expect((await post()).status).to.equal(200)
  const request = new Request(fake.serverUrl, { method: 'POST', body: '{"id":2}' })
  expect(((await (await authFetch(request)).json()) as { body: string }).body).to.equal('{"id":2}')
  const hosts = [fake.rs.url, fake.as.url].map(url => new URL(url).host)
  expect([...new Set(proxy.asked)].sort()).to.deep.equal(hosts.sort())
  expect(new Set(proxy.credentials)).to.deep.equal(new Set([`Basic ${btoa('me:pass-word')}`]))
  expect(fake.rs.to('/mcp').some(({ headers }) => 'proxy-authorization' in headers)).to.equal(false)
})

it('env: uses the proxy of the environment', async () => {
  const fake = await startFakeServers()
  const before = { ...process.env }
  for (const name of ['http_proxy', 'no_proxy']) delete process.env[name]
  Object.assign(process.env, { HTTP_PROXY: proxy.url, NO_PROXY: 'away.example' })
  try {
    const proxied = createProxyFetch({ proxy: 'env' })
    const { post } = startClient(fake, { fetch: proxied })
    // Loopback, which goes past it.
    expect((await post()).status).to.equal(200)
    expect(proxy.asked).to.deep.equal([])
    const named = fake.serverUrl.replace('127.0.0.1', 'mcp.example')
    expect((await proxied(named)).status).to.be.a('number')
    expect(await proxied('http://away.example/').catch(String)).to.equal('TypeError: fetch failed')
    expect(proxy.asked).to.deep.equal([new URL(named).host])
  } finally {
    for (const name of ['HTTP_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy']) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
})

it('reports an unreachable or invalid proxy', async () => {
  const fake = await startFakeServers()
  await proxy.close()
  const { authFetch } = startClient(fake, { fetch: createProxyFetch({ proxy: proxy.url }) })
  const away = await authErrorOf(() => authFetch.session.login())
  expect(away.code).to.equal('temporarily_unavailable')
  expect(away.message).to.include('HTTP').and.include(proxy.url).and.include('ECONNREFUSED')
  for (const wrong of ['proxy.example:3128', 'socks5://127.0.0.1:1080', '']) {
    expect((await authErrorOf(() => createProxyFetch({ proxy: wrong }))).code).to.equal('invalid_options')
  }
  proxy = await startProxy()
})

it('cannot be combined with blockPrivateNetworks, because the proxy hides the address', async () => {
  const options = {
    serverUrl: 'https://mcp.example',
    redirectUri: 'https://app.example/callback',
    networkPolicy: { blockPrivateNetworks: true },
    fetch: createProxyFetch({ proxy: proxy.url }),
  }
  const error = await authErrorOf(() => createAuthFetch(options))
  expect([error.code, error.message.includes('proxy')]).to.deep.equal(['invalid_options', true])
  expect(() => createPortable({ ...options, networkPolicy: {} })).not.to.throw()
})
