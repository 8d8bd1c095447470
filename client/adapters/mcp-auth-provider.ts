// A session for the `authProvider` slot of an MCP client's transport, for those who cannot pass a `fetch`. The slot sees
// neither a 403 that asks for more scopes nor DELETE, and cannot send DPoP proofs: prefer the `fetch`, and never set both.
import { AuthError } from '../errors.ts'
import type { AuthSession } from '../session.ts'

/** The two methods that transports of the official client ask for. */
export interface McpAuthProvider {
  token(): Promise<string | undefined>
  onUnauthorized(context: { readonly response: Response }): Promise<void>
}

/**
 * For the `authProvider` slot of the official client, generation 2. That of generation 1 is another one, which wants to
 * do OAuth by itself: there it rejects at the first request with an AuthError `invalid_options`.
 */
export const toAuthProvider = (session: AuthSession): McpAuthProvider => {
  const provider: McpAuthProvider = {
    token: () => session.token(),
    async onUnauthorized({ response }) {
      await session.onUnauthorized(response)
    },
  }
  // What generation 1 asks for first.
  return Object.assign(provider, { tokens: async () => Promise.reject(notForThat()) })
}

const notForThat = () =>
  new AuthError(
    'toAuthProvider is for @modelcontextprotocol/client; the authProvider of @modelcontextprotocol/sdk is another one',
    {
      code: 'invalid_options',
      fix: 'give the transport `fetch: authFetch` instead, and no authProvider',
    },
  )
