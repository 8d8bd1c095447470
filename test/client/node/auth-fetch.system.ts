// Tests `createAuthFetch` on Node: browser, loopback listener and connection checks.
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createMemoryTokenCache, createAuthFetch as createPortable } from '../../../client/index.ts'
import { createAuthFetch } from '../../../client/node/client.ts'
import { freePort } from '../../support/free-port.ts'
import { authErrorOf } from '../support/auth-error-of.ts'
import { startFakeServers, stopServers } from '../support/fake-servers.ts'

afterEach(stopServers)

/** Puts a program into `BROWSER` that follows redirects, as a browser does. */
async function withBrowser<T>(work: () => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'browser-'))
  const program = join(directory, 'browser')
  await writeFile(program, `#!${process.execPath}\nfetch(process.argv[2]).then(answer => answer.text())\n`)
  await chmod(program, 0o700)
  const before = process.env['BROWSER']
  process.env['BROWSER'] = program
  try {
    return await work()
  } finally {
    if (before === undefined) delete process.env['BROWSER']
    else process.env['BROWSER'] = before
    await rm(directory, { recursive: true })
  }
}

it('opens the browser and receives the response at a loopback redirect URI', async () => {
  const fake = await startFakeServers()
  const redirectUri = `http://127.0.0.1:${await freePort()}/callback`
  const authFetch = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri })
  const response = await withBrowser(() => authFetch(fake.serverUrl, { method: 'POST', body: '{}' }))
  expect(response.status).to.equal(200)
  expect(fake.as.to('/token')[0]?.form.get('redirect_uri')).to.equal(redirectUri)
})

it('port 0: registers and sends the actual port, and reuses it at the next login', async () => {
  const fake = await startFakeServers()
  const tokenCache = createMemoryTokenCache()
  const sent: (string | null | undefined)[][] = []
  for (const redirectUri of ['http://127.0.0.1:0/callback', 'http://127.0.0.1:0/callback']) {
    const { session } = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri, tokenCache })
    await withBrowser(() => session.login())
    sent.push([
      fake.as.to('/authorize').at(-1)?.query.get('redirect_uri'),
      fake.as.to('/token').at(-1)?.form.get('redirect_uri'),
    ])
  }
  const registered = fake.as.to('/register').map(({ body }) => JSON.parse(body).redirect_uris)
  const [first] = sent.flat()
  expect(first).to.match(/^http:\/\/127\.0\.0\.1:[1-9]\d*\/callback$/)
  expect(registered).to.deep.equal([[first]])
  expect(new Set(sent.flat())).to.deep.equal(new Set([first]))
})

it('port 0: registers another port if the earlier one is in use', async () => {
  const fake = await startFakeServers()
  const { session } = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri: 'http://localhost:0/back' })
  await withBrowser(() => session.login())
  const first = fake.as.to('/authorize').at(-1)?.query.get('redirect_uri') ?? ''
  const squatter = createServer().listen(Number(new URL(first).port), '127.0.0.1')
  await once(squatter, 'listening')
  await withBrowser(() => session.login())
  squatter.close()
  const second = fake.as.to('/authorize').at(-1)?.query.get('redirect_uri') ?? ''
  expect(new URL(second)).to.include({ hostname: 'localhost', pathname: '/back' })
  expect(second).not.to.equal(first)
  expect(fake.as.count('/register')).to.equal(2)
})

it('port 0: is rejected if no listener is used', async () => {
  const redirectUri = 'http://127.0.0.1:0/callback'
  for (const options of [
    { redirectUri, interactive: 'defer' as const },
    { redirectUri, authorizationRedirectDelegate: async () => null },
    { redirectUri: `${redirectUri}?x=1` },
    { redirectUri: 'https://app.example:0/callback' },
  ]) {
    const error = await authErrorOf(() => createAuthFetch({ serverUrl: 'https://mcp.example', ...options }))
    expect([error.code, error.message.includes('port 0')]).to.deep.equal(['invalid_options', true])
  }
  const portable = await authErrorOf(() => createPortable({ serverUrl: 'https://mcp.example', redirectUri }))
  expect(portable.code).to.equal('invalid_options')
})

it('throws the authorization URL if the redirect URI is remote and there is no delegate', async () => {
  const fake = await startFakeServers()
  const authFetch = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri: 'https://app.example/callback' })
  const error = await authErrorOf(() => authFetch(fake.serverUrl, { method: 'POST', body: '{}' }))
  expect(error.code).to.equal('interaction_required')
  expect((error as { authorizationUrl?: string }).authorizationUrl).to.include(`${fake.as.url}/authorize?`)
})

it('R-93: checks every connection with blockPrivateNetworks', async () => {
  const fake = await startFakeServers()
  const hosts = [fake.rs.url, fake.as.url].map(url => new URL(url).host)
  const { fetch } = globalThis
  let unguarded = 0
  globalThis.fetch = (input, init) => {
    unguarded++
    return fetch(input, init)
  }
  try {
    const authFetch = createAuthFetch({
      serverUrl: fake.serverUrl,
      redirectUri: 'https://app.example/callback',
      interactive: 'defer',
      networkPolicy: { blockPrivateNetworks: true, allowHosts: hosts },
    })
    const error = await authErrorOf(() => authFetch(fake.serverUrl, { method: 'POST', body: '{}' }))
    expect(error.code).to.equal('interaction_required')
  } finally {
    globalThis.fetch = fetch
  }
  expect(fake.as.requests.length).to.be.greaterThan(1)
  expect(unguarded).to.equal(0)
})
