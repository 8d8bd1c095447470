// Validates the options of `createAuthFetch` and fills in defaults.

import { checkOptions, checkScopes } from './check-options.ts'
import { AuthError } from './errors.ts'
import { createMemoryFlowStore } from './flow-store.ts'
import type { ClientOAuthOptions, DynamicClientRegistration } from './options.ts'
import { createMemoryTokenCache } from './token-cache.ts'

export const RESERVED_PARAMETERS: readonly string[] = [
  'client_id',
  'redirect_uri',
  'response_type',
  'code_challenge',
  'code_challenge_method',
  'state',
  'resource',
  'scope',
]

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

type Defaulted =
  | 'scopeMode'
  | 'strictResponse'
  | 'tokenCache'
  | 'flowStore'
  | 'fetch'
  | 'grant'
  | 'dpop'
  | 'offlineAccess'
  | 'resourceIndicator'
  | 'resourceMatch'
  | 'issuerMatch'
  | 'refreshScope'
  | 'legacyFallback'
  | 'maxStepUps'
  | 'interactive'
  | 'loginTimeoutMs'

export interface ResolvedOptions
  extends Omit<ClientOAuthOptions, Defaulted | 'serverUrl' | 'redirectUri' | 'clientMetadataDocumentUri'>,
    Required<Pick<ClientOAuthOptions, Defaulted>> {
  readonly serverUrl: string
  readonly redirectUri: string | undefined
  readonly clientMetadataDocumentUri: string | undefined
  readonly dynamicClientRegistration: DynamicClientRegistration & { readonly enabled: boolean }
}

export const isLoopback = (hostname: string): boolean =>
  LOOPBACK.has(hostname) || /^127(?:\.\d{1,3}){3}$/.test(hostname) || hostname.endsWith('.localhost')

const fail = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function parse(name: string, value: string | URL): URL {
  try {
    return new URL(value)
  } catch (cause) {
    throw new AuthError(`${name} is not a URL: ${JSON.stringify(String(value))}`, {
      code: 'invalid_options',
      fix: `give an absolute one, such as https://example.com`,
      cause,
    })
  }
}

function checkServerUrl(value: string | URL): string {
  const { protocol, username, password } = parse('serverUrl', value)
  if (protocol !== 'https:' && protocol !== 'http:')
    throw fail('serverUrl is not http or https', 'give its web address')
  if (username || password)
    throw fail('serverUrl carries a user or password', 'leave them out: tokens take their place')
  return String(value)
}

/** Allows https, http on loopback, or a private-use scheme (MCP authorization, "Communication Security"). */
function checkRedirectUri(value: string | URL, mayBeOpen: boolean): string {
  const { protocol, hostname, hash, port } = parse('redirectUri', value)
  const text = String(value)
  if (port === '0' && !mayBeOpen) {
    throw fail(
      'redirectUri has the port 0, and no browser can come back to that',
      'name a port; on Node a loopback redirectUri may leave it open, without a query, where neither authorizationRedirectDelegate nor interactive: "defer" is set; or use createLoopbackRedirect',
    )
  }
  if (hash || text.includes('#')) throw fail('redirectUri has a fragment', 'leave it out (RFC 6749 §3.1.2)')
  if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return text
  if (protocol === 'http:') {
    throw fail(`redirectUri is http to ${hostname}`, 'use https, or http to 127.0.0.1 for programs on a desktop')
  }
  if (['javascript:', 'data:', 'file:', 'blob:', 'about:', 'ftp:', 'ws:', 'wss:'].includes(protocol)) {
    throw fail(`redirectUri has the scheme ${protocol}`, 'use https, http to 127.0.0.1, or a scheme of your own')
  }
  return text
}

