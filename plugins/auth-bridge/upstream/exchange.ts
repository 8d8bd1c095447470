// An access token with other scopes, for the same person: by a refresh that names them, by token exchange (RFC 8693), or
// on behalf of the person (Entra).
import { type Connection, through } from './connection.ts'
import { refresh } from './refresh.ts'
import { checking, settleAnswer, tokensOf } from './token-answer.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

async function grant(
  connection: Connection,
  last: ProviderTokens,
  { type, parameters, scope }: { type: string; parameters: Record<string, string>; scope: string },
): Promise<ProviderTokens> {
  const { oauth, server, client, authenticate } = connection
  const asked = Date.now()
  const options = { ...through(connection), headers: { Accept: 'application/json' } }
  const sent = await checking('an exchange', () =>
    oauth.genericTokenEndpointRequest(server, client, authenticate, type, { ...parameters, scope }, options),
  )
  const about = { grant: type, secrets: [last.accessToken], ignoreIdToken: true, forScopes: true }
  const response = await settleAnswer(connection, sent, about)
  const answer = await checking('the exchanged token', () =>
    oauth.processGenericTokenEndpointResponse(server, client, response),
  )
  // A refresh token of this answer is for its scopes alone; the login goes on with its own.
  const { refresh_token: _, ...access } = answer
  return tokensOf(connection, access, { asked, last, wanted: scope.split(' ') })
}

/** `scope`: with spaces between. Its refresh token is the one that the login goes on with. */
export async function exchange(connection: Connection, last: ProviderTokens, scope: string): Promise<ProviderTokens> {
  const { settings } = connection
  if (settings.exchange === 'refresh') return (await refresh(connection, last, scope)).tokens
  if (settings.exchange === 'token-exchange') {
    const parameters = {
      subject_token: last.accessToken,
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
    }
    return grant(connection, last, { type: TOKEN_EXCHANGE, parameters, scope })
  }
  if (settings.exchange === 'on-behalf-of') {
    const parameters = { assertion: last.accessToken, requested_token_use: 'on_behalf_of' }
    return grant(connection, last, { type: JWT_BEARER, parameters, scope })
  }
  throw new UpstreamError('misconfigured', `${settings.label} gives no token with other scopes`, {
    fix: 'ask for all scopes at the sign-in, in provider.scopes; or set provider.exchange where the provider can do it',
  })
}
