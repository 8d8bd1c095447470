// Token requests to the provider: refresh, exchange and userinfo, with normalized responses.

import type { TokenEndpointResponse } from 'oauth4webapi'
import { shownUrl } from '../../../core/auth.ts'
import { type Claims, isObject } from '../../../core/plugin.ts'
import { type AskInit, type Connection, jsonOf, through } from './connection.ts'
import { type ProviderTokens, refusalError, refusalIn, UpstreamError, unreadable } from './upstream.ts'

export const bodyOf = async (response: Response): Promise<unknown> =>
  response.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded')
    ? Object.fromEntries(new URLSearchParams(await response.clone().text()))
    : jsonOf(response)

function settled(body: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries(body).filter(([, value]) => value !== null)
  const { scope, expires_in, ...rest } = Object.fromEntries(members)
  const texts = Array.isArray(scope) ? scope.filter(one => typeof one === 'string').join(' ') : scope
  const seconds = Number(expires_in)
  return {
    // Required by RFC 6749, omitted by some providers.
    token_type: 'bearer',
    ...rest,
    ...(typeof texts === 'string' && { scope: texts }),
    ...(expires_in !== undefined && Number.isFinite(seconds) && seconds >= 0 && { expires_in: seconds }),
  }
}

interface AnswerContext {
  readonly grant: string
  readonly secrets: readonly (string | undefined)[]
  /** True for requests with other scopes, whose ID token is ignored. */
  readonly forScopes?: boolean
}

export async function settleAnswer(
  connection: Connection,
  response: Response,
  { grant, secrets, forScopes = false }: AnswerContext,
): Promise<Response> {
  const { type, clientSecret } = connection.settings
  const what = `the token endpoint (${grant})`
  const body = await bodyOf(response)
  const refusal = refusalIn(body)
  if (refusal) throw refusalError(refusal, { type, what, secrets: [...secrets, clientSecret], forScopes })
  if ((response.status !== 200 && response.status !== 201) || !isObject(body)) throw unreadable(what, response.status)
  const members = settled(body)
  if (forScopes || !connection.settings.kind.openid) delete members['id_token']
  return new Response(JSON.stringify(members), { headers: { 'content-type': 'application/json' } })
}

export async function checking<Value>(what: string, check: () => Promise<Value> | Value): Promise<Value> {
  try {
    return await check()
  } catch (thrown) {
    if (thrown instanceof UpstreamError) throw thrown
    // Messages of oauth4webapi are fixed texts, but the cause can contain secrets.
    const reason = thrown instanceof Error ? thrown.message : 'it does not match the request'
    throw new UpstreamError('untrusted', `${what}: ${reason}`)
  }
}

const lacksKey = (connection: Connection, thrown: unknown) =>
  thrown instanceof connection.oauth.OperationProcessingError && thrown.code === connection.oauth.KEY_SELECTION

export async function checkSignature(connection: Connection, response: Response): Promise<void> {
  const { oauth, server } = connection
  await checking('the signature', async () => {
    try {
      await oauth.validateApplicationLevelSignature(server, response, through(connection))
    } catch (thrown) {
      if (!lacksKey(connection, thrown)) throw thrown
      // A copy of `server` forces oauth4webapi to fetch keys again.
      await oauth.validateApplicationLevelSignature({ ...server }, response, through(connection))
    }
  })
}

/** `start`: start of the request, for a conservative expiry. Milliseconds since the epoch. */
export function tokensOf(
  { settings }: Connection,
  answer: TokenEndpointResponse,
  { start, last, wanted }: { start: number; last?: ProviderTokens; wanted: readonly string[] },
): ProviderTokens {
  const { access_token, expires_in, refresh_token = last?.refreshToken, id_token = last?.idToken, scope } = answer
  return {
    accessToken: access_token,
    ...(expires_in !== undefined && { expiresAt: start + expires_in * 1_000 }),
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(id_token !== undefined && { idToken: id_token }),
    // An absent `scope` means that all requested scopes are granted (RFC 6749, section 5.1).
    scopes: scope === undefined ? wanted : scope.split(settings.kind.separator).filter(one => one !== ''),
  }
}

interface Refreshed {
  readonly tokens: ProviderTokens
  /** The claims after a check of signature, issuer, audience and time, but not of the subject. */
  readonly idToken: Claims | undefined
}

const NO_REFRESH_TOKEN = {
  fix: 'add offline_access to `scopes`, and allow refresh tokens for the application at the provider',
}

