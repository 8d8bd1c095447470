// Tests that callers of one shared acquisition keep their own way to ask the user, and that the first request has a time limit.
import { expect } from 'chai'
import { createAuthFetch, createMemoryTokenCache } from '../../client/index.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

it('a deferred login does not fail other callers of the same tokens', async () => {
  const fake = await startFakeServers()
  const tokenCache = createMemoryTokenCache()
  const deferred = startClient(fake, { tokenCache, interactive: 'defer' })
  const asking = startClient(fake, { tokenCache })
  const silent = startClient(fake, { tokenCache, interactive: 'any' })
  // A deferred caller that starts later could find the tokens of the others.
  const error = await authErrorOf(() => deferred.post())
  const responses = await Promise.all([asking.post(), silent.get()])
  expect(error.code).to.equal('interaction_required')
  expect(responses.map(({ status }) => status)).to.deep.equal([200, 200])
  await Promise.all(responses.map(({ body }) => body?.cancel()))
  expect(fake.logins).to.have.length(1)
})

it('a login ends if the server does not respond', async () => {
  const original = AbortSignal.timeout
  AbortSignal.timeout = () => original.call(AbortSignal, 1)
  try {
    const { session } = createAuthFetch({
      serverUrl: 'https://mcp.example/mcp',
      redirectUri: 'https://app.example/callback',
      fetch: () => new Promise<Response>(() => undefined),
    })
    const error = await authErrorOf(() => session.login())
    expect(error).to.include({ code: 'temporarily_unavailable', retryable: true })
  } finally {
    AbortSignal.timeout = original
  }
})
