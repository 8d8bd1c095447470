// Asks the provider who an access token is of: OpenID Connect's userinfo, or the address that plain OAuth has for it.
import { type Claims, shownUrl } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'
import { type AskInit, jsonOf } from './ask.ts'
import type { Connection } from './connection.ts'
import { checking, checkSignature } from './token-answer.ts'
import { UpstreamError } from './upstream.ts'

/** Of a signed answer: they are about the answer and not about the person. */
const ABOUT_THE_ANSWER = new Set(['iss', 'aud', 'exp', 'iat', 'nbf', 'jti'])

/** Rejects with `refused` where the token is taken no more. `accept`: the media type that is wanted. */
export async function askAs(
  { ask }: Connection,
  url: string,
  accessToken: string,
  { accept = 'application/json', ...init }: AskInit & { readonly accept?: string } = {},
): Promise<Response> {
  const authorization = { Authorization: `Bearer ${accessToken}`, Accept: accept }
  const response = await ask(url, { ...init, headers: { ...init.headers, ...authorization } })
  const { status } = response
  if (status === 200) return response
  const what = `${shownUrl(url)} answers ${status}`
  if (status === 401 || status === 403) throw new UpstreamError('refused', what)
  throw new UpstreamError('misconfigured', what)
}

/** Claims of userinfo; `subject` is the `sub` that they must be of, undefined for plain OAuth, where no such name is sure. */
export async function askUserinfo(
  connection: Connection,
  accessToken: string,
  subject: string | undefined,
): Promise<Claims> {
  const { oauth, server, client, settings } = connection
  const url = server.userinfo_endpoint
  if (url === undefined) {
    throw new UpstreamError('misconfigured', 'the provider has no userinfo endpoint, and gave no refresh token', {
      fix: 'ask for offline_access in `scopes`, so that it gives a refresh token',
    })
  }
  const response = await askAs(connection, url, accessToken)
  if (!settings.kind.openid) {
    const body = await jsonOf(response)
    if (!isObject(body)) throw new UpstreamError('untrusted', `${shownUrl(url)} answers no JSON object`)
    return body
  }
  return checking('userinfo', async () => {
    const claims = await oauth.processUserInfoResponse(server, client, subject ?? '', response)
    if (response.headers.get('content-type')?.startsWith('application/jwt')) await checkSignature(connection, response)
    return Object.fromEntries(Object.entries(claims).filter(([name]) => !ABOUT_THE_ANSWER.has(name)))
  })
}
