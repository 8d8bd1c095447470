// What a token endpoint answered: tokens, or an error with a code that tells what to do (RFC 6749 §5).
//
// oauth4webapi's response readers are not used: they take 200 alone, stumble over null members and over ID tokens that
// nobody asked for, and a WWW-Authenticate header hides `invalid_client` from them.

import type { ClientContext } from './context.ts'
import { describeAnswer } from './describe-answer.ts'
import { AuthError } from './errors.ts'
import type { HttpAnswer } from './http.ts'
import { isObject, isVisible, readSeconds, readText, saidIn, showText } from './json.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import type { Secrets } from './secrets.ts'

/** Tokens as granted. An ID token is never among them. */
export interface TokenAnswer {
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  /** Seconds; undefined: the server does not say. */
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  /** Undefined: as requested (RFC 6749 §5.1). */
  readonly scope: string | undefined
}

export interface TokenAbout {
  readonly server: ServerInfo
  readonly client: Pick<ClientIdentity, 'source' | 'clientId'>
  readonly grantType: string
}

/** Codes of RFC 6749, 8628, 8693, 8707 and 9449: they mean what they say, whatever the HTTP status. */
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

const isTransientStatus = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** The server's error code; undefined where it gave none, or one that says no more than its status. */
export function errorCodeOf({ status, json }: HttpAnswer): string | undefined {
  const error = isObject(json) ? readText(json['error']) : undefined
  if (error === undefined || TRANSIENT_CODES.has(error)) return undefined
  if (KNOWN_CODES.has(error)) return error
  // Gateways write texts such as "Forbidden" or "Too Many Requests" where authorization servers write codes.
  return /^[a-z][a-z0-9_.-]*$/.test(error) && !isTransientStatus(status) ? error : undefined
}

const isAccepted = ({ status }: HttpAnswer): boolean => status === 200 || status === 201

const FIXES: Readonly<Record<string, string>> = {
  invalid_grant: 'log in again: the code, token or assertion is no longer valid, or was for another client',
  invalid_scope: 'ask for other scopes with `scopes` or `scopeSelector`',
  invalid_target: 'the server does not know this resource: set resourceIndicator to "omit" or to what it wants',
  unsupported_grant_type: 'use another `grant`: this server does not offer it',
  invalid_dpop_proof: 'check the clock of this machine, or set dpop: false',
  access_denied: 'log in again and agree, or ask for less with `scopes`',
  expired_token: 'start the login again',
  invalid_request: 'see what the authorization server says',
}

function fixFor(code: string, { client }: TokenAbout): string {
  if (code !== 'invalid_client' && code !== 'unauthorized_client') {
    return FIXES[code] ?? 'see what the authorization server says'
  }
  if (client.source === 'registered') return 'it has to be registered again: the server no longer knows it'
  if (client.source === 'metadata-document') return 'check the client metadata document at the client id'
  return code === 'invalid_client'
    ? 'check clientId, clientSecret (or privateKey) and tokenEndpointAuthMethod'
    : 'have this client allowed to use the grant at the authorization server'
}

/** What can be shown of an answer that is no token: how it looks, and what it says in the two members for that. */
function describeRefusal(secrets: Secrets, answer: HttpAnswer): string {
  const said = saidIn(answer)
  return said === undefined ? describeAnswer(answer) : `${describeAnswer(answer)}: ${showText(secrets, said)}`
}

/** Why a server was not understood or could not answer: the same request may succeed later. */
function unavailable(ctx: ClientContext, { server, grantType }: TokenAbout, answer: HttpAnswer): AuthError {
  const said = describeRefusal(ctx.secrets, answer)
  const granted = answer.status >= 200 && answer.status < 300
  const what = granted ? 'answered a token request without tokens' : 'could not answer a token request'
  const fix =
    grantType === 'authorization_code'
      ? 'log in again: the code of this login may be used up, and is not shown twice'
      : 'try again later; what was kept is kept'
  return new AuthError(`${server.issuer} ${what} (${grantType}): ${said}`, {
    code: 'temporarily_unavailable',
    fix,
    retryable: true,
  })
}

/** The error of an answer: the server's code where it gave one, else `temporarily_unavailable`, which may pass. */
function errorOf(ctx: ClientContext, about: TokenAbout, answer: HttpAnswer): AuthError {
  const code = errorCodeOf(answer)
  if (code === undefined) return unavailable(ctx, about, answer)
  const said = showText(ctx.secrets, saidIn(answer) ?? code)
  return new AuthError(`${about.server.issuer} refused a token (${about.grantType}): ${said}`, {
    code: showText(ctx.secrets, code),
    fix: fixFor(code, about),
  })
}

/**
 * The JSON of an answer that grants something. Throws its error otherwise; also for a 200 that carries an error, as some
 * servers send it.
 */
export function readSuccess(ctx: ClientContext, about: TokenAbout, answer: HttpAnswer): Record<string, unknown> {
  const { json } = answer
  if (!isAccepted(answer) || !isObject(json) || readText(json['error']) !== undefined) throw errorOf(ctx, about, answer)
  return json
}

const malformed = ({ server }: TokenAbout, what: string) =>
  new AuthError(`the token answer of ${server.issuer} ${what}`, {
    code: 'malformed_response',
    fix: 'its operator must send access_token and token_type (RFC 6749 §5.1)',
  })

function readTokenType(about: TokenAbout, value: unknown): TokenAnswer['tokenType'] {
  const type = readText(value)?.toLowerCase()
  if (type === undefined) throw malformed(about, 'has no token_type')
  if (type !== 'bearer' && type !== 'dpop') throw malformed(about, 'has a token_type that is neither Bearer nor DPoP')
  return type === 'dpop' ? 'DPoP' : 'Bearer'
}

/** The tokens of an answer's JSON. Throws an AuthError `malformed_response` where there are none that can be used. */
export function readTokens(about: TokenAbout, json: Record<string, unknown>): TokenAnswer {
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
    // Scopes are shown to people; a token in their place is none.
    scope: isToken ? undefined : scope,
  }
}
