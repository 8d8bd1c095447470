// Users that a test makes up, as handlers see them where no token is involved.

import type { TestUser } from '../access/claims.ts'
import { makeClaims, readUser } from '../access/claims.ts'
import type { User } from '../kernel/user.ts'

const ISSUER = 'https://issuer.test'

/** The user as an auth plugin would have established it. Throws where there is nobody: an empty subject. */
export function makeUser(user: TestUser): User {
  const made = readUser({ iss: ISSUER, ...makeClaims(user) }, ISSUER)
  if (!made) throw new TypeError('a user needs a subject or a clientId: leave them out for "tester", or give a text')
  return made
}
