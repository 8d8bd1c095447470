// What each type of provider is: its name, where it is, what is asked for there, and where it says who somebody is.
import type { Claims } from '../../../core/auth.ts'
import type { FilledProvider } from '../options.ts'

export type ProviderType = FilledProvider['type']
export type ExchangeKind = NonNullable<FilledProvider['exchange']> | 'none'
export type AuthMethod = NonNullable<FilledProvider['authMethod']>
/** Options that only some types use. */
export type PlaceOption = 'tenant' | 'domain' | 'issuer' | 'endpoints'

export interface ClaimPlaces {
  readonly subject: readonly string[]
  readonly name: readonly string[]
  readonly email: readonly string[]
  readonly groups: readonly string[]
}

export interface Kind {
  readonly label: string
  /** OpenID Connect: there is a metadata document, and an ID token. Else plain OAuth, where userinfo says who it is. */
  readonly openid: boolean
  readonly uses: readonly PlaceOption[]
  /** Without these there is nothing to go to. Of several, one is enough. */
  readonly needs: readonly PlaceOption[]
  /** Its issuer, of options that were looked through. */
  readonly issuer?: (provider: FilledProvider) => string
  readonly scopes: readonly string[]
  /** Asked for too where the metadata lists them. */
  readonly listedScopes: readonly string[]
  /** Whether `offline_access` is asked for: `listed` only where the metadata has it. */
  readonly offline: boolean | 'listed'
  readonly parameters: Readonly<Record<string, string>>
  /** Values that `prompt` always has. */
  readonly consents: 'always' | 'offline' | 'never'
  /** False: what userinfo would say is in the ID token, or is not for the access token to ask. */
  readonly asksUserinfo: boolean
  readonly claims: ClaimPlaces
  readonly exchange: ExchangeKind
  readonly authMethod?: AuthMethod
  /** Whether the address at `email` is the provider's word. */
  readonly verifiedEmail: (claims: Claims, email: string) => boolean
  /** How scopes are separated in its answers. */
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
  // Some write it as text.
  verifiedEmail: ({ email_verified }: Claims) => isTrue(email_verified),
  separator: / +/,
} as const

/** A host name as it is written in the options; a test's provider is on this machine. */
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
    // User.Read is what Microsoft Graph wants to say in which groups somebody is who is in too many for a token.
    scopes: ['openid', 'profile', 'email', 'User.Read'],
    asksUserinfo: false,
    claims: { ...openid.claims, subject: ['oid', 'sub'] },
    // Not `email` by itself: in a tenant of their own anybody can write any address into it, and an application that
    // takes it for proof signs them in as somebody else ("nOAuth"). `xms_edov` says that the domain's owner was checked.
    verifiedEmail: ({ xms_edov }) => isTrue(xms_edov),
  },
  okta: {
    ...openid,
    label: 'Okta',
    uses: ['domain', 'issuer'],
    needs: ['domain', 'issuer'],
    issuer: provider => provider.issuer ?? domainOf(provider),
    // The organization's own server has it, custom ones only where somebody added it.
    listedScopes: ['groups'],
    exchange: 'token-exchange',
  },
  google: {
    ...openid,
    label: 'Google',
    uses: ['issuer'],
    needs: [],
    issuer: ({ issuer = 'https://accounts.google.com' }) => issuer,
    // Google knows no offline_access; these two are how it gives a refresh token, each time.
    offline: false,
    parameters: { access_type: 'offline' },
    consents: 'always',
    // Anybody can open a Google account with an address elsewhere, and keeps it when the address is gone. Of Gmail and
    // of a Workspace (`hd`) Google itself is the owner.
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
    // OpenID Connect Core, section 11: offline_access is for requests with prompt=consent.
    consents: 'offline',
  },
  development: {
    ...openid,
    label: 'no password (development)',
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
