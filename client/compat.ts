// Presets for authorization servers with deviations, and an adapter for the `authProvider` option of MCP clients.

import { AuthError } from './errors.ts'
import type { ClientOAuthOptions } from './options.ts'
import type { AuthSession } from './session.ts'

type Preset = Partial<ClientOAuthOptions>

/**
 * Microsoft Entra ID, v2 endpoints. Entra rejects `resource`, requires `scope` on refresh, supports PKCE without
 * announcing it, and has no dynamic registration: `clientId` is required.
 */
export function entra(options: {
  /** Tenant id (GUID) or verified domain. `common` is not supported, because its issuer differs by tenant. */
  readonly tenant: string
  readonly clientId: string
  readonly clientSecret?: string
  /** Scopes as exposed by the API, such as `api://<application id>/mcp.tools`. */
  readonly scopes: readonly string[]
}): Preset {
  const { tenant, clientId, clientSecret, scopes } = options
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

/** Google. Refresh tokens require `access_type=offline`, not a scope. `clientId` is required. */
export function google(options: {
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
}): Preset {
  return {
    ...options,
    clientIssuer: 'https://accounts.google.com',
    issuerMatch: 'ignore-trailing-slash',
    offlineAccess: false,
    resourceIndicator: 'omit',
    additionalAuthorizationParameters: { access_type: 'offline', prompt: 'consent' },
  }
}

/** The methods that transports of the official client call. */
interface McpAuthProvider {
  token(): Promise<string | undefined>
  onUnauthorized(context: { readonly response: Response }): Promise<void>
}

/**
 * Adapts a session to the `authProvider` option of the official client, generation 2. Generation 1 rejects with
 * `invalid_options`.
 */
export const toAuthProvider = (session: AuthSession): McpAuthProvider => {
  const provider: McpAuthProvider = {
    token: () => session.token(),
    async onUnauthorized({ response }) {
      await session.onUnauthorized(response)
    },
  }
  return Object.assign(provider, { tokens: async () => Promise.reject(wrongClientError()) })
}

const wrongClientError = () =>
  new AuthError(
    'toAuthProvider is for @modelcontextprotocol/client; the authProvider of @modelcontextprotocol/sdk is another one',
    {
      code: 'invalid_options',
      fix: 'pass `fetch: authFetch` to the transport instead of authProvider',
    },
  )
