// Users that a test makes up: what it says of them, and the User that handlers see where no token is involved.
import type { TestUser } from '../kernel/define-plugin.ts'
import type { User } from '../kernel/user.ts'

const ISSUER = 'https://issuer.test'

/** The user as an auth plugin would have established it. */
export function makeUser({
  subject = 'tester',
  clientId = 'test-client',
  scopes = [],
  roles = [],
  claims,
}: TestUser): User {
  return {
    issuer: ISSUER,
    subject,
    clientId,
    scopes: [...scopes],
    roles: [...roles],
    claims: { iss: ISSUER, sub: subject, client_id: clientId, scope: scopes.join(' '), roles: [...roles], ...claims },
  }
}
