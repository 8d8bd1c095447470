// Who a user is, across tokens and requests: the one key that sessions, bounds, sealed states and streams go by.
import type { User } from './define.ts'

/** What names a user: the claims, scopes and roles of a token do not. */
export type UserName = Pick<User, 'issuer' | 'subject' | 'subjectClaim'>

/** The same text for the same user alone: two claims of one issuer may hold the same value for two users. */
export const userKey = ({ issuer = '', subject, subjectClaim }: UserName): string =>
  JSON.stringify(subjectClaim === undefined ? [issuer, subject] : [issuer, subject, subjectClaim])

/** Whether both are one user, or both nobody. */
export const sameUser = (one: UserName | undefined, other: UserName | undefined): boolean =>
  one === undefined || other === undefined ? one === other : one === other || userKey(one) === userKey(other)
