// Identity provider types and their checked options.
import { isLoopback, redactUrl } from '../../../core/auth.ts'
import { type Claims, StartError } from '../../../core/plugin.ts'
import type { FilledProvider } from '../options.ts'

export type ProviderType = FilledProvider['type']
export type AuthMethod = NonNullable<FilledProvider['authMethod']>
type PlaceOption = 'tenant' | 'domain' | 'issuer' | 'endpoints'

export interface Kind {
  readonly label: string
  /** True: OpenID Connect with metadata and ID token. False: plain OAuth with userinfo. */
  readonly openid: boolean
  readonly uses: readonly PlaceOption[]
  readonly needs: readonly PlaceOption[]
  readonly issuer?: (provider: FilledProvider) => string
  readonly scopes: readonly string[]
  readonly listedScopes: readonly string[]
  readonly offline: boolean | 'listed'
  readonly parameters: Readonly<Record<string, string>>
  readonly consents: 'always' | 'offline' | 'never'
  /** False: the ID token is sufficient, or the access token cannot read userinfo. */
  readonly asksUserinfo: boolean
  readonly claims: Readonly<Record<'subject' | 'name' | 'email' | 'groups', readonly string[]>>
  readonly exchange: NonNullable<FilledProvider['exchange']> | 'none'
  readonly authMethod?: AuthMethod
  readonly verifiedEmail: (claims: Claims, email: string) => boolean
  readonly separator: RegExp
}

const isTrue = (value: unknown) => value === true || value === 'true' || value === 1 || value === '1'

const openid = {
  label: 'your identity provider',
  openid: true,
  scopes: ['openid', 'profile', 'email'],
  listedScopes: [],
  offline: true,
  parameters: {},
  consents: 'never',
  asksUserinfo: true,
  claims: {
    subject: ['sub'],
    name: ['name', 'preferred_username', 'login'],
    email: ['email'],
    groups: ['groups'],
  },
  exchange: 'refresh',
  // Accepts a string, which some providers send.
  verifiedEmail: ({ email_verified }: Claims) => isTrue(email_verified),
  separator: / +/,
} as const

const originOf = (domain: string) =>
  `${/^(?:localhost|127\.0\.0\.1)(?::\d+)?$/.test(domain) ? 'http' : 'https'}://${domain}`

const domainOf = ({ domain = '' }: FilledProvider) => originOf(domain.toLowerCase())

