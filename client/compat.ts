// Options for authorization servers with deviations, and the adapter for the `authProvider` option of MCP clients.

import { AuthError } from './errors.ts'
import type { ClientOAuthOptions } from './options.ts'
import type { AuthSession } from './session.ts'

type Recipe = Partial<ClientOAuthOptions>

/**
 * Microsoft Entra ID, v2 endpoints. It refuses `resource`, wants the scope named on refresh, does PKCE without saying
 * so, and registers nobody dynamically: `clientId` is the application's.
 */
export function entra(about: {
  /** A tenant's id (a GUID) or verified domain; not `common`, whose issuer is another one for each tenant. */
  readonly tenant: string
  readonly clientId: string
  readonly clientSecret?: string
  /** As the API exposes them, such as `api://<application id>/mcp.tools`. */
  readonly scopes: readonly string[]
}): Recipe {
  const { tenant, clientId, clientSecret, scopes } = about
  const issuer = `https://login.microsoftonline.com/${tenant}/v2.0`
  return {
    clientId,
    ...(clientSecret !== undefined && { clientSecret, clientIssuer: issuer }),
    scopes: [...scopes, 'offline_access'],
    resourceIndicator: 'omit',
    refreshScope: 'granted',
    assumePkceS256: [issuer],
  }
}

/**
 * Google. It publishes its issuer without the final slash that resources tend to list, gives a refresh token for
 * `access_type=offline` rather than for a scope, and registers nobody dynamically.
 */
export function google(about: {
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
}): Recipe {
  return {
    ...about,
    clientIssuer: 'https://accounts.google.com',
    issuerMatch: 'ignore-trailing-slash',
    offlineAccess: false,
    resourceIndicator: 'omit',
    additionalAuthorizationParameters: { access_type: 'offline', prompt: 'consent' },
  }
}

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
