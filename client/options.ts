// The options of `createAuthFetch`.

import type { AuthEvent } from './events.ts'
import type { NetworkPolicy } from './net-policy.ts'
import type {
  ClientIdentity,
  CryptoKey,
  FlowStore,
  JsonWebKey,
  Registration,
  ServerInfo,
  TokenCache,
} from './stores.ts'
import type { OpenTelemetryApi } from './tracing.ts'

/** Authorization response (RFC 6749 §4.1.2, RFC 9207). */
export interface AuthorizationResponse {
  readonly code?: string | undefined
  readonly state?: string | undefined
  readonly iss?: string | undefined
  readonly error?: string | undefined
  readonly errorDescription?: string | undefined
}

/**
 * Shows the authorization URL. Returns the callback URL, its parameters, or a bare code, whose state and issuer cannot
 * be checked. Null or empty: no response.
 */
export type AuthorizationRedirectDelegate = (
  authorizationUrl: URL,
  redirectUri: string,
  context: { readonly signal: AbortSignal },
) => Promise<string | URL | URLSearchParams | AuthorizationResponse | null | undefined>

type AuthorizationCallbackHandler = (context: {
  readonly authorizationUri: URL
  readonly redirectUri: string
  readonly signal: AbortSignal
}) => Promise<AuthorizationResponse | null | undefined>

/** Result of a dynamic registration, with its issuer. */
export interface RegistrationResponse extends Omit<Registration, 'redirectUri' | 'dynamic'> {
  /** Seconds since the epoch. */
  readonly clientIdIssuedAt?: number | undefined
}

/** Dynamic client registration (RFC 7591), used without a client id or a supported metadata document. */
export interface DynamicClientRegistration {
  /** Name on the consent page. Default `MCP client (mcp-host)`; empty: omitted. */
  readonly clientName?: string
  readonly clientUri?: string
  /** Bearer token for the registration request only. Requires `clientIssuer`. */
  readonly initialAccessToken?: string
  /** Default: `native` for a loopback or private-use redirect, else `web`. */
  readonly applicationType?: 'native' | 'web'
  /** Awaited before the login; a throw ends the flow. */
  readonly responseDelegate?: (
    response: RegistrationResponse,
    context: { readonly signal: AbortSignal },
  ) => Promise<void> | void
  /** False disables registration. Default true. */
  readonly enabled?: boolean
  /** Additional client metadata; overrides the defaults. */
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly registration?: Registration
}

/** A request to which the client adds credentials in `body` or `headers`. */
interface ClientAuthRequest {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  readonly body: URLSearchParams
  readonly headers: Headers
}

/** Adds client credentials to every token request, including retries. */
export type ClientAuth = (request: ClientAuthRequest) => Promise<void> | void

/** Key that signs assertions, such as private_key_jwt. */
export interface PrivateKeyOptions {
  /** PKCS#8 as PEM, a private JWK, or a WebCrypto key. */
  readonly privateKey: string | JsonWebKey | CryptoKey
  /** JWS algorithm; required for an ambiguous PEM. Default by key: ES256, RS256 or EdDSA. */
  readonly alg?: string
  readonly kid?: string
}

export interface UserCodeInfo {
  readonly userCode: string
  readonly verificationUri: string
  readonly verificationUriComplete?: string | undefined
  /** Seconds. */
  readonly expiresIn: number
}

/** Grant type. Default: authorization code. */
export type Grant =
  | { readonly type: 'authorization_code' }
  | { readonly type: 'client_credentials' }
  /** Workload identity federation (RFC 7523 §2.1): a fresh assertion for each token. */
  | { readonly type: 'jwt_bearer'; readonly assertion: (context: AssertionContext) => Promise<string> }
  /** Enterprise-managed authorization: exchanges an ID token for an ID-JAG at the identity provider. */
  | { readonly type: 'enterprise'; readonly idToken: () => Promise<string>; readonly idp: IdentityProvider }
  | { readonly type: 'device'; readonly onUserCode: (info: UserCodeInfo) => Promise<void> | void }

export interface AssertionContext {
  /** Issuer of the authorization server, used as audience of the assertion. */
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly resource: string | undefined
  readonly signal: AbortSignal
}

/** The enterprise identity provider that issues ID-JAGs (RFC 8693). */
export interface IdentityProvider {
  /** Issuer whose metadata contains the token endpoint. Alternative: `tokenEndpoint`. */
  readonly issuer?: string
  readonly tokenEndpoint?: string
  readonly clientId: string
  readonly clientSecret?: string
}

