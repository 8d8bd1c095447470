// Asks the provider whether somebody may still sign in, and reads anew who they are.
import type { Connection } from './connection.ts'
import { readPerson } from './read-person.ts'
import { refresh } from './refresh.ts'
import { type SignedIn, UpstreamError } from './upstream.ts'

const another = () => new UpstreamError('refused', 'the provider answered with somebody else than was asked about')

async function read(connection: Connection, last: SignedIn): Promise<SignedIn> {
  if (last.tokens.refreshToken === undefined) {
    return readPerson(connection, last.tokens, { last, mustAnswer: true })
  }
  const { tokens, idToken } = await refresh(connection, last.tokens)
  const { claims } = last.person
  if (idToken && (idToken['sub'] !== claims['sub'] || idToken['iss'] !== claims['iss'])) throw another()
  try {
    return await readPerson(connection, tokens, { last, idToken })
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.fault !== 'unavailable') throw error
    // The refresh itself said that the login goes on, and its new token must not be lost: the old one works no more.
    connection.log.warn(
      { err: error },
      'the provider renewed a login and does not say who it is now: what was known stands',
    )
    return { person: last.person, tokens }
  }
}

/**
 * An ID token is a whole answer, as at the sign-in: a group or role that it no longer has is gone. Without one, what
 * userinfo does not say stands as it was.
 */
export async function renew(connection: Connection, last: SignedIn): Promise<SignedIn> {
  const now = await read(connection, last)
  if (now.person.subject !== last.person.subject) throw another()
  const { name } = { ...last.person, ...now.person }
  return { ...now, person: { ...now.person, ...(name !== undefined && { name }) } }
}
