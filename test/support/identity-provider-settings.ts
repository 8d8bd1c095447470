// Settings of the test identity provider, and what a test can change and read while it runs.
import type { IdpUser } from './identity-provider-core.ts'
import type { Vendor } from './identity-provider-vendors.ts'
import type { TestKey } from './test-issuer.ts'

export interface IdpSettings {
  /** The vendor to imitate. Default oidc. */
  readonly vendor?: Vendor
  /** Default: ann, with a verified e-mail address and two groups. */
  readonly users?: readonly IdpUser[]
  /** `none` signs in by login_hint, `nextUser`, or the first; `form` shows a button for each user. Default none. */
  readonly page?: 'none' | 'form'
  /** Redirect URIs; `redirects` of the provider can be extended later. */
  readonly redirects?: readonly string[]
  readonly authMethod?: 'client_secret_basic' | 'client_secret_post' | 'none'
  /** Additional scopes. Unknown scopes are not granted. */
  readonly scopes?: readonly string[]
  /** Claim names that no vendor uses. */
  readonly extraClaims?: readonly string[]
  /** Where e-mail and groups are sent. Default both; okta: userinfo. */
  readonly claimsIn?: 'both' | 'id_token' | 'userinfo'
  /** Seconds. Default 300. */
  readonly accessTokenLife?: number
  /** Path of the issuer, such as /realms/acme. Default: none; auth0: a slash. */
  readonly path?: string
}

/** One received request. */
export interface IdpRequest {
  readonly endpoint: IdpEndpoint
  readonly method: string
  readonly query: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
  readonly authorization: string | undefined
}

export type IdpEndpoint =
  | 'discovery'
  | 'jwks'
  | 'authorization'
  | 'interaction'
  | 'token'
  | 'userinfo'
  | 'revocation'
  | 'graph'

export interface ErrorAnswer {
  readonly status?: number
  readonly error: string
  readonly error_description?: string
}

export interface IdentityProvider {
  readonly vendor: Vendor
  readonly origin: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Add the redirect URI of the bridge here. */
  readonly redirects: Set<string>
  /** By `sub`. Set to change a user, delete to remove one: the next refresh is refused. */
  readonly users: Map<string, IdpUser>
  /** All received requests, in order. */
  readonly requests: IdpRequest[]
  asked(endpoint: IdpEndpoint): number
  /** `sub` of the user to sign in if no login_hint names one. */
  nextUser: string | undefined
  /** The user denies. */
  denies: boolean
  /** `down` answers 503 to everything, `gone` closes connections, `hangs` answers nothing. */
  mood: 'well' | 'down' | 'gone' | 'hangs'
  /** Milliseconds before each answer. */
  delay: number
  /** Whether refreshes return a new refresh token; reuse ends the login. Default: true, except for google. */
  rotates: boolean
  /** Whether refreshes return an ID token. Default true. */
  idTokenOnRefresh: boolean
  /** The endpoints that `mood` and `delay` apply to. Default: all. */
  troubled: readonly IdpEndpoint[] | undefined
  /** Fixed responses of an endpoint until undefined; for the authorization endpoint, the parameters of the redirect. */
  readonly failing: Partial<Record<IdpEndpoint, ErrorAnswer | undefined>>
  /** Overrides of the metadata document; undefined removes a member. */
  metadata: Record<string, unknown>
  /** Changes the response of the token endpoint, as the last step. */
  tamper: ((answer: Record<string, unknown>) => Record<string, unknown>) | undefined
  /** Changes the URL of the redirect to the client. */
  tamperCallback: ((callback: URL) => void) | undefined
  /** Signs with a new key from now on, and publishes it alone or with the old keys. */
  rotateKeys(options?: { keepOld?: boolean }): void
  /** An ID token with these claims, signed with its key or another one. */
  sign(claims: Record<string, unknown>, key?: TestKey): string
  /** The claims of a JWT that it issued. */
  read(token: unknown): Record<string, unknown>
  /** Ends all logins: refresh tokens and access tokens become invalid. */
  endLogins(): void
  /** Opens an authorization URL in a browser without cookies. Returns the URL of the redirect to the client. */
  signIn(url: string): Promise<URL>
  /** The auth-bridge `provider` options for this provider. */
  options(changes?: Record<string, unknown>): Record<string, unknown>
}
