// The session in the `authProvider` slot of the official client, for those who cannot pass a `fetch`.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientOfV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportOfV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { AuthError } from '../../client/errors.ts'
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

it('says in the slot of generation 1, which is another one, what to do instead', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const transport = new TransportOfV1(new URL(fake.serverUrl), {
    authProvider: toAuthProvider(authFetch.session) as never,
  })
  const thrown = await new ClientOfV1({ name: 'test', version: '1' })
    .connect(transport)
    .catch((error: unknown) => error)
  expect(AuthError.is(thrown)).to.equal(true)
  expect((thrown as AuthError).message).to.include('fetch: authFetch')
  expect(fake.logins.length).to.equal(0)
})
