// A session for the `authProvider` slot of an MCP client's transport, for those who cannot pass a `fetch`. The slot sees
// neither a 403 that asks for more scopes nor DELETE, and cannot send DPoP proofs: prefer the `fetch`, and never set both.
import type { AuthSession } from '../session.ts'

/** The two methods that transports of the official client ask for. */
export interface McpAuthProvider {
  token(): Promise<string | undefined>
  onUnauthorized(context: { readonly response: Response }): Promise<void>
}

export const toAuthProvider = (session: AuthSession): McpAuthProvider => ({
  token: () => session.token(),
  async onUnauthorized({ response }) {
    await session.onUnauthorized(response)
  },
})
