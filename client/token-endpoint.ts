// Sends token and revocation requests (RFC 6749 §5, RFC 7009, RFC 9449). oauth4webapi does not read the responses: it
// requires status 200, and rejects null members and unrequested ID tokens.

import { chooseClientAuth } from './client-auth.ts'
import type { ClientContext } from './context.ts'
import type { DPoPSigner } from './dpop.ts'
import { AuthError, type Fix } from './errors.ts'
import { ConnectionError, describeResponse, type HttpResult, sleep } from './http.ts'
import type { ClientIdentity, ServerInfo } from './stores.ts'
import { isObject, isVisible, readErrorText, readSeconds, readText, type Secrets, showText } from './text.ts'

export interface TokenResult {
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  /** Granted scopes. Undefined: as requested (RFC 6749 §5.1). */
  readonly scope: string | undefined
}

interface TokenTarget {
  readonly server: ServerInfo
  readonly client: Pick<ClientIdentity, 'source' | 'clientId'>
  readonly grantType: string
}

/** Codes of RFC 6749, 8628, 8693, 8707 and 9449, valid with any HTTP status. */
const KNOWN_CODES = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'invalid_dpop_proof',
  'use_dpop_nonce',
  'authorization_pending',
  'slow_down',
  'expired_token',
  'access_denied',
  'interaction_required',
  'unsupported_token_type',
])

const TRANSIENT_CODES = new Set(['server_error', 'temporarily_unavailable'])

function readErrorCode({ status, json }: HttpResult): string | undefined {
  const error = isObject(json) ? readText(json['error']) : undefined
  if (error === undefined || TRANSIENT_CODES.has(error)) return undefined
  if (KNOWN_CODES.has(error)) return error
  // Gateways send text such as "Forbidden" instead of codes.
  const isTransient = status === 408 || status === 429 || status >= 500
  return /^[a-z][a-z0-9_.-]*$/.test(error) && !isTransient ? error : undefined
}

/** Fixes by error code (RFC 6749 §5.2, RFC 8707 §2, RFC 9449 §5). */
export const TOKEN_FIXES: Readonly<Record<string, Fix>> = {
  invalid_grant: 'log in again: the code, token or assertion is no longer valid, or was for another client',
  invalid_scope: 'request other scopes with `scopes` or `scopeSelector`',
  invalid_target: {
    text: 'the server does not accept this resource: set the expected one, or',
    option: 'resourceIndicator',
    value: 'omit',
  },
  unsupported_grant_type: 'use another `grant`: this server does not support it',
  invalid_dpop_proof: { text: 'check the clock of this machine, or', option: 'dpop', value: false },
  access_denied: 'log in again and allow access, or request fewer scopes with `scopes`',
  expired_token: 'start the login again',
}

function fixFor(code: string, { client }: TokenTarget): Fix {
  if (code !== 'invalid_client' && code !== 'unauthorized_client') {
    return TOKEN_FIXES[code] ?? 'resolve the error of the authorization server'
  }
  if (client.source === 'registered') return 'register the client again: the server no longer accepts it'
  if (client.source === 'metadata-document') return 'check the client metadata document at the client id'
  return code === 'invalid_client'
    ? 'check clientId, clientSecret (or privateKey) and tokenEndpointAuthMethod'
    : 'allow this client to use the grant at the authorization server'
}

function describeError(secrets: Secrets, response: HttpResult): string {
  const text = readErrorText(response)
  return text === undefined ? describeResponse(response) : `${describeResponse(response)}: ${showText(secrets, text)}`
}

function unavailableError(ctx: ClientContext, { server, grantType }: TokenTarget, response: HttpResult): AuthError {
  const text = describeError(ctx.secrets, response)
  const what = isSuccess(response.status)
    ? 'responded to a token request without tokens'
    : 'failed to respond to a token request'
  const fix =
    grantType === 'authorization_code'
      ? 'log in again: the code of this login is possibly used, and is not sent twice'
      : 'try again later; the stored login is unchanged'
  return new AuthError(`${server.issuer} ${what} (${grantType}): ${text}`, {
    code: 'temporarily_unavailable',
    fix,
    retryable: true,
  })
}

function toError(ctx: ClientContext, about: TokenTarget, response: HttpResult): AuthError {
  const code = readErrorCode(response)
  if (code === undefined) return unavailableError(ctx, about, response)
  const text = showText(ctx.secrets, readErrorText(response) ?? code)
  return new AuthError(`${about.server.issuer} refused a token (${about.grantType}): ${text}`, {
    code: showText(ctx.secrets, code),
    fix: fixFor(code, about),
  })
}

