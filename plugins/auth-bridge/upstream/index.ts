// Creates the identity provider client from the options.
import type { Logger } from '../../../core/plugin.ts'
import type { FilledProvider } from '../options.ts'
import { type Connection, createConnector } from './connection.ts'
import { revoke } from './github.ts'
import { readPerson } from './read-person.ts'
import { settle } from './settings.ts'
import { begin, finish } from './sign-in.ts'
import { exchange, refresh } from './tokens.ts'
import { type SignedIn, type Upstream, UpstreamError } from './upstream.ts'

const another = () => new UpstreamError('refused', 'the provider returned another user than the one who signed in')

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
    // The login continues with the new token, because the old one no longer works.
    connection.log.warn(
      { err: error },
      'The provider renewed a login but did not return the user: the previous user data is kept',
    )
    return { person: last.person, tokens }
  }
}

/** An ID token is complete: missing groups and roles are removed. Userinfo keeps missing data unchanged. */
async function renew(connection: Connection, last: SignedIn): Promise<SignedIn> {
  const now = await read(connection, last)
  if (now.person.subject !== last.person.subject) throw another()
  const { name } = { ...last.person, ...now.person }
  return { ...now, person: { ...now.person, ...(name !== undefined && { name }) } }
}

export { type Explanation, explain, type ProviderRefusal } from './refusal.ts'

export interface UpstreamSettings {
  readonly at: readonly (string | number)[]
  readonly log: Logger
  readonly timeout?: number
}

const NO_REFRESH =
  'without offline_access the provider gives no refresh token: people sign in again when its token ends'

export function createUpstream(provider: FilledProvider, { at, log, timeout }: UpstreamSettings): Upstream {
  const settings = settle(provider, at)
  const { scopes, kind, label } = settings
  if (kind.offline === true && scopes && !scopes.includes('offline_access')) log.warn({ scopes }, NO_REFRESH)
  const connect = createConnector(settings, log, timeout)
  const connected =
    <Given extends unknown[], Value>(act: (connection: Connection, ...given: Given) => Promise<Value>) =>
    async (...given: Given): Promise<Value> =>
      act(await connect(), ...given)
  return {
    label,
    begin: connected(begin),
    finish: connected(finish),
    renew: connected(renew),
    exchange: connected(exchange),
    revoke: connected(revoke),
  }
}
