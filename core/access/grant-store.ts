// The slots of an authorization server: `grantStore` (logins, consents, grants, codes, refresh tokens) and `authorizationServer`.

/**
 * Stores sealed texts and sets. Every operation on one key is atomic. A text and a set of one key are independent; `delete`
 * deletes both. Keys begin with one of `GRANT_KINDS`. `ttl` in milliseconds, at most 100 years; 0 or less expires at once.
 * Rejects with a RangeError for another key or ttl, and with a HostError `unavailable` for an oversized entry (nothing is
 * written) or a store that does not respond (it may be written).
 */
export interface GrantStore {
  /** Whether other nodes use the same store. */
  readonly shared: boolean
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, ttl: number): Promise<void>
  /** Writes if the key is absent; returns whether it was. */
  add(key: string, value: string, ttl: number): Promise<boolean>
  /** Writes if the value is `from`; returns whether it was. */
  replace(key: string, from: string, to: string, ttl: number): Promise<boolean>
  /** Returns and deletes the value, for one caller only. */
  take(key: string): Promise<string | undefined>
  /** If it rejects, some keys may be deleted. */
  delete(...keys: readonly string[]): Promise<void>
  /**
   * Adds a member for at least `ttl` and returns the size of the set. An existing member becomes the newest and does not expire
   * earlier than before. Of more than `most` members the oldest are removed.
   */
  join(set: string, member: string, ttl: number, most: number): Promise<number>
  leave(set: string, member: string): Promise<void>
  /** Oldest first. */
  members(set: string): Promise<readonly string[]>
}

/** Prefixes of keys. A flood of pending entries never evicts granted ones. */
export const GRANT_KINDS = {
  /** Unfinished logins, which anyone can begin. */
  pending: 'pending:',
  /** Grants of signed-in users. */
  granted: 'granted:',
} as const

const LONGEST_TTL = 100 * 365.25 * 86_400_000

/** For stores: the kind of a key. Throws a RangeError for any other key. */
export function grantKindOf(key: string): keyof typeof GRANT_KINDS {
  if (key.startsWith(GRANT_KINDS.pending)) return 'pending'
  if (key.startsWith(GRANT_KINDS.granted)) return 'granted'
  // The key itself can be personal data.
  throw new RangeError(
    `a key of a grant store begins with ${Object.values(GRANT_KINDS).join(' or ')}; this one of ${key.length} characters does not`,
  )
}

/** For stores: rounds a ttl up to whole milliseconds. Throws a RangeError for an invalid ttl. */
export function checkGrantTtl(ttl: number): number {
  if (ttl <= LONGEST_TTL) return Math.max(0, Math.ceil(ttl))
  throw new RangeError(
    `a grant store keeps things for at most 100 years: the ttl is to be in milliseconds, and is ${ttl}`,
  )
}

/** A public key as a JWK (RFC 7517) with `kid`, `alg` and `use`. */
export type PublicJwk = Readonly<Record<string, unknown>>

/** The slot `authorizationServer`, for routes whose tokens this host issues. */
export interface AuthorizationServer {
  /** The issuer identifier; undefined without one. Without `http.publicUrl` it is known once the host listens. */
  issuer(): string | undefined
  /** The signing key, then earlier ones that still verify; empty without a server. The same list while nothing changes. */
  keys(): readonly PublicJwk[]
}

/** Without a plugin that makes this host an authorization server. */
export const noAuthorizationServer: AuthorizationServer = { issuer: () => undefined, keys: () => [] }
