// The authorization code flow (RFC 6749 §4.1.2, RFC 9207). Responses are not read with oauth4webapi: it checks the
// issuer before the state, accepts an empty `iss`, and puts the code into errors.

import { calculatePKCECodeChallenge, generateRandomCodeVerifier, generateRandomState } from 'oauth4webapi'
import type { ClientContext } from './context.ts'
import { AuthError, callOption, type Fix, InteractionRequiredError } from './errors.ts'
import { withAbort } from './http.ts'
import type { AuthorizationResponse } from './options.ts'
import type { FlowRecord, ServerInfo } from './stores.ts'
import { showText } from './text.ts'
import { TOKEN_FIXES } from './token-endpoint.ts'

type RawResponse = string | URL | URLSearchParams | AuthorizationResponse

type Parameter = 'state' | 'iss' | 'error' | 'error_description' | 'code' | 'response'

const PARAMETERS: readonly Parameter[] = ['state', 'iss', 'error', 'error_description', 'code', 'response']

type Parameters = Readonly<Partial<Record<Parameter, string>>>

const malformed = (what: string, fix: string) => new AuthError(what, { code: 'malformed_response', fix })

const LOGIN_AGAIN = 'start the login again'

/** Rejects repeated parameters (RFC 6749 §3.1). */
function readQuery(query: URLSearchParams): Parameters {
  const found: Partial<Record<Parameter, string>> = {}
  for (const name of PARAMETERS) {
    const [value, ...more] = query.getAll(name)
    if (more.length > 0) throw malformed(`the authorization response has ${name} more than once`, LOGIN_AGAIN)
    if (value !== undefined) found[name] = value
  }
  return found
}

function readFields({ code, state, iss, error, errorDescription }: AuthorizationResponse): Parameters {
  const fields = { code, state, iss, error, error_description: errorDescription }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => typeof value === 'string'))
}

function readResponse(response: RawResponse): Parameters | string {
  if (typeof response === 'string') {
    return URL.canParse(response) ? readQuery(new URL(response).searchParams) : response
  }
  if (response instanceof URLSearchParams) return readQuery(response)
  return response instanceof URL ? readQuery(response.searchParams) : readFields(response)
}

function checkState(state: string | undefined, record: FlowRecord): void {
  if (state === record.state) return
  const what = state === undefined ? 'has no state' : "has another login's state"
  throw new AuthError(`the authorization response ${what}`, {
    code: 'state_mismatch',
    fix: `${LOGIN_AGAIN}; if that fails again, another program receives the responses at ${record.redirectUri}`,
  })
}

/** Compares issuers literally (RFC 9207 §2.4). */
function checkIssuer(iss: string | undefined, { issuer, issParameterSupported }: FlowRecord): void {
  if (iss === issuer || (iss === undefined && !issParameterSupported)) return
  const what = iss === undefined ? 'does not name its issuer' : 'is from another issuer'
  throw new AuthError(`the authorization response ${what}; the login was started with ${issuer}`, {
    code: 'issuer_mismatch',
    fix: `${LOGIN_AGAIN}; if it happens again, do not trust this server before its operator explains it`,
  })
}

const FIXES: Readonly<Record<string, Fix>> = {
  ...TOKEN_FIXES,
  unauthorized_client: 'the client is not allowed to use this flow: register it for authorization_code',
  server_error: 'try again later',
  temporarily_unavailable: 'try again later',
}

function refusalError(ctx: ClientContext, error: string, description: string | undefined): AuthError {
  const text = showText(ctx.secrets, description ? `${error}: ${description}` : error)
  return new AuthError(`the authorization server refused the login: ${text}`, {
    code: showText(ctx.secrets, error),
    fix: FIXES[error] ?? 'resolve the error of the authorization server, then log in again',
    retryable: error === 'server_error' || error === 'temporarily_unavailable',
  })
}

function readBareCode(ctx: ClientContext, code: string): string {
  if (code === '') throw malformed('the authorization response is empty', 'pass the complete callback URL')
  ctx.secrets.add(code)
  if (ctx.options.strictResponse) {
    throw malformed('the response has no state and issuer to verify', 'pass the complete callback URL')
  }
  ctx.emit('unchecked-response', {})
  return code
}

/**
 * Returns the authorization code. Throws an AuthError `malformed_response`, `state_mismatch`, `issuer_mismatch` or the
 * server's code.
 */
export function readAuthorizationResponse(ctx: ClientContext, record: FlowRecord, response: RawResponse): string {
  const parameters = readResponse(response)
  if (typeof parameters === 'string') return readBareCode(ctx, parameters)
  const { state, iss, error, error_description: description, code } = parameters
  ctx.secrets.add(code)
  checkState(state, record)
  checkIssuer(iss, record)
  if (parameters.response !== undefined) {
    throw malformed('a signed authorization response (JARM) is not supported', 'use plain query responses')
  }
  if (error) throw refusalError(ctx, error, description)
  if (!code) throw malformed('the authorization response contains neither code nor error', LOGIN_AGAIN)
  return code
}

type AuthorizationTarget = Pick<
  FlowRecord,
  'server' | 'client' | 'resource' | 'scope' | 'requestedScope' | 'resourceMetadataUrl' | 'dpop' | 'key'
>

export interface Flow {
  readonly url: URL
  readonly record: FlowRecord
}

