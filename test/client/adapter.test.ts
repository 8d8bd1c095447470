// Tests the session as `authProvider` of the official client.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientOfV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportOfV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { AuthError } from '../../client/errors.ts'
import { toAuthProvider } from '../../client/index.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

it('provides the stored token, and gets a new one after a 401', async () => {
  const fake = await startFakeServers()
  const { authFetch } = startClient(fake)
  const provider = toAuthProvider(authFetch.session)
  expect(await provider.token()).to.equal(undefined)
  await provider.onUnauthorized({ response: await fetch(fake.serverUrl, { method: 'POST', body: '{}' }) })
  expect(await provider.token()).to.be.a('string')
  expect(fake.logins.length).to.equal(1)
})

it('logs in the official client', async () => {
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

it('rejects the incompatible authProvider slot of SDK version 1, with advice', async () => {
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
