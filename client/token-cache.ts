// The token cache: its interface, the stored container, and the in-memory default.

/** A key that WebCrypto made; the same type as the platform's own. */
export type CryptoKey = Parameters<typeof crypto.subtle.sign>[1]

/** A key as JSON (RFC 7517). */
export interface JsonWebKey {
  kty?: string
  crv?: string
  x?: string
  y?: string
  d?: string
  n?: string
  e?: string
  p?: string
  q?: string
  dp?: string
  dq?: string
  qi?: string
  alg?: string
  kid?: string
  use?: string
  key_ops?: string[]
  ext?: boolean
}

/** A dynamic registration (RFC 7591): valid at its issuer alone. */
export interface Registration {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  /** Seconds since the epoch; 0 or absent: never. */
  readonly clientSecretExpiresAt?: number
  readonly tokenEndpointAuthMethod?: string
  /** As it was registered; another one needs another registration. */
  readonly redirectUri?: string
  readonly dynamic: true
}

/**
 * Tokens and everything that a refresh needs to be safe. Without an `accessToken` it only keeps the registration.
 * Every value is as the server gave it: issuer, resource and client id are opaque strings.
 */
export interface TokenContainer {
  readonly v: 1
  readonly accessToken?: string
  readonly tokenType?: string
  readonly refreshToken?: string
  /** Seconds from `obtainedAt`; absent: it never expires. */
  readonly expiresIn?: number
  /** As granted, separated by spaces. */
  readonly scope?: string
  /** Everything that was ever asked for, separated by spaces: a step-up asks for it again. */
  readonly requestedScope?: string
  /** Milliseconds since the epoch. */
  readonly obtainedAt?: number
  readonly clientId?: string
  readonly clientSecret?: string
  /** Seconds since the epoch; 0 or absent: never. */
  readonly clientSecretExpiresAt?: number
  readonly tokenEndpointAuthMethod?: string
  /** The issuer that the tokens are from. */
  readonly authorizationServer?: string
  /** Of the option `tokenEndpoint`, which is where they are from; absent: the endpoint of the metadata. */
  readonly tokenEndpoint?: string
  /** The `resource` they were asked for; absent where none was sent. */
  readonly resource?: string
  /** Where the resource's metadata was, for a start without a challenge. */
  readonly resourceMetadataUrl?: string
  /** The private key that DPoP-bound tokens are bound to. */
  readonly dpopJwk?: JsonWebKey
  readonly registration?: Registration
}

export interface CacheContext {
  /** Names the container: a hash, safe as a file name (`[A-Za-z0-9_-]+`). */
  readonly key: string
  /** What a person knows it by, such as the server's URL and the profile; kept with the tokens where a cache lists them. */
  readonly label?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The two methods that a cache needs. Both may be called at the same time by several requests. */
export interface TokenCache {
  getTokens(context: CacheContext): Promise<TokenContainer | null | undefined> | TokenContainer | null | undefined
  /** Resolves once it is kept; a throw is told to whoever waits for the token. */
  storeTokens(tokens: TokenContainer, context: CacheContext): Promise<void> | void
  /** Without it, a container without tokens is stored. */
  deleteTokens?(context: CacheContext): Promise<void> | void
  /**
   * Runs `work` while no other process does for this key: the refresh lock. Rejects with `temporarily_unavailable` when
   * the lock is not had within 30 s. Without it the cache is this process's own.
   */
  withLock?<T>(context: CacheContext, work: () => Promise<T>): Promise<T>
  /**
   * The login lease, held by whoever shows a person a login, for as long as that takes. Undefined: another process has
   * it. `wait` resolves when its holder let go or died, so that the waiter can read the outcome.
   */
  leaseLogin?(context: CacheContext): Promise<LoginLease>
}

export type LoginLease =
  | { readonly held: true; release(): Promise<void> }
  | { readonly held: false; wait(signal: AbortSignal): Promise<void> }

export function createMemoryTokenCache(): TokenCache {
  const containers = new Map<string, TokenContainer>()
  return {
    getTokens: ({ key }) => containers.get(key),
    storeTokens: (tokens, { key }) => void containers.set(key, tokens),
    deleteTokens: ({ key }) => void containers.delete(key),
  }
}
