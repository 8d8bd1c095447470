// Who calls, across tokens and requests: what an auth plugin establishes, and the one key that sessions, bounds, sealed
// states and streams go by.

/** Who calls, as an auth plugin established it. */
export interface User {
  /** Who issued the identity; with `subject` and `subjectClaim` it names the user across issuers. */
  issuer?: string
  subject: string
  /**
   * The claim that `subject` is the value of, where that is not the first one that the issuer writes subjects to (`sub`):
   * what another claim names is another user, be the value the same. `client_id`: a client that acts for itself.
   */
  subjectClaim?: string
  clientId?: string
  scopes: readonly string[]
  roles: readonly string[]
  claims: Readonly<Record<string, unknown>>
  /** When streams that this token opened end, milliseconds since the epoch; undefined: they do not. */
  expiresAt?: number
}

/** What names a user: the claims, scopes and roles of a token do not. */
export type UserName = Pick<User, 'issuer' | 'subject' | 'subjectClaim'>

/** The same text for the same user alone: two claims of one issuer may hold the same value for two users. */
export const userKey = ({ issuer = '', subject, subjectClaim }: UserName): string =>
  JSON.stringify(subjectClaim === undefined ? [issuer, subject] : [issuer, subject, subjectClaim])

/** Whether both are one user, or both nobody. */
export const sameUser = (one: UserName | undefined, other: UserName | undefined): boolean =>
  one === undefined || other === undefined ? one === other : one === other || userKey(one) === userKey(other)

/** Asking this is cheaper than asking each object. */
const frozen = new WeakSet<User>()

/**
 * Freezes a user, once: what was decided by its scopes, roles and claims stays what they say. Of a claim that is an object,
 * the inside is left to whoever made it.
 */
export function freezeUser(user: User): User {
  if (frozen.has(user)) return user
  for (const part of [user.scopes, user.roles, user.claims]) Object.freeze(part)
  frozen.add(Object.freeze(user))
  return user
}
