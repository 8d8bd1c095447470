// Gets an access token with other scopes for the same user, by a refresh or by token exchange (RFC 8693).
import { type Connection, through } from './connection.ts'
import { refresh } from './refresh.ts'
import { checking, settleAnswer, tokensOf } from './token-answer.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

async function exchangeToken(connection: Connection, last: ProviderTokens, scope: string): Promise<ProviderTokens> {
  const { oauth, server, client, authenticate } = connection
  const asked = Date.now()
  const options = { ...through(connection), headers: { Accept: 'application/json' } }
  const parameters = {
    subject_token: last.accessToken,
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ACCESS_TOKEN,
    scope,
  }
  const sent = await checking('an exchange', () =>
    oauth.genericTokenEndpointRequest(server, client, authenticate, TOKEN_EXCHANGE, parameters, options),
  )
  const about = { grant: TOKEN_EXCHANGE, secrets: [last.accessToken], ignoreIdToken: true, forScopes: true }
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
  if (settings.exchange === 'token-exchange') return exchangeToken(connection, last, scope)
  throw new UpstreamError('misconfigured', `${settings.label} gives no token with other scopes`, {
    fix: 'request all scopes at sign-in, in provider.scopes',
  })
}