function checkEndpoint({ http }: ClientContext, { issuer, authorizationEndpoint }: ServerInfo): URL {
  if (authorizationEndpoint === undefined) {
    throw new AuthError(`${issuer} has no authorization endpoint`, {
      code: 'invalid_server_metadata',
      fix: 'choose another authorization server (authServerSelector) or another grant',
    })
  }
  return http.check(authorizationEndpoint, 'The authorization endpoint')
}

/** OpenID Connect requires `prompt=consent` for offline access (OIDC Core §11). */
function promptFor({ options }: ClientContext, { server, scope }: AuthorizationTarget): string | undefined {
  if (options.additionalAuthorizationParameters?.['prompt'] !== undefined) return undefined
  return server.oidc && scope?.split(' ').includes('offline_access') ? 'consent' : undefined
}

export async function startAuthorization(ctx: ClientContext, about: AuthorizationTarget): Promise<Flow> {
  const { server, client, resource, scope } = about
  const { redirectUri, additionalAuthorizationParameters = {} } = ctx.options
  if (redirectUri === undefined) {
    throw new AuthError('a login needs redirectUri', {
      code: 'invalid_options',
      fix: 'set it to a URL of this client, such as http://127.0.0.1:8765/callback',
    })
  }
  const url = checkEndpoint(ctx, server)
  const state = generateRandomState()
  const codeVerifier = generateRandomCodeVerifier()
  ctx.secrets.add(codeVerifier)
  const parameters = {
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: redirectUri,
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
    state,
    resource,
    scope,
    prompt: promptFor(ctx, about),
    ...additionalAuthorizationParameters,
  }
  // Keeps the endpoint's own query (RFC 6749 §3.1).
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
  const { issuer, issParameterSupported } = server
  const generated = { state, issuer, issParameterSupported, codeVerifier, redirectUri, createdAt: ctx.now() }
  return { url, record: { v: 1, ...about, ...generated } }
}

export async function deferAuthorization(ctx: ClientContext, { url, record }: Flow): Promise<never> {
  const about = { code: 'cache_failed', fix: 'see `cause`: flowStore.save failed' }
  await callOption('cannot store the pending login', about, () => ctx.options.flowStore.save(record.state, record))
  throw new InteractionRequiredError('a login by a user is required', {
    authorizationUrl: url.href,
    state: record.state,
    fix: 'send the user to authorizationUrl, then pass the callback URL to session.completeAuthorization',
  })
}

function findDelegate({ options }: ClientContext): ((flow: Flow, signal: AbortSignal) => Promise<unknown>) | undefined {
  const { authorizationRedirectDelegate, authorizationCallbackHandler } = options
  if (authorizationRedirectDelegate) {
    return ({ url, record }, signal) => authorizationRedirectDelegate(url, record.redirectUri, { signal })
  }
  if (!authorizationCallbackHandler) return undefined
  return ({ url, record: { redirectUri } }, signal) =>
    authorizationCallbackHandler({ authorizationUri: url, redirectUri, signal })
}

const TIMEOUT_FIX = 'try again, or set a longer loginTimeoutMs'
const FORGET_FIX = 'if the authorization server showed an error about the client, drop its registration with'

async function awaitResponse(
  ctx: ClientContext,
  { client }: FlowRecord,
  work: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<RawResponse | null | undefined> {
  const { loginTimeoutMs, serverUrl } = ctx.options
  const timeout = new AbortController()
  const expire = () =>
    timeout.abort(
      new AuthError(`the login was not completed within ${loginTimeoutMs / 1000} s`, {
        code: 'login_timeout',
        fix:
          client.source === 'registered'
            ? { text: `${TIMEOUT_FIX}; ${FORGET_FIX}`, method: 'forgetClient', url: serverUrl }
            : TIMEOUT_FIX,
      }),
    )
  const timer = setTimeout(expire, loginTimeoutMs)
  try {
    const combined = AbortSignal.any([signal, timeout.signal])
    const about = { code: 'login_failed', fix: 'see `cause`: the authorization delegate failed' }
    const pending = callOption('cannot show the login to the user', about, () => work(combined))
    const cancelledError = () => new AuthError('the login was cancelled', { code: 'aborted' })
    return (await withAbort(pending, combined).catch(thrown => {
      throw combined.aborted && !AuthError.is(thrown) ? cancelledError() : thrown
    })) as RawResponse | null | undefined
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Shows the login and returns the authorization code. Rejects with `login_timeout`, `aborted`, `access_denied`,
 * `login_failed`, an InteractionRequiredError, or an error of `readAuthorizationResponse`.
 */
export async function requestAuthorization(ctx: ClientContext, flow: Flow, signal: AbortSignal): Promise<string> {
  const show = findDelegate(ctx)
  if (!show || ctx.options.interactive === 'defer') return deferAuthorization(ctx, flow)
  const { issuer, scope } = flow.record
  ctx.emit('authorization-started', { issuer, scope })
  const response = await awaitResponse(ctx, flow.record, combined => show(flow, combined), signal)
  if (response === null || response === undefined || response === '') {
    throw new AuthError('the login ended without a response', {
      code: 'access_denied',
      fix: 'log in again; the authorization delegate returned neither a callback URL nor a code',
    })
  }
  return readAuthorizationResponse(ctx, flow.record, response)
}
