// The slots of an authorization server: `grantStore` (logins, consents, grants, codes, refresh tokens) and `authorizationServer`.

/**
 * Stores sealed texts and sets. Operations on one key are atomic. A text and a set with the same key are independent; `delete`
 * removes both. Keys begin with a prefix of `GRANT_KINDS`. `ttl` in milliseconds, at most 100 years; 0 or less expires at once.
 * Rejects with a RangeError for other keys or ttls. Rejects with a HostError `unavailable` for an oversized entry (not written)
 * or an unresponsive store (possibly written).
 */
export interface GrantStore {
  readonly shared: boolean
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, ttl: number): Promise<void>
  /** Writes if the key is absent, and returns whether it was. */
  add(key: string, value: string, ttl: number): Promise<boolean>
  /** Writes if the value is `from`, and returns whether it was. */
  replace(key: string, from: string, to: string, ttl: number): Promise<boolean>
  /** Returns and deletes the value, for one caller only. */
  take(key: string): Promise<string | undefined>
  /** On rejection, some keys may be deleted. */
  delete(...keys: readonly string[]): Promise<void>
  /**
   * Adds a member for at least `ttl` and returns the set's size. An existing member becomes the newest and never expires earlier.
   * Above `most` members, the oldest are removed.
   */
  join(set: string, member: string, ttl: number, most: number): Promise<number>
  leave(set: string, member: string): Promise<void>
  members(set: string): Promise<readonly string[]>
}

/** Key prefixes. A flood of pending entries never evicts granted ones. */
export const GRANT_KINDS = {
  pending: 'pending:',
  granted: 'granted:',
} as const

const LONGEST_TTL = 100 * 365.25 * 86_400_000

/** For stores: the kind of a key. Throws a RangeError for any other key. */
export function grantKindOf(key: string): keyof typeof GRANT_KINDS {
  if (key.startsWith(GRANT_KINDS.pending)) return 'pending'
  if (key.startsWith(GRANT_KINDS.granted)) return 'granted'
  // The error omits the key, which can be personal data.
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

/** The `authorizationServer` slot, for routes with host-issued tokens. */
export interface AuthorizationServer {
  /** The issuer identifier. Without `http.publicUrl` it is known after the host listens. */
  issuer(): string | undefined
  /** The signing key, then earlier keys that still verify. Returns the same list until a key changes. */
  keys(): readonly PublicJwk[]
}

/** The default without an authorization server plugin. */
export const noAuthorizationServer: AuthorizationServer = { issuer: () => undefined, keys: () => [] }
