// Vendor behaviour that oidc-provider does not have, for the test identity provider.
import type { IdpUser } from './identity-provider-core.ts'

export type Vendor = 'oidc' | 'entra' | 'okta' | 'google' | 'auth0' | 'keycloak'

type Fields = Record<string, string>
type Members = Record<string, unknown>

export interface VendorWays {
  readonly path: string
  readonly rotates: boolean
  /** Whether callbacks contain `iss`. */
  readonly sendsIssuer: boolean
  readonly claimsIn: 'both' | 'userinfo'
  claimsOf(user: IdpUser): Members
  givesRefreshToken(parameters: Readonly<Members>): boolean
  metadata(of: { body: Members; origin: string }): Members
  /** The response of the token endpoint. */
  answer(body: Members): Members
  refuses(endpoint: string, parameters: Fields): { error: string; error_description: string } | undefined
  /** The form to pass on; `asked` in it: the scope of another API that the response contains. */
  rewrite(endpoint: string, request: { query: Fields; form: Fields }): { query: Fields; form: Fields }
}

/** Behaviour of all vendors. */
export const CLAIM_NAMES = [
  'name',
  'preferred_username',
  'email',
  'email_verified',
  'groups',
  'roles',
  'realm_access',
  'department',
  'hd',
  'oid',
  'tid',
  'xms_edov',
  'hasgroups',
] as const

/** Maximum number of groups in an Entra token. */
export const MAX_GROUPS = 200

const hasScope = ({ scope }: Readonly<Members>, wanted: string) =>
  typeof scope === 'string' && scope.split(' ').includes(wanted)

function standardClaims({ sub, name, email, emailVerified = true, groups }: IdpUser): Members {
  return {
    sub,
    name,
    preferred_username: email ?? sub,
    ...(email !== undefined && { email, email_verified: emailVerified }),
    ...(groups && { groups: [...groups] }),
  }
}

/** Issues a refresh token for offline_access without a consent page. */
const rewriteOffline: VendorWays['rewrite'] = (endpoint, { query, form }) => {
  if (endpoint !== 'authorization') return { query, form }
  const prompts: string[] = (query['prompt'] ?? '').split(' ').filter(prompt => /^(?:login|none)$/.test(prompt))
  const isOffline = hasScope(query, 'offline_access') || query['access_type'] === 'offline'
  // `none` cannot be combined (OpenID Connect Core, section 3.1.2.1).
  if (isOffline && !prompts.includes('none')) prompts.push('consent')
  const { prompt: _, ...rest } = query
  return { query: prompts.length === 0 ? rest : { ...rest, prompt: prompts.join(' ') }, form }
}

const standard: VendorWays = {
  path: '',
  rotates: true,
  sendsIssuer: true,
  claimsIn: 'both',
  claimsOf: standardClaims,
  givesRefreshToken: parameters => hasScope(parameters, 'offline_access'),
  metadata: ({ body }) => body,
  answer: body => body,
  refuses: () => undefined,
  // OpenID Connect Core: offline_access requires prompt=consent.
  rewrite(endpoint, { query, form }) {
    if (endpoint !== 'authorization' || !query['prompt']?.includes('select_account')) return { query, form }
    return { query: { ...query, prompt: query['prompt'].replace('select_account', 'login') }, form }
  },
}

const withoutIssuer = ({ body }: { body: Members }): Members => ({
  ...body,
  authorization_response_iss_parameter_supported: undefined,
})

function entraClaims(user: IdpUser): Members {
  const { email_verified: _, groups, ...claims } = standardClaims(user)
  const many = (user.groups?.length ?? 0) > MAX_GROUPS
  const overage = {
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: 'https://graph.windows.net/tenant/users/user/getMemberObjects' } },
  }
  return { ...claims, oid: `oid-of-${user.sub}`, tid: 'a-tenant', ...(many ? overage : groups ? { groups } : {}) }
}

const isElsewhere = (scope: string) => /^[a-z]+:\/\//i.test(scope)

const entra: VendorWays = {
  ...standard,
  sendsIssuer: false,
  claimsOf: entraClaims,
  metadata: ({ body, origin }) => ({
    ...withoutIssuer({ body }),
    revocation_endpoint: undefined,
    scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
    msgraph_host: new URL(origin).host,
  }),
  // Scopes as a list, as one of its endpoints once returned.
  answer: body => ({ ...body, scope: String(body['scope'] ?? '').split(' '), ext_expires_in: body['expires_in'] }),
  refuses: (endpoint, { resource }) =>
    resource === undefined || (endpoint !== 'authorization' && endpoint !== 'token')
      ? undefined
      : {
          error: 'invalid_target',
          error_description:
            "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes.",
        },
  rewrite(endpoint, { query, form }) {
    const { scope } = form
    const isRefresh = endpoint === 'token' && form['grant_type'] === 'refresh_token'
    if (!isRefresh || scope === undefined || !isElsewhere(scope)) return rewriteOffline(endpoint, { query, form })
    // Its refresh tokens are valid for all APIs of the application.
    const { scope: asked, ...rest } = form
    return { query, form: { ...rest, asked: asked ?? '' } }
  },
}

const google: VendorWays = {
  ...standard,
  rotates: false,
  claimsOf(user) {
    const { groups: _, ...claims } = standardClaims(user)
    const [, domain = ''] = user.email?.split('@') ?? []
    return { ...claims, ...(domain !== '' && domain !== 'gmail.com' && { hd: domain }) }
  },
  givesRefreshToken: ({ access_type, prompt }) =>
    access_type === 'offline' && typeof prompt === 'string' && prompt.includes('consent'),
  metadata: ({ body }) => ({ ...body, scopes_supported: ['openid', 'email', 'profile'] }),
  refuses: (endpoint, { scope = '' }) =>
    endpoint === 'authorization' && scope.split(' ').includes('offline_access')
      ? { error: 'invalid_scope', error_description: 'Some requested scopes were invalid: offline_access' }
      : undefined,
  rewrite(endpoint, { query, form }) {
    if (endpoint !== 'authorization') return { query, form }
    const consents = query['prompt']?.includes('consent') ?? false
    const { prompt: _, ...rest } = query
    return { query: { ...rest, ...(consents && { prompt: 'consent' }) }, form }
  },
}

const WAYS: Readonly<Record<Vendor, VendorWays>> = {
  oidc: standard,
  entra,
  okta: { ...standard, sendsIssuer: false, claimsIn: 'userinfo', metadata: withoutIssuer, rewrite: rewriteOffline },
  google,
  auth0: {
    ...standard,
    path: '/',
    sendsIssuer: false,
    metadata: withoutIssuer,
    rewrite: rewriteOffline,
    claimsOf: user => ({ ...standardClaims(user), groups: undefined }),
  },
  keycloak: {
    ...standard,
    path: '/realms/acme',
    rewrite: rewriteOffline,
    claimsOf: user => ({
      ...standardClaims(user),
      ...(user.groups && { realm_access: { roles: [...user.groups] }, groups: user.groups.map(group => `/${group}`) }),
    }),
  },
}

export const findVendor = (name: Vendor): VendorWays => WAYS[name]
