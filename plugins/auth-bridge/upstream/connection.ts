// The connection to a provider: metadata and client authentication, loaded once on demand, and token requests.

import type {
  AuthorizationServer,
  allowInsecureRequests,
  Client,
  ClientAuth,
  customFetch,
  TokenEndpointResponse,
} from 'oauth4webapi'
import { basicCredentials, parseJson, readLimited, redactUrl } from '../../../core/auth.ts'
import { type Claims, errorText, isObject, type Logger } from '../../../core/plugin.ts'
import { type AuthMethod, isSecure, type Settings } from './settings.ts'
import { type ProviderTokens, refusalError, refusalIn, UpstreamError, unreadable } from './upstream.ts'

const TIMEOUT = 10_000
const MAX_BYTES = 1_024 * 1_024

interface FetchInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams | null | undefined
}

type Fetch = (url: string, init?: FetchInit) => Promise<Response>

/** Reads a response. Rejects with an UpstreamError above 1 MiB. */
export async function readText(response: Response, shown: string): Promise<string> {
  const bytes = await readLimited(response, MAX_BYTES)
  if (bytes) return bytes.toString('utf8')
  throw new UpstreamError('untrusted', `${shown} answered more than ${MAX_BYTES} bytes`, { fix: WRONG_PAGE })
}

export const WRONG_PAGE = 'check the issuer, and that no proxy responds with its own page'

const NO_TLS = /^(?:ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)|EPROTO)$/
const NO_TRUST = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/

export function fixOfConnection(thrown: unknown): string | undefined {
  const { cause } = thrown instanceof Error ? thrown : {}
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (NO_TLS.test(code)) return 'the server does not use TLS; http:// is allowed only for this machine'
  if (NO_TRUST.test(code))
    return 'this machine does not trust its certificate: name the file of your own authority in NODE_EXTRA_CA_CERTS'
  return undefined
}

function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'it cannot be reached'
  if (thrown.name === 'TimeoutError') return 'it did not respond in time'
  const { cause } = thrown
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  return code ?? (cause instanceof Error ? errorText(cause).slice(0, 200) : 'it cannot be reached')
}

/** True if the provider is overloaded; GitHub then sends 403. */
const isBusy = ({ status, headers }: Response) =>
  status >= 500 ||
  status === 408 ||
  status === 429 ||
  (status === 403 && (headers.get('x-ratelimit-remaining') === '0' || headers.has('retry-after')))

const fixOfStatus = (status: number) =>
  status >= 500 || status === 408
    ? 'the provider itself fails, or a proxy before it: see its status page or log, then try again'
    : 'the provider fails or limits requests: try again later'

const KEPT = ['content-type', 'link', 'date', 'age'] as const

function checkAddress(url: string, local: boolean): void {
  if (isSecure(url, local)) return
  throw new UpstreamError('untrusted', `${redactUrl(url)} is not an https URL, so no request is sent to it`)
}

/** Returns statuses below 500 except redirects and retry responses. Errors omit the query and sent data. */
function createFetch(local: boolean, timeout = TIMEOUT): Fetch {
  return async (url, init = {}) => {
    checkAddress(url, local)
    const shown = redactUrl(url)
    let response: Response
    let text: string
    try {
      const signal = AbortSignal.timeout(timeout)
      const { method = 'GET', headers = {}, body = null } = init
      response = await fetch(url, { method, headers, body, redirect: 'manual', signal })
      text = await readText(response, shown)
    } catch (thrown) {
      if (thrown instanceof UpstreamError) throw thrown
      throw new UpstreamError('unavailable', `${shown}: ${reasonOf(thrown)}`, { fix: fixOfConnection(thrown) })
    }
    const { status, headers } = response
    if (status >= 300 && status < 400) {
      throw new UpstreamError('misconfigured', `${shown} returns ${status}, and redirects are not followed`, {
        fix: 'check the issuer, or the endpoints, in the provider options',
      })
    }
    if (isBusy(response))
      throw new UpstreamError('unavailable', `${shown} answers ${status}`, { fix: fixOfStatus(status) })
    const kept = KEPT.map(name => [name, headers.get(name) ?? ''] as const).filter(([, value]) => value !== '')
    // WWW-Authenticate is omitted: oauth4webapi would then ignore the body.
    return new Response(status === 204 || status === 205 ? null : text, { status, headers: Object.fromEntries(kept) })
  }
}

export async function jsonOf(response: Response): Promise<unknown> {
  try {
    return parseJson(await response.clone().text())
  } catch {
    return undefined
  }
}

export interface Connection {
  readonly settings: Settings
  readonly log: Logger
  readonly oauth: typeof import('oauth4webapi')
  /** For plain OAuth, the metadata comes from the options. oauth4webapi caches keys by this object. */
  readonly server: AuthorizationServer & { readonly token_endpoint: string; readonly authorization_endpoint: string }
  readonly client: Client
  readonly authenticate: ClientAuth
  readonly fetch: Fetch
}

function chooseMethod({ authMethod }: Settings, listed: unknown): AuthMethod {
  if (authMethod !== undefined) return authMethod
  const methods = Array.isArray(listed) ? listed : []
  return !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
    ? 'client_secret_post'
    : 'client_secret_basic'
}

/** Replaces oauth4webapi's `ClientSecretBasic`, which also encodes `-`, `.` and `_`: some servers compare without decoding. */
const secretBasic =
  ({ clientId, clientSecret = '' }: Settings): ClientAuth =>
  (_server, _client, _body, headers) =>
    headers.set('authorization', basicCredentials(clientId, clientSecret))

