// What a test says of its identity provider, and what it can change and read of it while it runs.
import type { IdpUser } from './identity-provider-core.ts'
import type { Vendor } from './identity-provider-vendors.ts'
import type { TestKey } from './test-issuer.ts'

export interface IdpSettings {
  /** Whose ways it has. Default oidc. */
  readonly vendor?: Vendor
  /** Default: ann, with a verified address and two groups. */
  readonly users?: readonly IdpUser[]
  /** `none` signs in by login_hint, `nextUser`, or the first; `form` shows a button for each user. Default none. */
  readonly page?: 'none' | 'form'
  /** Where it sends people; `redirects` of the provider can be added to later. */
  readonly redirects?: readonly string[]
  readonly authMethod?: 'client_secret_basic' | 'client_secret_post' | 'none'
  /** Further scopes that it knows; what it does not know it leaves out of what it grants. */
  readonly scopes?: readonly string[]
  /** Names of claims of users that no vendor has. */
  readonly extraClaims?: readonly string[]
  /** Where e-mail and groups are. Default both; okta: userinfo. */
  readonly claimsIn?: 'both' | 'id_token' | 'userinfo'
  /** Seconds. Default 300. */
  readonly accessTokenLife?: number
  /** Path of the issuer, such as /realms/acme. Default: none; auth0: a slash. */
  readonly path?: string
}

/** One request that it was sent. */
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
  /** Add the redirect URI of the bridge once that is known. */
  readonly redirects: Set<string>
  /** By `sub`. Set to change somebody, delete to remove them: their next refresh is refused. */
  readonly users: Map<string, IdpUser>
  /** Everything that it was asked, in order. */
  readonly requests: IdpRequest[]
  asked(endpoint: IdpEndpoint): number
  /** `sub` of who signs in where no login_hint names somebody. */
  nextUser: string | undefined
  /** The person says no. */
  denies: boolean
  /** `down` answers 503 to everything, `gone` closes connections, `hangs` answers nothing. */
  mood: 'well' | 'down' | 'gone' | 'hangs'
  /** Milliseconds before each answer. */
  delay: number
  /** Whether refreshes give a new refresh token; a used one ends the whole login. Default: but for google. */
  rotates: boolean
  /** Whether refreshes give an ID token. Default true. */
  idTokenOnRefresh: boolean
  /** Only these endpoints do as `mood` and `delay` say. Default: all. */
  troubled: readonly IdpEndpoint[] | undefined
  /** Answers of an endpoint until undefined: an authorization is sent back with it. */
  readonly failing: Partial<Record<IdpEndpoint, ErrorAnswer | undefined>>
  /** Put over the metadata document; undefined leaves a member out. */
  metadata: Record<string, unknown>
  /** Changes what the token endpoint answers, after everything else. */
  tamper: ((answer: Record<string, unknown>) => Record<string, unknown>) | undefined
  /** Changes where the browser is sent back to. */
  tamperCallback: ((callback: URL) => void) | undefined
  /** Signs with a new key from now on and publishes it alone, or with the old ones. */
  rotateKeys(options?: { keepOld?: boolean }): void
  /** An ID token of these claims: by its key, or by another's. */
  sign(claims: Record<string, unknown>, key?: TestKey): string
  /** The claims of a JWT that it gave. */
  read(token: unknown): Record<string, unknown>
  /** Ends all logins: refresh tokens and access tokens are not known any more. */
  endLogins(): void
  /** What a browser without cookies does with an authorization URL: the URL that it is sent back to. */
  signIn(url: string): Promise<URL>
  /** Provider options of auth-bridge, as the config has them. */
  options(changes?: Record<string, unknown>): Record<string, unknown>
}
