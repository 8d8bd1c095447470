// A program that calls a server through the client of the package; the server's address is its argument.
import { AuthError, type ClientOAuthOptions, createAuthFetch, entra } from 'mcp-host/client'
import { createFileTokenCache, createLoopbackRedirect } from 'mcp-host/client/node'

const serverUrl = process.argv[2] ?? ''
const redirect = await createLoopbackRedirect()
const options: ClientOAuthOptions = {
  serverUrl,
  redirectUri: redirect.redirectUri,
  authorizationRedirectDelegate: redirect.delegate,
  tokenCache: createFileTokenCache('tokens'),
  onEvent: ({ type }) => console.error(type),
}
const authFetch: typeof fetch = createAuthFetch(options)
const response = await authFetch(serverUrl, { method: 'POST', body: '{}' })
console.log(response.status, (await createAuthFetch(options).session.status()).loggedIn)
try {
  createAuthFetch({ ...options, ...entra({ tenant: 'contoso', clientId: 'app', scopes: ['a b'] }) })
} catch (error) {
  console.log(AuthError.is(error) && error.code)
}
await redirect.close()
