// The client acts for itself (RFC 6749 §4.4): no person, no refresh token; the grant is simply requested again.
import type { ClientContext } from '../context.ts'
import { requestToken, type TokenAnswer } from '../token-endpoint.ts'
import type { GrantAbout } from './about.ts'

export function requestByClientCredentials(
  ctx: ClientContext,
  { server, client, resource, scope, dpop }: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const grantType = 'client_credentials'
  return requestToken(ctx, { server, client, grantType, parameters: { scope, resource }, dpop }, signal)
}
