// Tells the provider that tokens are not needed any more (RFC 7009).

import { jsonOf } from './ask.ts'
import { type Connection, through } from './connection.ts'
import { deleteGrant } from './github.ts'
import { refusalError, refusalIn, unreadable } from './refusal.ts'
import { checking } from './token-answer.ts'
import type { ProviderTokens } from './upstream.ts'

/** The refresh token, with which the others end; without one the access token. */
export async function revoke(connection: Connection, tokens: ProviderTokens): Promise<void> {
  const { oauth, server, client, authenticate, settings } = connection
  if (settings.type === 'github') return deleteGrant(connection, tokens)
  if (server.revocation_endpoint === undefined) return
  const { refreshToken, accessToken } = tokens
  const token = refreshToken ?? accessToken
  const hint = refreshToken === undefined ? 'access_token' : 'refresh_token'
  const response = await checking('a revocation', () =>
    oauth.revocationRequest(server, client, authenticate, token, {
      ...through(connection),
      additionalParameters: { token_type_hint: hint },
    }),
  )
  if (response.status === 200 || response.status === 204) return
  const what = 'the revocation endpoint'
  const refusal = refusalIn(await jsonOf(response))
  if (!refusal) throw unreadable(what, response.status)
  // Google answers so to a token that has ended, and some to a kind that they cannot revoke: nothing is left to do.
  if (refusal.code === 'invalid_token' || refusal.code === 'unsupported_token_type') return
  throw refusalError(refusal, { type: settings.type, what, secrets: [token, settings.clientSecret] })
}
