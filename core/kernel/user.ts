// The authenticated user of a request and the key that identifies a user.

/** The authenticated caller. */
export interface User {
  /** Identifies the user together with `subject` and `subjectClaim`. */
  issuer?: string
  subject: string
  /**
   * The claim of `subject` if not `sub`; equal values of different claims are different users. `client_id`: a client that acts
   * for itself.
   */
  subjectClaim?: string
  clientId?: string
  scopes: readonly string[]
  roles: readonly string[]
  claims: Readonly<Record<string, unknown>>
  /** The end of this token's streams, milliseconds since the epoch. Undefined: never. */
  expiresAt?: number
}

export type UserName = Pick<User, 'issuer' | 'subject' | 'subjectClaim'>

// Lookup in this set is faster than calling Object.isFrozen on each part.
const frozen = new WeakSet<UserName>()
const keys = new WeakMap<UserName, string>()

/** Returns a key that is equal only for the same user. Cached for frozen users. */
export function userKey(user: UserName): string {
  const cached = keys.get(user)
  if (cached !== undefined) return cached
  const { issuer = '', subject, subjectClaim } = user
  const key = JSON.stringify(subjectClaim === undefined ? [issuer, subject] : [issuer, subject, subjectClaim])
  if (frozen.has(user)) keys.set(user, key)
  return key
}

export const sameUser = (one: UserName | undefined, other: UserName | undefined): boolean =>
  one === undefined || other === undefined ? one === other : one === other || userKey(one) === userKey(other)

/** Freezes a user and its lists, so that later code cannot change an access decision. Claims are frozen shallowly. */
export function freezeUser(user: User): User {
  if (frozen.has(user)) return user
  for (const part of [user.scopes, user.roles, user.claims]) Object.freeze(part)
  frozen.add(Object.freeze(user))
  return user
}
