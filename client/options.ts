// The options of `createAuthFetch`: what a caller may say, and what is made of it. Everything that can be wrong about
// them is told at construction.

import type { AuthEvent } from './events.ts'
import type { FlowStore } from './flow-store.ts'
import type { NetworkPolicy } from './net-policy.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import type { CryptoKey, JsonWebKey, Registration, TokenCache } from './token-cache.ts'
import type { OpenTelemetryApi } from './tracing.ts'

/** What an authorization server sends back through the browser (RFC 6749 §4.1.2, RFC 9207). */
export interface AuthorizationResponse {
  readonly code?: string | undefined
  readonly state?: string | undefined
  readonly iss?: string | undefined
  readonly error?: string | undefined
  readonly errorDescription?: string | undefined
}

/**
 * Shows a person the authorization URL and gives back the response: the whole callback URL (or its parameters), whose
 * state and issuer are then checked, or a bare code, where nothing can be. Null or empty: nobody answered.
 */
export type AuthorizationRedirectDelegate = (
  authorizationUrl: URL,
  redirectUri: string,
  context: { readonly signal: AbortSignal },
) => Promise<string | URL | URLSearchParams | AuthorizationResponse | null | undefined>

export type AuthorizationCallbackHandler = (context: {
  readonly authorizationUri: URL
  readonly redirectUri: string
  readonly signal: AbortSignal
}) => Promise<AuthorizationResponse | null | undefined>

/** What dynamic registration gave, with the issuer it holds for. */
export interface RegistrationResponse {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string | undefined
  readonly tokenEndpointAuthMethod?: string | undefined
  /** Seconds since the epoch. */
  readonly clientIdIssuedAt?: number | undefined
  /** Seconds since the epoch; 0: never. */
  readonly clientSecretExpiresAt?: number | undefined
}

/** Dynamic client registration (RFC 7591), used where there is no client id and no metadata document that fits. */
export interface DynamicClientRegistration {
  /** What people read who are asked to agree. Default `MCP client (mcp-host)`; empty: none is sent. */
  readonly clientName?: string
  readonly clientUri?: string
  /** Sent as a bearer token with the registration request only, to `clientIssuer`, which is required. */
  readonly initialAccessToken?: string
  /** Default: `native` for a loopback or private-use redirect, else `web`. */
  readonly applicationType?: 'native' | 'web'
  /** Awaited before anybody is asked to log in; a throw ends the flow. */
  readonly responseDelegate?: (
    response: RegistrationResponse,
    context: { readonly signal: AbortSignal },
  ) => Promise<void> | void
  /** False: never register. Default true. */
  readonly enabled?: boolean
  /** More client metadata; it wins over ours. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** A registration of an earlier run. */
  readonly registration?: Registration
}

/** What is known of a request when the client adds its credentials to `body` or `headers`. */
export interface ClientAuthRequest {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  readonly body: URLSearchParams
  readonly headers: Headers
}

/** Adds who asks to a token request. Called for every request, retries too. */
export type ClientAuth = (request: ClientAuthRequest) => Promise<void> | void

/** Signs an assertion, such as a private_key_jwt or a DPoP proof. */
export interface PrivateKeyOptions {
  /** PKCS#8 as PEM, a private JWK, or a WebCrypto key. */
  readonly privateKey: string | JsonWebKey | CryptoKey
  /** JWS algorithm; needed with a PEM that leaves it open. Default from the key: ES256, RS256, EdDSA. */
  readonly alg?: string
  readonly kid?: string
}

export interface UserCodeInfo {
  readonly userCode: string
  readonly verificationUri: string
  /** With the code already in it. */
  readonly verificationUriComplete?: string | undefined
  /** Seconds. */
  readonly expiresIn: number
}

/** How tokens are obtained. Default: the authorization code flow. */
export type Grant =
  | { readonly type: 'authorization_code' }
  | { readonly type: 'client_credentials' }
  /** Workload identity federation (RFC 7523 §2.1): a fresh assertion for every token. */
  | { readonly type: 'jwt_bearer'; readonly assertion: (context: AssertionContext) => Promise<string> }
  /** Enterprise-managed authorization: an ID token is exchanged at the company's identity provider for an ID-JAG. */
  | { readonly type: 'enterprise'; readonly idToken: () => Promise<string>; readonly idp: IdentityProvider }
  /** RFC 8628: the person logs in on another device. */
  | { readonly type: 'device'; readonly onUserCode: (info: UserCodeInfo) => Promise<void> | void }

export interface AssertionContext {
  /** The authorization server's issuer: the assertion's audience. */
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly resource: string | undefined
  readonly signal: AbortSignal
}

/** The identity provider of an enterprise, where ID tokens become ID-JAGs (RFC 8693). */
export interface IdentityProvider {
  /** Its issuer, whose metadata names the token endpoint; or give `tokenEndpoint`. */
  readonly issuer?: string
  readonly tokenEndpoint?: string
  readonly clientId: string
  readonly clientSecret?: string
}

