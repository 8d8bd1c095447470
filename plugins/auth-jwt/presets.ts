// What well-known providers do differently, as options of auth-jwt. docs/plugins/auth-jwt.md says for each what to set
// up there. A preset is plain options: spread it to change one.

import { shownUrl } from '../../core/auth.ts'
import { StartError } from '../../core/index.ts'
import type { AuthJwtOptions } from './options.ts'

type Audience = string | string[]

const bareHost = (given: string, preset: string): string => {
  if (/^[a-z0-9.-]+(?::\d+)?$/i.test(given)) return given
  throw new StartError(`${preset}(): "${shownUrl(given)}" is no host name; write it without https:// and path`, {
    exitCode: 2,
  })
}

/**
 * Microsoft Entra ID. Tokens of both versions: v2 is for the client id of the API's app registration, v1 for its
 * `api://` URI. `tenant` is the directory's id, not a domain: tokens name the id.
 */
export function entra({ tenant, clientId, audience }: { tenant: string; clientId: string; audience?: Audience }) {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(tenant)) {
    throw new StartError(
      `entra(): "${tenant}" is no directory (tenant) id, such as 00000000-0000-0000-0000-000000000000`,
      {
        exitCode: 2,
      },
    )
  }
  const id = tenant.toLowerCase()
  const jwksUri = `https://login.microsoftonline.com/${id}/discovery/v2.0/keys`
  return {
    issuers: [
      { issuer: `https://login.microsoftonline.com/${id}/v2.0`, jwksUri },
      { issuer: `https://sts.windows.net/${id}/`, jwksUri },
    ],
    audience: audience ?? [clientId, `api://${clientId}`],
    claims: { scopes: 'scp', roles: 'roles', subject: ['oid', 'sub'], clientId: ['azp', 'appid'] },
  } satisfies AuthJwtOptions
}

/** Okta, with a custom authorization server (`default` unless named): the org server's tokens are for Okta alone. */
export function okta({
  domain,
  authorizationServer = 'default',
  audience = 'api://default',
}: {
  domain: string
  authorizationServer?: string
  audience?: Audience
}) {
  return {
    authority: `https://${bareHost(domain, 'okta')}/oauth2/${authorizationServer}`,
    audience,
    claims: { scopes: 'scp', roles: 'groups', subject: ['uid', 'sub'], clientId: 'cid' },
  } satisfies AuthJwtOptions
}

/** Keycloak: roles of the realm, and of the client `clientId` where it is given; never an ID token. */
export function keycloak({
  url,
  realm,
  clientId,
  audience,
}: {
  /** The server's base URL, with `/auth` where it has that. */
  url: string
  realm: string
  clientId?: string
  /** Keycloak puts one in only where an audience mapper says so. Default: the route's resource. */
  audience?: Audience
}) {
  return {
    authority: `${url.replace(/\/$/, '')}/realms/${encodeURIComponent(realm)}`,
    ...(audience !== undefined && { audience }),
    claims: {
      scopes: 'scope',
      roles: ['realm_access.roles', ...(clientId === undefined ? [] : [`resource_access.${clientId}.roles`])],
      clientId: 'azp',
      required: { typ: 'Bearer' },
    },
  } satisfies AuthJwtOptions
}

/** Auth0: its issuer ends with a slash; an API's permissions (RBAC) count as scopes; roles are a claim of your own. */
export function auth0({ domain, audience, rolesClaim }: { domain: string; audience: Audience; rolesClaim?: string }) {
  return {
    authority: `https://${bareHost(domain, 'auth0')}/`,
    audience,
    claims: {
      scopes: ['scope', 'permissions'],
      ...(rolesClaim !== undefined && { roles: rolesClaim }),
      clientId: ['azp', 'client_id'],
    },
  } satisfies AuthJwtOptions
}

/** Amazon Cognito: access tokens name the app client in the place of an audience, and groups are the roles. */
export function cognito({
  region,
  userPoolId,
  clientId,
}: {
  region: string
  userPoolId: string
  /** App clients whose tokens are accepted, and resources that tokens may be bound to. */
  clientId: Audience
}) {
  return {
    authority: `https://cognito-idp.${bareHost(region, 'cognito')}.amazonaws.com/${userPoolId}`,
    audience: clientId,
    claims: {
      scopes: 'scope',
      roles: 'cognito:groups',
      clientId: 'client_id',
      audience: ['aud', 'client_id'],
      required: { token_use: 'access' },
    },
  } satisfies AuthJwtOptions
}
