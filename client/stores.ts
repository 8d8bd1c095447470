// Token cache and flow store: interfaces, stored records, and in-memory defaults.
import type { JWK } from 'jose'
import { LRUCache } from 'lru-cache'

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
export interface TokenContainer
  extends Partial<Pick<Registration, 'clientId'>>,
    Pick<Registration, 'clientSecret' | 'clientSecretExpiresAt' | 'tokenEndpointAuthMethod'> {
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
  /** Issuer of the tokens. */
  readonly authorizationServer?: string
  /** The option `tokenEndpoint`, if the tokens came from there. */
  readonly tokenEndpoint?: string
  /** The `resource` of the token request; absent if not sent. */
  readonly resource?: string
  /** Resource metadata URL, used to log in without a challenge. */
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
  /** Login lease across processes. */
  leaseLogin?(context: CacheContext): Promise<LoginLease>
}

export type LoginLease =
  | { readonly held: true; release(): Promise<void> }
  | {
      readonly held: false
      readonly pid?: number | undefined
      /** Waits until the lease is free. Resolves to true if its process ended without releasing it. */
      wait(signal: AbortSignal): Promise<boolean>
    }

/** A token cache in memory: logins end with the process. */
export function createMemoryTokenCache(): TokenCache {
  const containers = new Map<string, TokenContainer>()
  return {
    getTokens: ({ key }) => containers.get(key),
    storeTokens: (tokens, { key }) => void containers.set(key, tokens),
    deleteTokens: ({ key }) => void containers.delete(key),
  }
}

/** An authorization request (RFC 9700 §4.4). Contains secrets. */
export interface FlowRecord {
  readonly v: 1
  readonly state: string
  /** Published issuer; compared with `iss` of the response. */
  readonly issuer: string
  readonly issParameterSupported: boolean
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly resource?: string | undefined
  readonly scope?: string | undefined
  readonly requestedScope?: string | undefined
  readonly client: ClientIdentity
  /** The server that redeems the code. */
  readonly server: ServerInfo
  readonly resourceMetadataUrl?: string | undefined
  /** True if the server requires DPoP tokens. */
  readonly dpop?: boolean | undefined
  readonly key: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** Stores records by state. Records are secrets and need the same protection as tokens. */
export interface FlowStore {
  save(state: string, record: FlowRecord): Promise<void> | void
  /** Returns and removes a record. */
  take(state: string): Promise<FlowRecord | undefined | null> | FlowRecord | undefined | null
}

export const FLOW_LIFETIME_MS = 600_000

const MAX_FLOWS = 1000

/** In-memory store: at most 1,000 records (oldest evicted first), ten minutes each. */
export function createMemoryFlowStore(now: () => number = Date.now): FlowStore {
  const lifetime = { ttl: FLOW_LIFETIME_MS, ttlResolution: 0, perf: { now } }
  const records = new LRUCache<string, FlowRecord>({ max: MAX_FLOWS, ...lifetime })
  return {
    save: (state, record) => void records.set(state, record),
    take(state) {
      const record = records.get(state)
      records.delete(state)
      return record
    },
  }
}

/** Authorization server metadata (RFC 8414). */
export interface ServerInfo {
  readonly listed: string
  /** Published issuer; must equal `iss` of an authorization response. */
  readonly issuer: string
  readonly authorizationEndpoint?: string | undefined
  readonly tokenEndpoint?: string | undefined
  readonly tokenEndpointGiven?: boolean | undefined
  readonly registrationEndpoint?: string | undefined
  readonly revocationEndpoint?: string | undefined
  readonly deviceAuthorizationEndpoint?: string | undefined
  readonly scopesSupported?: readonly string[] | undefined
  readonly grantTypesSupported?: readonly string[] | undefined
  readonly tokenEndpointAuthMethodsSupported?: readonly string[] | undefined
  /** Authorization responses require `iss` (RFC 9207). */
  readonly issParameterSupported: boolean
  readonly clientIdMetadataDocumentSupported: boolean
  readonly pkceS256: boolean
  readonly oidc: boolean
  /** No metadata document: default endpoints of 2025-03-26. */
  readonly legacy: boolean
  readonly metadataUrl: string | undefined
}

export interface ClientIdentity extends Omit<Registration, 'redirectUri' | 'dynamic'> {
  readonly source: 'configured' | 'metadata-document' | 'registered'
  readonly registration?: Registration
}
