// Token cache: interface, stored container and in-memory default.

import type { JWK } from 'jose'

/** A WebCrypto key, identical to the platform type. */
export type CryptoKey = Parameters<typeof crypto.subtle.sign>[1]

/** A key as JSON (RFC 7517). */
export type JsonWebKey = Partial<JWK>

/** A dynamic registration (RFC 7591), valid at its issuer only. */
export interface Registration {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  /** Seconds since the epoch; 0 or absent: never. */
  readonly clientSecretExpiresAt?: number
  readonly tokenEndpointAuthMethod?: string
  /** Registered redirect URI; another one requires a new registration. */
  readonly redirectUri?: string
  readonly dynamic: true
}

/** Without `accessToken`, only the registration. Issuer, resource and client id are opaque strings. */
export interface TokenContainer {
  readonly v: 1
  readonly accessToken?: string
  readonly tokenType?: string
  readonly refreshToken?: string
  /** Seconds from `obtainedAt`; absent: no expiry. */
  readonly expiresIn?: number
  /** Granted scopes, separated by spaces. */
  readonly scope?: string
  /** All scopes requested so far, separated by spaces; a step-up requests them again. */
  readonly requestedScope?: string
  /** Milliseconds since the epoch. */
  readonly obtainedAt?: number
  readonly clientId?: string
  readonly clientSecret?: string
  /** Seconds since the epoch; 0 or absent: never. */
  readonly clientSecretExpiresAt?: number
  readonly tokenEndpointAuthMethod?: string
  /** Issuer of the tokens. */
  readonly authorizationServer?: string
  /** The option `tokenEndpoint`, if the tokens came from there. */
  readonly tokenEndpoint?: string
  /** The `resource` of the token request; absent if not sent. */
  readonly resource?: string
  /** Resource metadata URL, for a start without a challenge. */
  readonly resourceMetadataUrl?: string
  /** Private key of DPoP-bound tokens. */
  readonly dpopJwk?: JsonWebKey
  readonly registration?: Registration
}

export interface CacheContext {
  /** Container name: a hash, safe as a file name (`[A-Za-z0-9_-]+`). */
  readonly key: string
  /** Display name, such as server URL and profile. */
  readonly label?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A token cache. Methods can be called concurrently. */
export interface TokenCache {
  getTokens(context: CacheContext): Promise<TokenContainer | null | undefined> | TokenContainer | null | undefined
  /** Resolves once stored. A rejection fails the token request. */
  storeTokens(tokens: TokenContainer, context: CacheContext): Promise<void> | void
  /** Default: stores a container without tokens. */
  deleteTokens?(context: CacheContext): Promise<void> | void
  /** Refresh lock across processes. Rejects with `temporarily_unavailable` after 30 s. */
  withLock?<T>(context: CacheContext, work: () => Promise<T>): Promise<T>
  /** Login lease across processes. Undefined: another process has it. `wait` resolves when it is released. */
  leaseLogin?(context: CacheContext): Promise<LoginLease>
}

export type LoginLease =
  | { readonly held: true; release(): Promise<void> }
  | { readonly held: false; wait(signal: AbortSignal): Promise<void> }

/** A token cache in memory: logins end with the process. */
export function createMemoryTokenCache(): TokenCache {
  const containers = new Map<string, TokenContainer>()
  return {
    getTokens: ({ key }) => containers.get(key),
    storeTokens: (tokens, { key }) => void containers.set(key, tokens),
    deleteTokens: ({ key }) => void containers.delete(key),
  }
}