/** False if keys are unavailable: the new refresh token must not be lost. */
async function isSigned(connection: Connection, response: Response): Promise<boolean> {
  try {
    await checkSignature(connection, response)
    return true
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.fault !== 'unavailable') throw error
    connection.log.warn({ code: 'MH2147', err: error }, 'cannot fetch the keys of the provider: an ID token is ignored')
    return false
  }
}

export async function refresh(connection: Connection, last: ProviderTokens, scope?: string): Promise<Refreshed> {
  const { oauth, server, client, authenticate } = connection
  const { refreshToken } = last
  if (refreshToken === undefined) {
    throw new UpstreamError('misconfigured', 'the provider issued no refresh token', NO_REFRESH_TOKEN)
  }
  const start = Date.now()
  const sent = await checking(`a refresh at ${shownUrl(server.token_endpoint)}`, () =>
    oauth.refreshTokenGrantRequest(server, client, authenticate, refreshToken, {
      ...through(connection),
      ...(scope !== undefined && { additionalParameters: { scope } }),
    }),
  )
  const about = { grant: 'refresh_token', secrets: [refreshToken, last.accessToken], forScopes: scope !== undefined }
  const response = await settleAnswer(connection, sent, about)
  return checking('the refreshed tokens', async () => {
    const answer = await oauth.processRefreshTokenResponse(server, client, response)
    const claims = oauth.getValidatedIdTokenClaims(answer)
    const idToken = claims && (await isSigned(connection, response)) ? claims : undefined
    const wanted = scope?.split(' ') ?? last.scopes
    return { tokens: tokensOf(connection, answer, { start, last, wanted }), idToken }
  })
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

async function exchangeToken(connection: Connection, last: ProviderTokens, scope: string): Promise<ProviderTokens> {
  const { oauth, server, client, authenticate } = connection
  const start = Date.now()
  const options = through(connection)
  const types = { subject_token_type: ACCESS_TOKEN, requested_token_type: ACCESS_TOKEN }
  const parameters = { subject_token: last.accessToken, ...types, scope }
  const sent = await checking('an exchange', () =>
    oauth.genericTokenEndpointRequest(server, client, authenticate, TOKEN_EXCHANGE, parameters, options),
  )
  const about = { grant: TOKEN_EXCHANGE, secrets: [last.accessToken], forScopes: true }
  const response = await settleAnswer(connection, sent, about)
  const answer = await checking('the exchanged token', () =>
    oauth.processGenericTokenEndpointResponse(server, client, response),
  )
  // This refresh token is limited to its scopes; the login keeps its own.
  const { refresh_token: _, ...access } = answer
  return tokensOf(connection, access, { start, last, wanted: scope.split(' ') })
}

export async function exchange(connection: Connection, last: ProviderTokens, scope: string): Promise<ProviderTokens> {
  const { settings } = connection
  if (settings.exchange === 'refresh') return (await refresh(connection, last, scope)).tokens
  if (settings.exchange === 'token-exchange') return exchangeToken(connection, last, scope)
  throw new UpstreamError('misconfigured', `${settings.label} issues no tokens with other scopes`, {
    fix: 'request all scopes at sign-in, in provider.scopes',
  })
}

const ABOUT_THE_ANSWER = new Set(['iss', 'aud', 'exp', 'iat', 'nbf', 'jti'])

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

export async function askUserinfo(
  connection: Connection,
  accessToken: string,
  subject: string | undefined,
): Promise<Claims> {
  const { oauth, server, client, settings } = connection
  const url = server.userinfo_endpoint
  if (url === undefined) {
    throw new UpstreamError('misconfigured', 'the provider has no userinfo endpoint and issued no refresh token', {
      fix: 'add offline_access to `scopes` for a refresh token',
    })
  }
  const response = await askAs(connection, url, accessToken)
  if (!settings.kind.openid) {
    const body = await jsonOf(response)
    if (!isObject(body)) throw new UpstreamError('untrusted', `${shownUrl(url)} returned no JSON object`)
    return body
  }
  return checking('userinfo', async () => {
    const claims = await oauth.processUserInfoResponse(server, client, subject ?? '', response)
    if (response.headers.get('content-type')?.startsWith('application/jwt')) await checkSignature(connection, response)
    return Object.fromEntries(Object.entries(claims).filter(([name]) => !ABOUT_THE_ANSWER.has(name)))
  })
}