/** Returns the JSON of a success response. Also throws for a 200 with an error. */
export function readSuccess(ctx: ClientContext, about: TokenTarget, response: HttpResult): Record<string, unknown> {
  const { status, json } = response
  const isAccepted = status === 200 || status === 201
  if (!isAccepted || !isObject(json) || readText(json['error']) !== undefined) throw toError(ctx, about, response)
  return json
}

const malformed = ({ server }: TokenTarget, what: string) =>
  new AuthError(`the token response of ${server.issuer} ${what}`, {
    code: 'malformed_response',
    fix: 'its operator must send access_token and token_type (RFC 6749 §5.1)',
  })

function readTokenType(about: TokenTarget, value: unknown): TokenResult['tokenType'] {
  const type = readText(value)?.toLowerCase()
  if (type === undefined) throw malformed(about, 'has no token_type')
  if (type !== 'bearer' && type !== 'dpop') throw malformed(about, 'has a token_type that is neither Bearer nor DPoP')
  return type === 'dpop' ? 'DPoP' : 'Bearer'
}

/** Reads the tokens. Throws an AuthError `malformed_response` without a usable token. */
export function readTokens(about: TokenTarget, json: Record<string, unknown>): TokenResult {
  const accessToken = readText(json['access_token'])
  if (accessToken === undefined) throw malformed(about, 'has no access_token')
  const refreshToken = readText(json['refresh_token'])
  const scope = readText(json['scope'])
  const wrong = Object.entries({ access_token: accessToken, refresh_token: refreshToken, scope }).find(
    ([, text]) => text !== undefined && !isVisible(text),
  )
  if (wrong) throw malformed(about, `has characters in ${wrong[0]} that are not visible ASCII (RFC 6749, appendix A)`)
  const isToken = scope?.includes(accessToken) || (refreshToken !== undefined && scope?.includes(refreshToken))
  return {
    accessToken,
    tokenType: readTokenType(about, json['token_type']),
    expiresIn: readSeconds(json['expires_in']),
    refreshToken,
    // Scopes are displayed, so a token in the place of a scope is dropped.
    scope: isToken ? undefined : scope,
  }
}

type GrantParameters = Readonly<Record<string, string | undefined>>

export interface TokenRequest {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  readonly grantType: string
  readonly parameters: GrantParameters | (() => Promise<GrantParameters>)
  readonly dpop?: DPoPSigner | undefined
  /** True: no retries. Default: two retries, for single-use credentials only if the server did not process them. */
  readonly sendOnce?: boolean | undefined
}

const RETRY_DELAYS = [200, 800]

const MAX_RETRY_AFTER = 5_000

const SINGLE_USE = new Set([
  'authorization_code',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
  'urn:ietf:params:oauth:grant-type:device_code',
])

const SECRET_PARAMETERS = [
  'code',
  'code_verifier',
  'refresh_token',
  'assertion',
  'subject_token',
  'device_code',
  'token',
]

function endpointOf({ issuer, tokenEndpoint }: ServerInfo): string {
  if (tokenEndpoint !== undefined) return tokenEndpoint
  throw new AuthError(`${issuer} has no token endpoint`, {
    code: 'invalid_server_metadata',
    fix: 'choose another authorization server (authServerSelector), or ask its operator',
  })
}

interface Form extends Pick<TokenRequest, 'server' | 'client' | 'dpop'> {
  readonly parameters: GrantParameters
  readonly endpoint: string
  readonly label: string
}

export async function sendForm(ctx: ClientContext, form: Form, signal: AbortSignal): Promise<HttpResult> {
  const { server, client, parameters, dpop, endpoint, label } = form
  for (const name of SECRET_PARAMETERS) ctx.secrets.add(parameters[name])
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) body.set(name, value)
  const headers = new Headers()
  await chooseClientAuth(ctx, server, client).authenticate({ server, client, body, headers })
  if (dpop) headers.set('dpop', await dpop.proof('POST', endpoint))
  const response = await ctx.http.post(endpoint, { label, body, headers: Object.fromEntries(headers), signal })
  const nonce = response.headers.get('dpop-nonce')
  if (dpop && nonce) dpop.rememberNonce(new URL(endpoint).origin, nonce)
  return response
}

/** Repeats once with a new DPoP nonce (RFC 9449 §8). */
async function sendRequest(ctx: ClientContext, request: TokenRequest, signal: AbortSignal): Promise<HttpResult> {
  const { server, client, dpop, grantType, parameters } = request
  const endpoint = endpointOf(server)
  const send = async () => {
    const values = typeof parameters === 'function' ? await parameters() : parameters
    const form = { server, client, dpop, parameters: { grant_type: grantType, ...values }, endpoint }
    return sendForm(ctx, { ...form, label: 'The token endpoint' }, signal)
  }
  const response = await send()
  const needsNonce = readErrorCode(response) === 'use_dpop_nonce' && response.headers.has('dpop-nonce')
  return dpop && needsNonce && !isSuccess(response.status) ? send() : response
}

