// The authenticated user of a request, and the key that identifies a user.

/** The caller, as an auth plugin identified it. */
export interface User {
  /** The issuer of the identity. It identifies the user together with `subject` and `subjectClaim`. */
  issuer?: string
  subject: string
  /**
   * The claim of `subject`, if it is not the issuer's first choice (`sub`). Users of different claims differ. `client_id`: a
   * client that acts for itself.
   */
  subjectClaim?: string
  clientId?: string
  scopes: readonly string[]
  roles: readonly string[]
  claims: Readonly<Record<string, unknown>>
  /** When streams of this token end, milliseconds since the epoch; undefined: never. */
  expiresAt?: number
}

/** The parts that identify a user. */
export type UserName = Pick<User, 'issuer' | 'subject' | 'subjectClaim'>

/** Equal for the same user only. */
export const userKey = ({ issuer = '', subject, subjectClaim }: UserName): string =>
  JSON.stringify(subjectClaim === undefined ? [issuer, subject] : [issuer, subject, subjectClaim])

/** Also true for two anonymous callers. */
export const sameUser = (one: UserName | undefined, other: UserName | undefined): boolean =>
  one === undefined || other === undefined ? one === other : one === other || userKey(one) === userKey(other)

// Faster than Object.isFrozen of each part.
const frozen = new WeakSet<User>()

/** Freezes a user and its lists, so that later code cannot change an access decision. Claims are frozen shallowly. */
export function freezeUser(user: User): User {
  if (frozen.has(user)) return user
  for (const part of [user.scopes, user.roles, user.claims]) Object.freeze(part)
  frozen.add(Object.freeze(user))
  return user
}
