// Who an identity assertion is about: a person like those who sign in, so that the same rules hold for them. Somebody of
// another issuer than the provider's is somebody else, whatever their `sub`.
import type { Claims } from '../../../core/auth.ts'
import { addressOf, firstText, groupsAt, textOf } from '../upstream/read-person.ts'
import type { Settings } from '../upstream/settings.ts'
import type { Person } from '../upstream/upstream.ts'
import type { Assertion } from './assertion.ts'

function emailOf(claims: Claims, own: Settings | undefined): string | undefined {
  const address = addressOf(claims['email'])
  if (address === undefined) return undefined
  const isVerified = own ? own.trustEmail || own.kind.verifiedEmail(claims, address) : claims['email_verified'] === true
  return isVerified ? address : undefined
}

/** `provider`: of those who sign in; what its own assertions say is read as its ID tokens are. */
export function assertedPerson({ from, claims, subject }: Assertion, provider: Settings): Person {
  const own = provider.issuer === from.issuer ? provider : undefined
  const name = textOf(claims['name'])
  const email = emailOf(claims, own)
  return {
    // The name of an issuer has no `#`: no two pairs are the same text.
    subject: own ? (firstText(claims, own.claims.subject) ?? subject) : `${from.issuer}#${subject}`,
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    groups: groupsAt(claims, own?.claims.groups ?? ['groups']),
    claims,
  }
}
