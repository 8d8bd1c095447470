// The refresh grant (RFC 6749, section 6): new tokens for the same login, and what their ID token says.
import { type Claims, shownUrl } from '../../../core/auth.ts'
import { type Connection, through } from './connection.ts'
import { checking, checkSignature, settleAnswer, tokensOf } from './token-answer.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'

export interface Refreshed {
  /** With the refresh token that works from now on. */
  readonly tokens: ProviderTokens
  /** Where one came; its signature, issuer, audience and time are checked, its subject is not. */
  readonly idToken: Claims | undefined
}

const NO_REFRESH_TOKEN = {
  fix: 'have the provider give refresh tokens: ask for offline_access in `scopes`, and allow the application the grant',
}

/** False where the keys cannot be had now: then there is no ID token, but the new refresh token must not be lost for it. */
async function isSigned(connection: Connection, response: Response): Promise<boolean> {
  try {
    await checkSignature(connection, response)
    return true
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.fault !== 'unavailable') throw error
    connection.log.warn({ err: error }, 'the keys of the provider cannot be fetched: an ID token does not count')
    return false
  }
}

/** With `scope` the access token has that scope; an ID token in such an answer is left out. */
export async function refresh(connection: Connection, last: ProviderTokens, scope?: string): Promise<Refreshed> {
  const { oauth, server, client, authenticate } = connection
  const { refreshToken } = last
  if (refreshToken === undefined) {
    throw new UpstreamError('misconfigured', 'the provider gave no refresh token', NO_REFRESH_TOKEN)
  }
  const asked = Date.now()
  const sent = await checking(`a refresh at ${shownUrl(server.token_endpoint)}`, () =>
    oauth.refreshTokenGrantRequest(server, client, authenticate, refreshToken, {
      ...through(connection),
      headers: { Accept: 'application/json' },
      ...(scope !== undefined && { additionalParameters: { scope } }),
    }),
  )
  const others = { ignoreIdToken: scope !== undefined, forScopes: scope !== undefined }
  const secrets = [refreshToken, last.accessToken]
  const response = await settleAnswer(connection, sent, { grant: 'refresh_token', secrets, ...others })
  return checking('the refreshed tokens', async () => {
    const answer = await oauth.processRefreshTokenResponse(server, client, response)
    const claims = oauth.getValidatedIdTokenClaims(answer)
    const idToken = claims && (await isSigned(connection, response)) ? claims : undefined
    const wanted = scope?.split(' ') ?? last.scopes
    return { tokens: tokensOf(connection, answer, { asked, last, wanted }), idToken }
  })
}
