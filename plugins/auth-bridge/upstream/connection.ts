// Provider metadata and client authentication, loaded once on demand; failures are not cached.
import type { AuthorizationServer, allowInsecureRequests, Client, ClientAuth, customFetch } from 'oauth4webapi'
import { shownUrl } from '../../../core/auth.ts'
import { isObject, type Logger } from '../../../core/plugin.ts'
import { type Ask, checkAddress, createAsk, jsonOf, WRONG_PAGE } from './ask.ts'
import { refusalError, refusalIn, unreadable } from './refusal.ts'
import type { AuthMethod, Settings } from './settings.ts'
import { UpstreamError } from './upstream.ts'

export interface Connection {
  readonly settings: Settings
  readonly log: Logger
  readonly oauth: typeof import('oauth4webapi')
  /** For plain OAuth, from the options. oauth4webapi caches keys by this object. */
  readonly server: AuthorizationServer & { readonly token_endpoint: string; readonly authorization_endpoint: string }
  readonly client: Client
  readonly authenticate: ClientAuth
  readonly ask: Ask
}

/** RFC 6749, section 2.3.1. */
const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** Replaces oauth4webapi's version, which also encodes `-`, `.` and `_`: some servers compare without decoding. */
export const basicCredentials = ({ clientId, clientSecret = '' }: Settings): string =>
  `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`

function chooseMethod({ authMethod }: Settings, listed: unknown): AuthMethod {
  if (authMethod !== undefined) return authMethod
  const methods = Array.isArray(listed) ? listed : []
  return !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
    ? 'client_secret_post'
    : 'client_secret_basic'
}

function authenticateBy(method: AuthMethod, settings: Settings): ClientAuth {
  return (_server, { client_id }, body, headers) => {
    if (method === 'client_secret_basic') return headers.set('authorization', basicCredentials(settings))
    body.set('client_id', client_id)
    if (method === 'client_secret_post') body.set('client_secret', settings.clientSecret ?? '')
  }
}

const sameIssuer = (found: unknown, issuer: string) =>
  // A trailing slash is ignored for a bare host only.
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
  if (!isObject(body)) throw new UpstreamError('misconfigured', `${what} is no metadata document`, { fix: WRONG_PAGE })
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
  const ask = createAsk({ local, timeout })
  const found = issuer === undefined ? describe(settings) : await readMetadata(settings, issuer, ask)
  const server = checkEndpoints(found, settings)
  const method = chooseMethod(settings, server.token_endpoint_auth_methods_supported)
  const client: Client = { client_id: clientId }
  return { settings, log, oauth, server, client, authenticate: authenticateBy(method, settings), ask }
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