/** Requires a canonical https URL with a path (Client ID Metadata Documents §3). */
function checkMetadataDocument(value: string | URL): string {
  const text = String(value)
  const { protocol, pathname, username, password } = parse('clientMetadataDocumentUri', value)
  const fix = 'a client id of this kind is https://host/path, without fragment, user or dot segments'
  if (protocol !== 'https:') throw fail('clientMetadataDocumentUri is not https', fix)
  if (pathname === '/') throw fail('clientMetadataDocumentUri has no path', fix)
  if (text.includes('#')) throw fail('clientMetadataDocumentUri has a fragment', fix)
  if (username || password) throw fail('clientMetadataDocumentUri carries a user or password', fix)
  const path = text.replace(/^[^:]+:\/\/[^/]*/, '').split('?', 1)[0] ?? ''
  if (path.split('/').some(segment => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw fail('clientMetadataDocumentUri has dot segments', fix)
  }
  return text
}

/** Requires TLS except on loopback. */
function checkTokenEndpoint(value: string): string {
  const { protocol, hostname, username, password } = parse('tokenEndpoint', value)
  if (username || password) throw fail('tokenEndpoint carries a user or password', 'leave them out')
  if (value.includes('#')) throw fail('tokenEndpoint has a fragment', 'leave it out (RFC 6749 §3.2)')
  if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return value
  throw fail('tokenEndpoint is not https', 'give its https address; http is for loopback addresses in development')
}

function checkParameters(extra: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(extra)) {
    if (!RESERVED_PARAMETERS.includes(name)) continue
    const instead =
      name === 'scope' ? '`scopes`' : name === 'resource' ? '`resourceIndicator`' : 'the option of its own'
    throw fail(`additionalAuthorizationParameters may not set ${name}`, `use ${instead}`)
  }
}

function checkClient(options: ClientOAuthOptions): void {
  const { clientId, clientSecret, grant = { type: 'authorization_code' } } = options
  if (clientSecret !== undefined && !clientId) throw fail('clientSecret without clientId', 'give both, or neither')
  if (clientSecret === '') throw fail('clientSecret is empty', 'leave it out for a public client')
  if (clientId === '') throw fail('clientId is empty', 'leave it out to register dynamically')
  const { clientIssuer, dynamicClientRegistration: { initialAccessToken } = {} } = options
  const secret =
    clientSecret !== undefined
      ? 'clientSecret'
      : initialAccessToken !== undefined && 'dynamicClientRegistration.initialAccessToken'
  if (secret && clientIssuer === undefined) {
    throw fail(`${secret} without clientIssuer`, 'give the issuer that it is from: no other one gets it')
  }
  if (clientIssuer !== undefined && !clientId && !secret) throw fail('clientIssuer without clientId', 'give both')
  if (grant.type !== 'authorization_code' && grant.type !== 'device' && !clientId) {
    throw fail(`the grant ${grant.type} needs clientId`, 'register the client with the authorization server first')
  }
  if (options.authorizationRedirectDelegate && options.authorizationCallbackHandler) {
    throw fail('authorizationRedirectDelegate and authorizationCallbackHandler are both set', 'set one of them')
  }
  if (grant.type === 'authorization_code' && options.redirectUri === undefined && options.interactive !== 'never') {
    throw fail(
      'redirectUri is missing',
      'give where the authorization server sends the browser back to, such as http://127.0.0.1:8765/callback, or set interactive: "never"',
    )
  }
}

const given = (options: ClientOAuthOptions): ClientOAuthOptions =>
  Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as unknown as ClientOAuthOptions

/** Throws an AuthError `invalid_options`. `opensRedirects`: port 0 is replaced by a real port. */
export function resolveOptions(all: ClientOAuthOptions, opensRedirects = false): ResolvedOptions {
  checkOptions(all)
  const options = given(all)
  checkClient(options)
  checkParameters(options.additionalAuthorizationParameters ?? {})
  checkScopes('scopes', options.scopes ?? [])
  const { redirectUri, clientMetadataDocumentUri, dynamicClientRegistration } = options
  return {
    scopeMode: 'override',
    strictResponse: false,
    grant: { type: 'authorization_code' },
    dpop: 'auto',
    offlineAccess: 'auto',
    resourceIndicator: 'auto',
    resourceMatch: 'exact-or-origin',
    issuerMatch: 'exact',
    refreshScope: 'omit',
    legacyFallback: true,
    maxStepUps: 2,
    interactive: 'post',
    loginTimeoutMs: 300_000,
    ...options,
    // Resolved on each call, so that a replaced global `fetch` is used.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    tokenCache: options.tokenCache ?? createMemoryTokenCache(),
    flowStore: options.flowStore ?? createMemoryFlowStore(),
    serverUrl: checkServerUrl(options.serverUrl),
    redirectUri: redirectUri === undefined ? undefined : checkRedirectUri(redirectUri, opensRedirects),
    clientMetadataDocumentUri:
      clientMetadataDocumentUri === undefined ? undefined : checkMetadataDocument(clientMetadataDocumentUri),
    ...(options.tokenEndpoint !== undefined && { tokenEndpoint: checkTokenEndpoint(options.tokenEndpoint) }),
    dynamicClientRegistration: { ...dynamicClientRegistration, enabled: dynamicClientRegistration?.enabled ?? true },
  }
}
