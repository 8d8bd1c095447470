// Checks of `mcp-host doctor --config`: sends requests to the provider with the configured credentials.
import { randomBytes } from 'node:crypto'
import { redactUrl } from '../../core/auth.ts'
import { type Examination, errorText, isObject, type PluginFinding } from '../../core/plugin.ts'
import { createIssuerKeys } from '../families/issuer-keys/index.ts'
import type { FilledAuthBridge } from './options.ts'
import {
  bodyOf,
  type Connection,
  createConnector,
  fixOfConnection,
  jsonOf,
  readText,
  through,
  WRONG_PAGE,
} from './upstream/connection.ts'
import { scopesOf, startLogin } from './upstream/index.ts'
import { type ProviderType, settle } from './upstream/settings.ts'
import { explain, type Refusal, refusalIn, refusalText, safeText, UpstreamError } from './upstream/upstream.ts'

type Findings = PluginFinding[]

const finding = (check: string, level: PluginFinding['level'], text: string, fix?: string): PluginFinding => ({
  ...{ check, level, text },
  ...(fix !== undefined && { fix }),
})
const ok = (check: string, text: string) => finding(check, 'ok', text)
const note = (check: string, text: string, fix?: string) => finding(check, 'note', text, fix)
const wrong = (check: string, text: string, fix: string | undefined) => finding(check, 'wrong', text, fix)

const REACH = 'let this machine reach the provider: name server, proxy, firewall'

function failed(check: string, error: unknown): PluginFinding {
  if (!(error instanceof UpstreamError)) throw error
  return wrong(check, error.message, error.fix ?? (error.fault === 'unavailable' ? REACH : undefined))
}

const fixFor = (type: ProviderType, refusal: Refusal, redirectUri: string, otherwise: string): string => {
  const fix = explain({ type, ...refusal })?.fix ?? otherwise
  const isRedirectError = /redirect|callback/i.test(`${refusal.code} ${refusal.description}`)
  return isRedirectError && !fix.includes(redirectUri) ? `${fix} Redirect URI: ${redirectUri}` : fix
}

