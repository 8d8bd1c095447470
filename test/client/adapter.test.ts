// The session in the `authProvider` slot of the official client, for those who cannot pass a `fetch`.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { toAuthProvider } from '../../client/index.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

it('gives the stored token, and gets one when the transport is refused', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const provider = toAuthProvider(authFetch.session)
  expect(await provider.token()).to.equal(undefined)
  await provider.onUnauthorized({ response: await fetch(fake.serverUrl, { method: 'POST', body: '{}' }) })
  expect(await provider.token()).to.be.a('string')
  expect(fake.logins.length).to.equal(1)
})

it('logs the official client in', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const transport = new StreamableHTTPClientTransport(new URL(fake.serverUrl), {
    authProvider: toAuthProvider(authFetch.session),
  })
  // The server behind it is none, so that the connection fails once it was let in.
  await new Client({ name: 'test', version: '1' }).connect(transport).catch(() => undefined)
  await transport.close()
  expect(fake.logins.length).to.equal(1)
  expect(fake.rs.admitted).to.be.greaterThan(0)
})