const KINDS: Readonly<Record<ProviderType, Kind>> = {
  entra: {
    ...openid,
    label: 'Microsoft',
    uses: ['tenant', 'issuer'],
    needs: ['tenant', 'issuer'],
    issuer: ({ tenant = '', issuer }) => issuer ?? `https://login.microsoftonline.com/${tenant.toLowerCase()}/v2.0`,
    // Microsoft Graph requires User.Read for the groups of users with too many for a token.
    scopes: ['openid', 'profile', 'email', 'User.Read'],
    asksUserinfo: false,
    claims: { ...openid.claims, subject: ['oid', 'sub'] },
    // `email` is unverified: a tenant can contain any address ("nOAuth"). `xms_edov` confirms the domain owner.
    verifiedEmail: ({ xms_edov }) => isTrue(xms_edov),
  },
  okta: {
    ...openid,
    label: 'Okta',
    uses: ['domain', 'issuer'],
    needs: ['domain', 'issuer'],
    issuer: provider => provider.issuer ?? domainOf(provider),
    listedScopes: ['groups'],
    exchange: 'token-exchange',
  },
  google: {
    ...openid,
    label: 'Google',
    uses: ['issuer'],
    needs: [],
    issuer: ({ issuer = 'https://accounts.google.com' }) => issuer,
    // Google does not support offline_access; these two parameters request a refresh token.
    offline: false,
    parameters: { access_type: 'offline' },
    consents: 'always',
    // A Google account can keep an outdated foreign address. Google owns Gmail and Workspace (`hd`) addresses.
    verifiedEmail: ({ email_verified, hd }, email) =>
      isTrue(email_verified) && (/@(?:gmail|googlemail)\.com$/.test(email) || (typeof hd === 'string' && hd !== '')),
  },
  github: {
    ...openid,
    label: 'GitHub',
    openid: false,
    uses: ['endpoints'],
    needs: [],
    scopes: ['read:user', 'user:email', 'read:org'],
    offline: false,
    claims: { ...openid.claims, subject: ['id'], name: ['name', 'login'] },
    exchange: 'none',
    authMethod: 'client_secret_post',
    separator: /[ ,]+/,
  },
  auth0: {
    ...openid,
    label: 'Auth0',
    uses: ['domain', 'issuer'],
    needs: ['domain', 'issuer'],
    issuer: provider => provider.issuer ?? `${domainOf(provider)}/`,
  },
  keycloak: {
    ...openid,
    label: 'Keycloak',
    uses: ['issuer'],
    needs: ['issuer'],
    issuer: ({ issuer = '' }) => issuer,
    claims: { ...openid.claims, groups: ['groups', 'realm_access.roles'] },
    exchange: 'token-exchange',
  },
  oidc: {
    ...openid,
    uses: ['issuer'],
    needs: ['issuer'],
    issuer: ({ issuer = '' }) => issuer,
    offline: 'listed',
    // OpenID Connect Core, section 11: offline_access requires prompt=consent.
    consents: 'offline',
  },
  development: {
    ...openid,
    label: 'the development login',
    openid: false,
    uses: [],
    needs: [],
    scopes: [],
    offline: false,
    exchange: 'none',
    authMethod: 'none',
  },
  oauth: {
    ...openid,
    openid: false,
    uses: ['endpoints'],
    needs: ['endpoints'],
    scopes: [],
    offline: false,
    claims: { ...openid.claims, subject: ['id'] },
  },
}

export const kindOf = (type: ProviderType): Kind => KINDS[type]

export type Settings = ReturnType<typeof settle>

const GITHUB: NonNullable<FilledProvider['endpoints']> = {
  authorization: 'https://github.com/login/oauth/authorize',
  token: 'https://github.com/login/oauth/access_token',
  userinfo: 'https://api.github.com/user',
}

const NEEDED: Readonly<Record<PlaceOption, string>> = {
  tenant: 'tenant, the id of your directory (Microsoft Entra admin center, Overview)',
  domain: 'domain, the host name of your organization there, such as acme.okta.com',
  issuer: 'issuer, the URL by which the provider names itself',
  endpoints: 'endpoints: where authorization, token and userinfo are',
}

const OURS =
  /^(?:response_type|response_mode|client_id|client_secret|redirect_uri|scope|state|nonce|code_challenge.*|request|request_uri)$/

const TENANT = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.?)+(?::\d+)?$/i

const isLocal = (url: string): boolean =>
  URL.canParse(url) && new URL(url).protocol === 'http:' && isLoopback(new URL(url).hostname)

export const isSecure = (url: string, mayBeLocal = true): boolean =>
  URL.canParse(url) && (new URL(url).protocol === 'https:' || (mayBeLocal && isLocal(url)))

function checkPlaces(provider: FilledProvider, kind: Kind, refuse: Refuse): void {
  const { type, tenant, domain, issuer, endpoints } = provider
  for (const place of Object.keys(NEEDED) as PlaceOption[]) {
    if (provider[place] !== undefined && !kind.uses.includes(place)) {
      const used = kind.uses.length === 0 ? 'needs none of its kind' : `uses ${kind.uses.join(' or ')}`
      throw refuse(place, `${type} does not use it; it ${used}`)
    }
  }
  if (kind.needs.length > 0 && kind.needs.every(place => provider[place] === undefined)) {
    throw refuse(undefined, `${type} needs ${NEEDED[kind.needs[0] ?? 'issuer']}`)
  }
  if (tenant !== undefined && !TENANT.test(tenant)) {
    const what = `"${redactUrl(tenant)}" is not a directory (tenant) id, such as 00000000-0000-0000-0000-000000000000`
    throw refuse('tenant', `${what}; domains, common and organizations are not supported`)
  }
  if (domain !== undefined && !HOST.test(domain)) {
    throw refuse('domain', `"${redactUrl(domain)}" is not a host name; write it without https:// and path`)
  }
  if (tenant !== undefined && issuer !== undefined && !issuer.toLowerCase().includes(tenant.toLowerCase())) {
    throw refuse('issuer', 'it is not of this tenant')
  }
  if (type === 'google' && issuer !== undefined && !isLocal(issuer)) {
    throw refuse('issuer', 'google has one issuer; another is for tests, on this machine')
  }
  const urls = { issuer, ...endpoints }
  for (const [name, url] of Object.entries(urls)) {
    if (url === undefined || isSecure(url)) continue
    throw refuse(name === 'issuer' ? name : 'endpoints', `"${redactUrl(url)}" must begin with https://`)
  }
}

