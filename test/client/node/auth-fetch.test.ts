// What Node's `createAuthFetch` adds: a browser and a listener for logins, and eyes for the address it connects to.
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createAuthFetch } from '../../../client/node/client.ts'
import { freePort } from '../../support/redis-server.ts'
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

it('opens the browser and receives its answer at a loopback redirectUri', async () => {
  const fake = await startFakeServers()
  const redirectUri = `http://127.0.0.1:${await freePort()}/callback`
  const authFetch = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri })
  const response = await withBrowser(() => authFetch(fake.serverUrl, { method: 'POST', body: '{}' }))
  expect(response.status).to.equal(200)
  expect(fake.as.to('/token')[0]?.form.get('redirect_uri')).to.equal(redirectUri)
})

it('throws where to log in when the redirectUri leads elsewhere and nobody shows it', async () => {
  const fake = await startFakeServers()
  const authFetch = createAuthFetch({ serverUrl: fake.serverUrl, redirectUri: 'https://app.example/callback' })
  const error = await authErrorOf(() => authFetch(fake.serverUrl, { method: 'POST', body: '{}' }))
  expect(error.code).to.equal('interaction_required')
  expect((error as { authorizationUrl?: string }).authorizationUrl).to.include(`${fake.as.url}/authorize?`)
})

it('R-93: with blockPrivateNetworks every connection is judged, without a fetch of the caller', async () => {
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