function retryDelay(attempt: number, response: HttpResult | undefined): number {
  const seconds = Number(response?.headers.get('retry-after') ?? Number.NaN)
  const requested = Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0) * 1000, MAX_RETRY_AFTER) : 0
  return Math.max(requested, RETRY_DELAYS[attempt] ?? 0)
}

/** A 4xx, a 503 with Retry-After, or `temporarily_unavailable`: the server did not process the request. */
function isUnprocessed(thrown: AuthError, response: HttpResult | undefined): boolean {
  if (!response) return thrown instanceof ConnectionError && !thrown.bodySent
  const { status, headers, json } = response
  if (status < 400) return false
  if (status < 500 || (isObject(json) && json['error'] === 'temporarily_unavailable')) return true
  return status === 503 && headers.has('retry-after')
}

const canRetry = ({ sendOnce, grantType }: TokenRequest, error: AuthError, response: HttpResult | undefined): boolean =>
  !sendOnce && error.retryable && (!SINGLE_USE.has(grantType) || isUnprocessed(error, response))

const isSuccess = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 300

/** Failed requests with a success status: their tokens are lost. */
const lostGrants = new WeakSet<object>()

export const mayHaveGranted = (thrown: unknown): boolean =>
  (typeof thrown === 'object' && thrown !== null && lostGrants.has(thrown)) ||
  (thrown instanceof ConnectionError && isSuccess(thrown.status))

/** Throws an AuthError with the server's code (permanent), or `temporarily_unavailable` (retryable). */
export async function requestGrant(
  ctx: ClientContext,
  request: TokenRequest,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  for (let attempt = 0; ; attempt++) {
    let response: HttpResult | undefined
    try {
      response = await sendRequest(ctx, request, signal)
      return readSuccess(ctx, request, response)
    } catch (thrown) {
      const last = attempt === RETRY_DELAYS.length
      if (AuthError.is(thrown) && isSuccess(response?.status)) lostGrants.add(thrown)
      if (last || !AuthError.is(thrown) || !canRetry(request, thrown, response)) throw thrown
      await sleep(retryDelay(attempt, response), signal)
    }
  }
}

function checkBinding({ options }: ClientContext, { server, dpop }: TokenRequest, { tokenType }: TokenResult): void {
  if (dpop && tokenType === 'Bearer' && options.dpop === true) {
    throw new AuthError(`${server.issuer} issued a bearer token instead of the requested DPoP-bound token`, {
      code: 'unsupported_token_type',
      fix: { text: 'enable DPoP at the server; to accept bearer tokens too,', option: 'dpop', value: 'auto' },
    })
  }
  if (!dpop && tokenType === 'DPoP') {
    throw new AuthError(`${server.issuer} issued a DPoP-bound token that was not requested`, {
      code: 'unsupported_token_type',
      fix: { text: 'to accept such tokens,', option: 'dpop', value: true },
    })
  }
}

export async function requestToken(
  ctx: ClientContext,
  request: TokenRequest,
  signal: AbortSignal,
): Promise<TokenResult> {
  const json = await requestGrant(ctx, request, signal)
  try {
    const tokens = readTokens(request, json)
    checkBinding(ctx, request, tokens)
    return tokens
  } catch (thrown) {
    lostGrants.add(thrown as AuthError)
    throw thrown
  }
}

/** Revokes a token (RFC 7009). Throws an AuthError if the server rejects the request; the token can still be valid. */
export async function revokeToken(
  ctx: ClientContext,
  server: ServerInfo,
  client: ClientIdentity,
  token: string,
  hint: 'access_token' | 'refresh_token',
  signal: AbortSignal,
): Promise<void> {
  const { revocationEndpoint: endpoint } = server
  if (endpoint === undefined) return
  const parameters = { token, token_type_hint: hint }
  const form = { server, client, parameters, endpoint, label: 'The revocation endpoint' }
  const response = await sendForm(ctx, form, signal)
  if (isSuccess(response.status)) return
  const code = readErrorCode(response)
  throw new AuthError(
    `${server.issuer} did not revoke the ${hint}: HTTP ${response.status}, ${code ?? 'no reason given'}`,
    {
      code: code ?? 'temporarily_unavailable',
      fix: 'try again later, or end the session at the authorization server',
      retryable: code === undefined,
    },
  )
}