/** Options of `createAuthFetch`. Only `serverUrl` is always needed; `redirectUri` for everything with a browser. */
export interface ClientOAuthOptions {
  /** The MCP server: tokens go to its origin and nowhere else. */
  readonly serverUrl: string | URL
  /** Sent as given. https, http on loopback, or a private-use scheme. */
  readonly redirectUri?: string | URL
  /** Given: no metadata document and no registration. */
  readonly clientId?: string
  /** Requires `clientIssuer`. */
  readonly clientSecret?: string
  /**
   * The issuer that `clientId`, or `initialAccessToken` of `dynamicClientRegistration`, is from; another one is refused. Required
   * with a secret: the MCP server chooses where requests for tokens go.
   */
  readonly clientIssuer?: string
  /** A client id that is a URL (Client ID Metadata Documents), where the server supports it. */
  readonly clientMetadataDocumentUri?: string | URL
  /** What to ask for, instead of what the server suggests. A step-up still adds what a call needs. */
  readonly scopes?: readonly string[]
  /** `fallback`: `scopes` only where the server suggests none. Default `override`. */
  readonly scopeMode?: 'override' | 'fallback'
  /** The last word about what is asked for; null or empty: no `scope`. */
  readonly scopeSelector?: (
    scopes: readonly string[] | null,
  ) => readonly string[] | null | Promise<readonly string[] | null>
  /** Picks one of the listed authorization servers; null is an error. Default: the first. */
  readonly authServerSelector?: (servers: readonly string[]) => string | null | Promise<string | null>
  readonly authorizationRedirectDelegate?: AuthorizationRedirectDelegate
  /** The same with named parts; not together with the delegate. */
  readonly authorizationCallbackHandler?: AuthorizationCallbackHandler
  /** True: a bare code from a delegate is an error. Default false: one event. */
  readonly strictResponse?: boolean
  readonly dynamicClientRegistration?: DynamicClientRegistration
  /** More query parameters of the authorization request, such as `audience`. None of ours can be replaced. */
  readonly additionalAuthorizationParameters?: Readonly<Record<string, string>>
  /** Default: in memory. */
  readonly tokenCache?: TokenCache
  /** Pending logins of `interactive: 'defer'`. Default: in memory. */
  readonly flowStore?: FlowStore
  /** Used for everything. Default: the global one. */
  readonly fetch?: typeof fetch
  /** Tells several identities of one person at one server apart. Default none. */
  readonly profile?: string
  readonly grant?: Grant
  /** With it, the token endpoint is told who asks by private_key_jwt. */
  readonly privateKey?: PrivateKeyOptions['privateKey']
  readonly alg?: string
  readonly kid?: string
  /** How the client authenticates at the token endpoint. Default: as registered, else what the server lists. */
  readonly tokenEndpointAuthMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** Replaces client authentication altogether. */
  readonly clientAuthentication?: ClientAuth
  /** Sender-constrained tokens (RFC 9449). `auto`: where the server asks for them. Default `auto`. */
  readonly dpop?: 'auto' | boolean
  /** Whether `offline_access` is asked for. `auto`: where the server lists it. Default `auto`. */
  readonly offlineAccess?: 'auto' | boolean
  /** The `resource` parameter (RFC 8707): as the metadata says, left out, or this. Default `auto`. */
  readonly resourceIndicator?: 'auto' | 'omit' | (string & {})
  /** `path-prefix`: also a parent path of the server's URL. Default `exact-or-origin`. */
  readonly resourceMatch?: 'exact-or-origin' | 'path-prefix'
  /** Tolerates one final slash of an issuer without a path. Default `exact`. */
  readonly issuerMatch?: 'exact' | 'ignore-trailing-slash'
  /** Other issuers that an authorization server is known to publish, by its listed URL. */
  readonly trustedIssuers?: Readonly<Record<string, readonly string[]>>
  /** Issuers that do PKCE with S256 and do not say so. */
  readonly assumePkceS256?: readonly string[]
  /**
   * The token endpoint of every grant and refresh, in place of the one that the metadata names, or where none is named.
   * https, or http on loopback; `networkPolicy` does not apply to its host. Tokens of another endpoint are not renewed at
   * this one. Default: as the metadata says.
   */
  readonly tokenEndpoint?: string
  /** Whether a refresh names the granted scope. Default `omit`. */
  readonly refreshScope?: 'omit' | 'granted'
  /** Servers without resource metadata (2025-03-26). Default true. */
  readonly legacyFallback?: boolean
  /** How long before its end a token is renewed, seconds. Default: a tenth of its life, at most 60. */
  readonly refreshLeewaySeconds?: number
  /** Step-ups of one request. Default 2. */
  readonly maxStepUps?: number
  /**
   * What may ask a person to log in: a POST (default), any request, none, or none and the flow is kept for
   * `session.completeAuthorization` (web applications).
   */
  readonly interactive?: 'post' | 'any' | 'never' | 'defer'
  /** How long a login may take, milliseconds. Default 5 minutes. */
  readonly loginTimeoutMs?: number
  readonly networkPolicy?: NetworkPolicy
  readonly onEvent?: (event: AuthEvent) => void
  /** `import * as api from '@opentelemetry/api'`: requests and the steps of a login become spans. Default: none. */
  readonly openTelemetry?: OpenTelemetryApi
}
