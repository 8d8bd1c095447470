// Provider metadata and client authentication, loaded once on demand; failures are not cached.

import type { AuthorizationServer, allowInsecureRequests, Client, ClientAuth, customFetch } from 'oauth4webapi'
import { basicCredentials, parseJson, readLimited, shownUrl } from '../../../core/auth.ts'
import { errorText, isObject, type Logger } from '../../../core/plugin.ts'
import { type AuthMethod, isSecure, type Settings } from './settings.ts'
import { refusalError, refusalIn, UpstreamError, unreadable } from './upstream.ts'

const TIMEOUT = 10_000
const MAX_BYTES = 1_024 * 1_024

export interface AskInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams | null | undefined
}

export type Ask = (url: string, init?: AskInit) => Promise<Response>

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

export function checkAddress(url: string, local: boolean): void {
  if (isSecure(url, local)) return
  throw new UpstreamError('untrusted', `${shownUrl(url)} is not an https URL, so no request is sent to it`)
}

/** Returns statuses below 500 except redirects and retry responses. Errors omit the query and sent data. */
function createAsk(local: boolean, timeout = TIMEOUT): Ask {
  return async (url, init = {}) => {
    checkAddress(url, local)
    const shown = shownUrl(url)
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
  readonly ask: Ask
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

async function readMetadata(settings: Settings, issuer: string, ask: Ask): Promise<AuthorizationServer> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await ask(url, { headers: { Accept: 'application/json' } })
  const body = await jsonOf(response)
  const what = shownUrl(url)
  if (response.status !== 200) {
    const refusal = refusalIn(body)
    if (refusal) throw refusalError(refusal, { type: settings.type, what, secrets: [] })
    throw unreadable(what, response.status)
  }
  if (!isObject(body))
    throw new UpstreamError('misconfigured', `${what} is not a metadata document`, { fix: WRONG_PAGE })
  if (!sameIssuer(body['issuer'], issuer)) {
    const found = typeof body['issuer'] === 'string' ? shownUrl(body['issuer']) : 'nothing'
    throw new UpstreamError('misconfigured', `${what} is of the issuer ${found}, and not of ${shownUrl(issuer)}`, {
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
      throw new UpstreamError('misconfigured', `the metadata of ${shownUrl(server.issuer)} has no ${name}`, {
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
  const ask = createAsk(local, timeout)
  const found = issuer === undefined ? describe(settings) : await readMetadata(settings, issuer, ask)
  const server = checkEndpoints(found, settings)
  const authenticate = {
    none: oauth.None,
    client_secret_basic: () => secretBasic(settings),
    client_secret_post: () => oauth.ClientSecretPost(settings.clientSecret ?? ''),
  }[chooseMethod(settings, server.token_endpoint_auth_methods_supported)]()
  return { settings, log, oauth, server, client: { client_id: clientId }, authenticate, ask }
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

type Through = Record<typeof customFetch, Ask> & Record<typeof allowInsecureRequests, true>

export function through({ oauth, ask }: Connection): Through {
  return { [oauth.customFetch]: ask, [oauth.allowInsecureRequests]: true }
}
