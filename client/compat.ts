// Options for authorization servers that are known to do things their own way; spread them into `createAuthFetch`.
import type { ClientOAuthOptions } from './options.ts'

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
