// Reads what came back through the browser (RFC 6749 §4.1.2, RFC 9207). Anybody can send it, so nothing of it is used
// or shown before its state and its issuer are those of the request.
//
// oauth4webapi's check is not used: it looks at the issuer before the state, lets an empty `iss` pass, and its errors
// carry the response, code and all.
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import type { FlowRecord } from './flow-store.ts'
import { showText } from './json.ts'
import type { AuthorizationResponse } from './options.ts'

/** What a caller may hand over: the callback URL, its parameters, its parts, or a bare code. */
export type GivenResponse = string | URL | URLSearchParams | AuthorizationResponse

export interface AuthorizationCode {
  readonly code: string
  /** False for a bare code, whose state and issuer nobody could check. */
  readonly checked: boolean
}

type Parameter = 'state' | 'iss' | 'error' | 'error_description' | 'code' | 'response'

const PARAMETERS: readonly Parameter[] = ['state', 'iss', 'error', 'error_description', 'code', 'response']

type Parameters = Readonly<Partial<Record<Parameter, string>>>

const malformed = (what: string, fix: string) => new AuthError(what, { code: 'malformed_response', fix })

const AGAIN = 'start the login again'

/** The parameters, each once (RFC 6749 §3.1). */
function readQuery(query: URLSearchParams): Parameters {
  const found: Partial<Record<Parameter, string>> = {}
  for (const name of PARAMETERS) {
    const [value, ...more] = query.getAll(name)
    if (more.length > 0) throw malformed(`the authorization response has ${name} more than once`, AGAIN)
    if (value !== undefined) found[name] = value
  }
  return found
}

function readParts({ code, state, iss, error, errorDescription }: AuthorizationResponse): Parameters {
  const parts = { code, state, iss, error, error_description: errorDescription }
  // Callers in JavaScript say null where they mean absent.
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => typeof value === 'string'))
}

/** A string that is an absolute URL is the whole response; any other is a bare code. */
function readGiven(response: GivenResponse): Parameters | string {
  if (typeof response === 'string') {
    return URL.canParse(response) ? readQuery(new URL(response).searchParams) : response
  }
  if (response instanceof URLSearchParams) return readQuery(response)
  return response instanceof URL ? readQuery(response.searchParams) : readParts(response)
}

function checkState(state: string | undefined, record: FlowRecord): void {
  if (state === record.state) return
  const what = state === undefined ? 'has no state' : "has another login's state"
  throw new AuthError(`the authorization response ${what}`, {
    code: 'state_mismatch',
    fix: `${AGAIN}; if that does not help, something else answers at ${record.redirectUri}`,
  })
}

/** Compared as they stand: two spellings of one issuer are two issuers (RFC 9207 §2.4). */
function checkIssuer(iss: string | undefined, { issuer, issParameterSupported }: FlowRecord): void {
  if (iss === issuer || (iss === undefined && !issParameterSupported)) return
  const what = iss === undefined ? 'does not say which issuer it is from' : 'is from another issuer'
  throw new AuthError(`the authorization response ${what}; the login was begun with ${issuer}`, {
    code: 'issuer_mismatch',
    fix: `${AGAIN}; if it happens again, do not trust this server before its operator explains it`,
  })
}

const FIXES: Readonly<Record<string, string>> = {
  access_denied: 'log in again and agree, or ask for less with `scopes`',
  invalid_scope: 'ask for other scopes with `scopes` or `scopeSelector`',
  invalid_target: 'the server does not know this resource: see `resourceIndicator`',
  unauthorized_client: 'the client may not use this flow: register it for authorization_code',
  server_error: 'try again later',
  temporarily_unavailable: 'try again later',
}

function refusal(ctx: ClientContext, error: string, description: string | undefined): AuthError {
  const said = showText(ctx.secrets, description ? `${error}: ${description}` : error)
  return new AuthError(`the authorization server answered ${said}`, {
    code: showText(ctx.secrets, error),
    fix: FIXES[error] ?? 'see what the authorization server says, then log in again',
    retryable: error === 'server_error' || error === 'temporarily_unavailable',
  })
}

function readBareCode(ctx: ClientContext, code: string): AuthorizationCode {
  if (code === '') throw malformed('the authorization response is empty', 'give the whole callback URL')
  ctx.secrets.add(code)
  if (ctx.options.strictResponse) {
    throw malformed('a bare code came back, whose state and issuer cannot be checked', 'give the whole callback URL')
  }
  ctx.emit('unchecked-response', {})
  return { code, checked: false }
}

/**
 * The code of a response, once its state, its issuer and its error were looked at, in this order. Throws an AuthError
 * `malformed_response`, `state_mismatch` or `issuer_mismatch`, or with the server's own code, such as `access_denied`.
 */
export function readAuthorizationResponse(
  ctx: ClientContext,
  record: FlowRecord,
  response: GivenResponse,
): AuthorizationCode {
  const given = readGiven(response)
  if (typeof given === 'string') return readBareCode(ctx, given)
  const { state, iss, error, error_description: description, code } = given
  ctx.secrets.add(code)
  checkState(state, record)
  checkIssuer(iss, record)
  if (given.response !== undefined) {
    throw malformed('the authorization response is a signed one (JARM)', 'set the client to plain query responses')
  }
  if (error) throw refusal(ctx, error, description)
  if (!code) throw malformed('the authorization response has neither code nor error', AGAIN)
  return { code, checked: true }
}