/** Errors on provider pages. `PAGE_ERROR` can match any login page, so it requires an error status. */
const CLEAR_ERROR =
  /(?:\bAADSTS\d{4,7}\b|\b(?:redirect_uri_mismatch|deleted_client|disabled_client|org_internal|admin_policy_enforced)\b|Invalid parameter: redirect_uri|Callback URL mismatch|'redirect_uri' parameter must be|redirect_uri is not associated with this application)[^<"\\]{0,200}/i
const PAGE_ERROR =
  /(?:Realm does not exist|Client not found|Client disabled|Unknown client|\b(?:invalid_(?:redirect_uri|client|scope|target|request)|unauthorized_client|unsupported_response_type|access_denied|redirect[_ ]ur[il])\b)[^<"\\]{0,200}/i

function refusalOnPage(html: string, isError: boolean): Refusal | undefined {
  const text = html.replaceAll(/&(?:#x?[\da-f]{1,5}|quot|amp|lt|gt|apos);/gi, "'")
  const [found] = CLEAR_ERROR.exec(text) ?? (isError ? PAGE_ERROR.exec(text) : null) ?? []
  return found === undefined
    ? undefined
    : { code: /^[a-z_]+/.exec(found)?.[0], description: found.replaceAll(/\s+/g, ' ').trim() }
}

/** Google encodes its error in base64. */
const refusalInUrl = ({ searchParams }: URL): Refusal | undefined =>
  refusalOnPage(
    [...searchParams.values(), Buffer.from(searchParams.get('authError') ?? '', 'base64').toString('latin1')].join(' '),
    false,
  )

const REDIRECT = 'redirect URI'
const REQUEST = 'authorization request'

const NOT_SIGNED_IN = /^(?:login|interaction|consent|account_selection)_required$|^immediate_failed$/

function readCallback(
  { settings, server }: Connection,
  { searchParams }: URL,
  redirectUri: string,
  secrets: readonly string[],
): Findings {
  const [code, description, iss] = ['error', 'error_description', 'iss'].map(
    name => searchParams.get(name) ?? undefined,
  )
  const known = ok(REDIRECT, `the provider accepts the client id and redirects to ${redirectUri}`)
  if (settings.kind.openid && iss !== undefined && iss !== server.issuer)
    return [known, wrong(REQUEST, 'its response and its metadata have different issuers (iss)', 'check `issuer`')]
  if (code === undefined || NOT_SIGNED_IN.test(code))
    return [known, ok(REQUEST, 'the provider accepts the scopes and parameters')]
  const message = refusalText({ code, description }, secrets)
  // Some providers do not support prompt=none, which sign-ins do not use.
  if (code === 'invalid_request' && /prompt/i.test(description ?? ''))
    return [known, note(REQUEST, `it cannot be tested without a user: ${message}`)]
  const fix = explain({ type: settings.type, code, description })?.fix ?? 'correct `scopes` and `parameters`'
  return [known, wrong(REQUEST, `the provider refuses the request: ${message}`, fix)]
}

function readPage(
  { settings: { type } }: Connection,
  { status, target, text }: { readonly status: number; readonly target: URL | undefined; readonly text: string },
  redirectUri: string,
  secrets: readonly string[],
): PluginFinding {
  const register = `check clientId, and register ${redirectUri} with the application at the provider`
  const refusal = target ? refusalInUrl(target) : refusalOnPage(text, status >= 400)
  if (refusal) {
    const fix = fixFor(type, refusal, redirectUri, register)
    return wrong(REDIRECT, `the provider shows an error page: ${safeText(refusal.description ?? '', secrets)}`, fix)
  }
  if (status >= 400)
    return wrong(REDIRECT, `the authorization endpoint returns ${status} with an unknown error page`, register)
  const why = 'the provider checks the redirect URI only after the login, so it could not be tested'
  return note(REDIRECT, why, `${redirectUri} must be registered there`)
}

async function checkAuthorization(connection: Connection, redirectUri: string): Promise<Findings> {
  const state = randomBytes(16).toString('base64url')
  const { url, underWay } = await startLogin(connection, { redirectUri, state })
  const address = new URL(url)
  address.searchParams.set('prompt', 'none')
  const secrets = [connection.settings.clientSecret ?? '', state, underWay.codeVerifier]
  try {
    const headers = { Accept: 'text/html', 'Accept-Language': 'en', 'User-Agent': 'mcp-host doctor' }
    const response = await fetch(address, { redirect: 'manual', headers, signal: AbortSignal.timeout(10_000) })
    const text = await readText(response, redactUrl(address.href))
    const location = response.headers.get('location')
    const target = location !== null && URL.canParse(location, url) ? new URL(location, url) : undefined
    const { origin, pathname } = new URL(redirectUri)
    return target?.origin === origin && target.pathname === pathname
      ? readCallback(connection, target, redirectUri, secrets)
      : [readPage(connection, { status: response.status, target, text }, redirectUri, secrets)]
  } catch (error) {
    if (error instanceof UpstreamError) return [failed(REDIRECT, error)]
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    const text = `the authorization endpoint cannot be reached: ${safeText(errorText(cause), secrets)}`
    return [wrong(REDIRECT, text, fixOfConnection(error) ?? REACH)]
  }
}

function isSigningKey(key: unknown): boolean {
  if (!isObject(key) || !['RSA', 'EC', 'OKP'].includes(String(key['kty']))) return false
  const { use, key_ops: operations } = key
  return (use === undefined || use === 'sig') && (!Array.isArray(operations) || operations.includes('verify'))
}

async function readKeys(response: Response, what: string): Promise<PluginFinding> {
  if (response.status !== 200) return wrong('keys', `${what} returns ${response.status}`, WRONG_PAGE)
  const body = await jsonOf(response)
  const keys: unknown = isObject(body) ? body['keys'] : undefined
  if (!Array.isArray(keys)) return wrong('keys', `${what} is not a key set`, WRONG_PAGE)
  const count = keys.filter(isSigningKey).length
  if (count > 0) return ok('keys', `${what} has ${count === 1 ? 'a signing key' : `${count} signing keys`}`)
  const found = keys.length === 0 ? 'is an empty key set' : 'has no signing key'
  const fix = 'create a signing key (RSA or EC) for ID tokens at the provider'
  return wrong('keys', `${what} ${found}: ID tokens cannot be verified`, fix)
}

function writeTime(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

function compareClocks({ headers }: Response, sentAt: number, receivedAt: number): Findings {
  const theirs = Date.parse(headers.get('date') ?? '') + (Number(headers.get('age') ?? 0) || 0) * 1_000
  if (Number.isNaN(theirs)) return []
  // The Date header has whole seconds.
  const [behind, ahead] = [theirs - receivedAt, sentAt - (theirs + 1_000)]
  const skew = Math.max(behind, ahead)
  if (skew <= 60_000) return [ok('clock', "this machine's clock and the provider's agree")]
  const how = `${writeTime(skew)} ${behind > ahead ? 'behind' : 'ahead of'}`
  const fix = 'synchronize the clock of this machine by NTP (chrony, systemd-timesyncd), or the clock of the provider'
  return [wrong('clock', `this machine's clock is ${how} that of the provider, so tokens can be refused`, fix)]
}

export async function checkKeys({ fetch, server, settings }: Connection): Promise<Findings> {
  const url = server.jwks_uri
  if (!settings.kind.openid || url === undefined) return []
  const startedAt = Date.now()
  try {
    const response = await fetch(url, { headers: { Accept: 'application/json' } })
    const clocks = compareClocks(response, startedAt, Date.now())
    return [await readKeys(response, redactUrl(url)), ...clocks]
  } catch (error) {
    return [failed('keys', error)]
  }
}

const SECRET = 'client secret'

const IS_SETUP = /\bAADSTS(?:7000\d{3}|700016|90002|50011|65005\d|9010010|28000|70011)\b/

function readTokenRefusal(
  { settings: { type, clientSecret } }: Connection,
  refusal: Refusal,
  redirectUri: string,
  secrets: readonly string[],
): PluginFinding {
  const { code = '', description } = refusal
  const message = refusalText(refusal, secrets)
  const isSetup = IS_SETUP.test(description ?? '')
  // The server checks the code after client authentication.
  if (/^(?:invalid_grant|bad_verification_code)$/.test(code) && !isSetup) {
    const what = clientSecret === undefined ? 'the client without a secret' : 'the client id and the client secret'
    return ok(SECRET, `the provider accepts ${what}`)
  }
  if (code === 'invalid_request' && !isSetup)
    return note(SECRET, `the secret cannot be tested with an invalid code: ${message}`)
  const fix = fixFor(type, refusal, redirectUri, 'check clientId, clientSecret and authMethod')
  return wrong(SECRET, `the token endpoint refused: ${message}`, fix)
}

async function checkToken(connection: Connection, redirectUri: string): Promise<PluginFinding> {
  const { oauth, server, client, authenticate, settings } = connection
  const [code, state, verifier] = [0, 1, 2].map(() => randomBytes(32).toString('base64url')) as [string, string, string]
  const iss = server.authorization_response_iss_parameter_supported ? { iss: server.issuer } : {}
  const callback = oauth.validateAuthResponse(server, client, new URLSearchParams({ code, state, ...iss }), state)
  const options = through(connection)
  const { authorizationCodeGrantRequest: send } = oauth
  try {
    const response = await send(server, client, authenticate, callback, redirectUri, verifier, options)
    const refusal = refusalIn(await bodyOf(response))
    if (refusal)
      return readTokenRefusal(connection, refusal, redirectUri, [settings.clientSecret ?? '', code, state, verifier])
    const fix = 'check that the issuer or the endpoints belong to the provider'
    return wrong(SECRET, `the token endpoint returns ${response.status} without a reason`, fix)
  } catch (error) {
    return failed(SECRET, error)
  }
}

const AGAIN = 'users sign in again when the token of the provider expires'

function checkRenewal(connection: Connection): PluginFinding {
  const { settings, server } = connection
  const { kind, type, parameters } = settings
  const check = 'renewal'
  if (server.grant_types_supported?.includes('refresh_token') === false)
    return note(check, `the provider does not support the grant refresh_token: ${AGAIN}`)
  if (type === 'google' && parameters['access_type'] !== 'offline') {
    const text = `without access_type=offline Google issues no refresh token: ${AGAIN}`
    return wrong(check, text, 'remove access_type from `parameters`')
  }
  if (kind.offline !== false && !scopesOf(connection).includes('offline_access')) {
    const fix = settings.scopes ? 'add offline_access to `scopes`' : 'enable offline_access at the provider'
    return note(check, `offline_access is not requested: ${AGAIN}`, fix)
  }
  return ok(check, 'the scopes for refresh tokens are requested')
}

const LISTS_SCOPES = new Set(['oidc', 'okta', 'keycloak'])

function checkMetadata(connection: Connection): Findings {
  const { settings, server } = connection
  const { authMethod, type } = settings
  const listed: readonly unknown[] | undefined = LISTS_SCOPES.has(type) ? server.scopes_supported : undefined
  const unlisted = listed ? scopesOf(connection).filter(scope => !listed.includes(scope)) : []
  const methods = server.token_endpoint_auth_methods_supported ?? []
  const findings: Findings = []
  if (unlisted.length > 0) {
    const fix = 'correct `scopes`; scopes of APIs are possibly not listed'
    findings.push(note('scopes', `the provider does not list ${unlisted.join(', ')}`, fix))
  }
  if (authMethod !== undefined && methods.length > 0 && !methods.includes(authMethod)) {
    const text = `the provider does not list ${authMethod}, but ${methods.join(', ')}`
    findings.push(wrong(SECRET, text, 'set or leave out authMethod'))
  }
  if (server.code_challenge_methods_supported?.includes('S256') === false)
    findings.push(note('provider', 'it does not list S256: it does not support PKCE, or its metadata omits it'))
  return findings
}

async function checkProvider({ provider, path }: FilledAuthBridge, { at, log, url }: Examination): Promise<Findings> {
  const settings = settle(provider, [...at, 'provider'])
  if (settings.type === 'development')
    return [note('provider', 'development: anyone signs in as any user', 'set an identity provider in production')]
  let connection: Connection
  try {
    connection = await createConnector(settings, log, undefined)()
  } catch (error) {
    return [failed('provider', error)]
  }
  const { issuer } = settings
  const redirectUri = url(`${path}/callback`)
  return [
    ok('provider', issuer === undefined ? 'endpoints are configured' : `the metadata of ${issuer} is of this issuer`),
    ...(await checkKeys(connection)),
    ...checkMetadata(connection),
    checkRenewal(connection),
    ...(redirectUri === undefined
      ? [note(REDIRECT, 'not checked: the URL of this host is unknown', 'set http.publicUrl')]
      : [...(await checkAuthorization(connection, redirectUri)), await checkToken(connection, redirectUri)]),
  ]
}

const checkIssuers = ({ trustedIssuers }: FilledAuthBridge, log: Examination['log']): Promise<Findings> =>
  Promise.all(
    trustedIssuers.map(async ({ issuer, jwksUri }) => {
      const keys = createIssuerKeys({ issuer, jwksUri, maxAge: 1_000, maxStale: 1_000, lenient: false, log })
      const fix = 'check issuer and jwksUri, and let this machine reach them'
      try {
        return (await keys.checkUsable())
          ? ok('trusted issuer', `the keys of ${issuer} can be fetched`)
          : wrong('trusted issuer', `the keys of ${issuer} cannot be fetched: its assertions are put off`, fix)
      } finally {
        keys.close()
      }
    }),
  )

export async function examine(options: FilledAuthBridge, about: Examination): Promise<Findings> {
  const found = await Promise.all([checkProvider(options, about), checkIssuers(options, about.log)])
  return found.flat()
}