/** Options of `createAuthFetch`. `serverUrl` is required; browser logins also require `redirectUri`. */
export interface ClientOAuthOptions {
  /** The MCP server. Tokens are sent only to its origin. */
  readonly serverUrl: string | URL
  /** Sent unchanged. https, http on loopback, or a private-use scheme. */
  readonly redirectUri?: string | URL
  /** Disables metadata document and registration. */
  readonly clientId?: string
  /** Requires `clientIssuer`. */
  readonly clientSecret?: string
  /** Issuer of `clientId` or `initialAccessToken`; required with a secret. Other issuers are rejected. */
  readonly clientIssuer?: string
  /** URL of a Client ID Metadata Document, used if the server supports it. */
  readonly clientMetadataDocumentUri?: string | URL
  /** Requested scopes, instead of the server's suggestion. A step-up adds to them. */
  readonly scopes?: readonly string[]
  /** `fallback`: use `scopes` only without a suggestion of the server. Default `override`. */
  readonly scopeMode?: 'override' | 'fallback'
  /** Makes the final selection of scopes. Null or empty: the request has no `scope`. */
  readonly scopeSelector?: (
    scopes: readonly string[] | null,
  ) => readonly string[] | null | Promise<readonly string[] | null>
  /** Selects a listed authorization server; null is an error. Default: the first. */
  readonly authServerSelector?: (servers: readonly string[]) => string | null | Promise<string | null>
  readonly authorizationRedirectDelegate?: AuthorizationRedirectDelegate
  /** The same as the delegate, with named parameters. Mutually exclusive with the delegate. */
  readonly authorizationCallbackHandler?: AuthorizationCallbackHandler
  /** Rejects a bare code from a delegate. Default false: emits an event. */
  readonly strictResponse?: boolean
  readonly dynamicClientRegistration?: DynamicClientRegistration
  /** Additional authorization request parameters, such as `audience`. They cannot override built-in parameters. */
  readonly additionalAuthorizationParameters?: Readonly<Record<string, string>>
  /** Default: in memory. */
  readonly tokenCache?: TokenCache
  /** Pending logins of `interactive: 'defer'`. Default: in memory. */
  readonly flowStore?: FlowStore
  /** Used for all requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
  /** Separates identities of one user at one server. Default none. */
  readonly profile?: string
  readonly grant?: Grant
  /** Enables private_key_jwt at the token endpoint. */
  readonly privateKey?: PrivateKeyOptions['privateKey']
  readonly alg?: string
  readonly kid?: string
  /** Client authentication at the token endpoint. Default: as registered, otherwise as listed by the server. */
  readonly tokenEndpointAuthMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** Replaces client authentication. */
  readonly clientAuthentication?: ClientAuth
  /** Sender-constrained tokens (RFC 9449). `auto` (default): if the server requires them. */
  readonly dpop?: 'auto' | boolean
  /** Requests `offline_access`. `auto` (default): if the server lists it. */
  readonly offlineAccess?: 'auto' | boolean
  /** The `resource` parameter (RFC 8707): from metadata, omitted, or this value. Default `auto`. */
  readonly resourceIndicator?: 'auto' | 'omit' | (string & {})
  /** `path-prefix`: also accepts a parent path of the server's URL. Default `exact-or-origin`. */
  readonly resourceMatch?: 'exact-or-origin' | 'path-prefix'
  /** `ignore-trailing-slash`: tolerates one for an issuer without a path. Default `exact`. */
  readonly issuerMatch?: 'exact' | 'ignore-trailing-slash'
  /** Accepted issuers other than the listed one, by listed URL. */
  readonly trustedIssuers?: Readonly<Record<string, readonly string[]>>
  /** Issuers that support PKCE with S256 without announcing it. */
  readonly assumePkceS256?: readonly string[]
  /**
   * Overrides the token endpoint of the metadata for every grant and refresh. https, or http on loopback;
   * `networkPolicy` does not apply. Tokens of another endpoint are not refreshed here.
   */
  readonly tokenEndpoint?: string
  /** `granted`: a refresh sends the granted scope. Default `omit`. */
  readonly refreshScope?: 'omit' | 'granted'
  /** Supports servers without resource metadata (2025-03-26). Default true. */
  readonly legacyFallback?: boolean
  /** Seconds before expiry at which a token is refreshed. Default: a tenth of its lifetime, at most 60. */
  readonly refreshLeewaySeconds?: number
  /** Maximum step-ups per request. Default 2. */
  readonly maxStepUps?: number
  /** Requests that can start a login. `defer`: stores the flow for `session.completeAuthorization`. Default `post`. */
  readonly interactive?: 'post' | 'any' | 'never' | 'defer'
  /** Login timeout, milliseconds. Default 5 minutes. */
  readonly loginTimeoutMs?: number
  readonly networkPolicy?: NetworkPolicy
  readonly onEvent?: (event: AuthEvent) => void
  /** `import * as api from '@opentelemetry/api'`: creates spans for requests and login steps. Default: none. */
  readonly openTelemetry?: OpenTelemetryApi
}