const sameIssuer = (found: unknown, issuer: string) =>
  // A trailing slash is ignored only for a host without a path.
  typeof found === 'string' && URL.canParse(found) && new URL(found).href === new URL(issuer).href

async function readMetadata(settings: Settings, issuer: string, fetch: Fetch): Promise<AuthorizationServer> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await fetch(url, { headers: { Accept: 'application/json' } })
  const body = await jsonOf(response)
  const what = redactUrl(url)
  if (response.status !== 200) {
    const refusal = refusalIn(body)
    if (refusal) throw refusalError(refusal, { type: settings.type, what, secrets: [] })
    throw unreadable(what, response.status)
  }
  if (!isObject(body))
    throw new UpstreamError('misconfigured', `${what} is not a metadata document`, { fix: WRONG_PAGE })
  if (!sameIssuer(body['issuer'], issuer)) {
    const found = typeof body['issuer'] === 'string' ? redactUrl(body['issuer']) : 'nothing'
    throw new UpstreamError('misconfigured', `${what} is of the issuer ${found}, and not of ${redactUrl(issuer)}`, {
      fix: 'write the issuer in the provider options exactly as the provider names itself',
    })
  }
  return body as unknown as AuthorizationServer
}

const needed = (settings: Settings) =>
  settings.kind.openid
    ? (['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const)
    : (['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint'] as const)

const optional = ['userinfo_endpoint', 'revocation_endpoint'] as const

function checkEndpoints(server: AuthorizationServer, settings: Settings): Connection['server'] {
  for (const name of [...needed(settings), ...optional]) {
    const url: unknown = server[name]
    if (url === undefined && !needed(settings).some(one => one === name)) continue
    if (typeof url !== 'string' || !URL.canParse(url)) {
      throw new UpstreamError('misconfigured', `the metadata of ${redactUrl(server.issuer)} has no ${name}`, {
        fix: 'check that this issuer is an OpenID Connect provider; for plain OAuth there is the type oauth',
      })
    }
    checkAddress(url, settings.local)
  }
  const { authorization_endpoint = '', token_endpoint = '' } = server
  return { ...server, authorization_endpoint, token_endpoint }
}

function describe({ endpoints }: Settings): AuthorizationServer {
  const { authorization = '', token = '', userinfo = '', revocation } = endpoints ?? {}
  return {
    issuer: URL.canParse(authorization) ? new URL(authorization).origin : '',
    authorization_endpoint: authorization,
    token_endpoint: token,
    userinfo_endpoint: userinfo,
    ...(revocation !== undefined && { revocation_endpoint: revocation }),
  }
}

async function connect(settings: Settings, log: Logger, timeout: number | undefined): Promise<Connection> {
  const oauth = await import('oauth4webapi')
  const { issuer, clientId, local } = settings
  const fetch = createFetch(local, timeout)
  const found = issuer === undefined ? describe(settings) : await readMetadata(settings, issuer, fetch)
  const server = checkEndpoints(found, settings)
  const authenticate = {
    none: oauth.None,
    client_secret_basic: () => secretBasic(settings),
    client_secret_post: () => oauth.ClientSecretPost(settings.clientSecret ?? ''),
  }[chooseMethod(settings, server.token_endpoint_auth_methods_supported)]()
  return { settings, log, oauth, server, client: { client_id: clientId }, authenticate, fetch }
}

export function createConnector(settings: Settings, log: Logger, timeout: number | undefined) {
  let connecting: Promise<Connection> | undefined
  return () => {
    connecting ??= connect(settings, log, timeout).catch(error => {
      connecting = undefined
      throw error
    })
    return connecting
  }
}

type Through = Record<typeof customFetch, Fetch> & Record<typeof allowInsecureRequests, true>

export function through({ oauth, fetch }: Connection): Through {
  return { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true }
}

export const bodyOf = async (response: Response): Promise<unknown> =>
  response.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded')
    ? Object.fromEntries(new URLSearchParams(await response.clone().text()))
    : jsonOf(response)

function normalizeMembers(body: Record<string, unknown>): Record<string, unknown> {
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
  const members = normalizeMembers(body)
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

/** Returns false if keys are unavailable, so that the new refresh token is not lost. */
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
  const sent = await checking(`a refresh at ${redactUrl(server.token_endpoint)}`, () =>
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

export async function fetchAs(
  { fetch }: Connection,
  url: string,
  accessToken: string,
  { accept = 'application/json', ...init }: FetchInit & { readonly accept?: string } = {},
): Promise<Response> {
  const authorization = { Authorization: `Bearer ${accessToken}`, Accept: accept }
  const response = await fetch(url, { ...init, headers: { ...init.headers, ...authorization } })
  const { status } = response
  if (status === 200) return response
  const what = `${redactUrl(url)} answers ${status}`
  if (status === 401 || status === 403) throw new UpstreamError('refused', what)
  throw new UpstreamError('misconfigured', what)
}

export async function fetchUserinfo(
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
  const response = await fetchAs(connection, url, accessToken)
  if (!settings.kind.openid) {
    const body = await jsonOf(response)
    if (!isObject(body)) throw new UpstreamError('untrusted', `${redactUrl(url)} returned no JSON object`)
    return body
  }
  return checking('userinfo', async () => {
    const claims = await oauth.processUserInfoResponse(server, client, subject ?? '', response)
    if (response.headers.get('content-type')?.startsWith('application/jwt')) await checkSignature(connection, response)
    return Object.fromEntries(Object.entries(claims).filter(([name]) => !ABOUT_THE_ANSWER.has(name)))
  })
}