type Refuse = (key: string | undefined, text: string) => StartError

function checkRest(provider: FilledProvider, refuse: Refuse): void {
  const { type, clientId, clientSecret, authMethod, parameters = {}, exchange } = provider
  if (type === 'development') return
  const own = (['users', 'resources', 'keepIn'] as const).find(name => provider[name] !== undefined)
  if (own !== undefined) throw refuse(own, `only the provider type "development" has this option, not "${type}"`)
  if (clientId === undefined) throw refuse('clientId', 'missing: the id of the application that you registered there')
  if (authMethod === 'none' && (type === 'google' || type === 'github')) {
    throw refuse('authMethod', `${type} issues tokens only to clients with clientSecret`)
  }
  if (authMethod === 'none' && clientSecret !== undefined) {
    throw refuse('authMethod', 'none is for public clients: remove authMethod or clientSecret')
  }
  if (authMethod !== 'none' && clientSecret === undefined) {
    const without = type === 'google' || type === 'github' ? '' : ", or authMethod: 'none' for a public client"
    throw refuse(undefined, `${type} needs clientSecret${without}`)
  }
  for (const name of Object.keys(parameters)) {
    if (OURS.test(name)) {
      const instead = name === 'scope' ? '; use scopes' : ''
      throw refuse('parameters', `${name} is set by the bridge itself${instead}`)
    }
  }
  if (exchange !== undefined && type === 'github') {
    throw refuse('exchange', 'github issues no tokens with other scopes; request all of them in scopes')
  }
}

const pathsOf = (given: string | readonly string[] | undefined, standard: readonly string[]) =>
  given === undefined ? standard : [given].flat()

export function settle(provider: FilledProvider, at: readonly (string | number)[]) {
  const { type, clientSecret, authMethod, claims = {} } = provider
  const kind = kindOf(type)
  const refuse: Refuse = (key, text) => new StartError('MH2113', text, { at: key === undefined ? at : [...at, key] })
  checkPlaces(provider, kind, refuse)
  checkRest(provider, refuse)
  const issuer = kind.issuer?.(provider)
  const given = provider.endpoints
  const endpoints = kind.openid ? undefined : (given ?? GITHUB)
  const scopes = provider.scopes && [...new Set([...(kind.openid ? ['openid'] : []), ...provider.scopes])]
  return {
    type,
    kind,
    label: provider.label ?? kind.label,
    issuer,
    endpoints,
    clientId: provider.clientId ?? '',
    clientSecret,
    authMethod: authMethod ?? (clientSecret === undefined ? 'none' : kind.authMethod),
    scopes,
    parameters: { ...kind.parameters, ...provider.parameters },
    claims: {
      subject: pathsOf(claims.subject, kind.claims.subject),
      name: pathsOf(claims.name, kind.claims.name),
      email: pathsOf(claims.email, kind.claims.email),
      groups: pathsOf(claims.groups, kind.claims.groups),
    },
    trustEmail: provider.trustEmail ?? false,
    exchange: provider.exchange ?? kind.exchange,
    local: isLocal(issuer ?? endpoints?.token ?? ''),
  }
}
