// Options of auth-jwt for well-known providers. Spread a preset to change it.

import { redactUrl } from '../../core/auth.ts'
import { StartError } from '../../core/plugin.ts'
import type { AuthJwtOptions } from './options.ts'

type Audience = string | string[]

const requireHostName = (value: string, preset: string): string => {
  if (/^[a-z0-9.-]+(?::\d+)?$/i.test(value)) return value
  throw new StartError(
    'MH2008',
    `${preset}(): "${redactUrl(value)}" is not a host name; write it without https:// and path`,
    { exitCode: 2 },
  )
}

/** Microsoft Entra ID, tokens of versions 1 and 2. `tenant` is the directory id, not a domain. */
export function entra({ tenant, clientId, audience }: { tenant: string; clientId: string; audience?: Audience }) {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(tenant)) {
    throw new StartError(
      'MH2008',
      `entra(): "${tenant}" is not a directory (tenant) id, such as 00000000-0000-0000-0000-000000000000`,
      { exitCode: 2 },
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

/** Okta with a custom authorization server. Tokens of the org server are for Okta only. */
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
    authority: `https://${requireHostName(domain, 'okta')}/oauth2/${authorizationServer}`,
    audience,
    claims: { scopes: 'scp', roles: 'groups', subject: ['uid', 'sub'], clientId: 'cid' },
  } satisfies AuthJwtOptions
}

/** Keycloak: roles of the realm, and of the client `clientId`. */
export function keycloak({
  url,
  realm,
  clientId,
  audience,
}: {
  /** Base URL, with `/auth` if the server has it. */
  url: string
  realm: string
  clientId?: string
  /** Requires an audience mapper in Keycloak. Default: the resource of the route. */
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

/** Auth0: permissions (RBAC) count as scopes. */
export function auth0({ domain, audience, rolesClaim }: { domain: string; audience: Audience; rolesClaim?: string }) {
  return {
    authority: `https://${requireHostName(domain, 'auth0')}/`,
    audience,
    claims: {
      scopes: ['scope', 'permissions'],
      ...(rolesClaim !== undefined && { roles: rolesClaim }),
      clientId: ['azp', 'client_id'],
    },
  } satisfies AuthJwtOptions
}

/** Amazon Cognito: access tokens name the app client instead of an audience; groups are roles. */
export function cognito({
  region,
  userPoolId,
  clientId,
}: {
  region: string
  userPoolId: string
  /** Accepted app clients and resources. */
  clientId: Audience
}) {
  return {
    authority: `https://cognito-idp.${requireHostName(region, 'cognito')}.amazonaws.com/${userPoolId}`,
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
