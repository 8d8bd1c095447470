// Validates the options of `createAuthFetch` and fills in defaults.
import { distance } from 'fastest-levenshtein'
import { AuthError } from './errors.ts'
import { MAX_TIMER } from './http.ts'
import { kindOfHost } from './net-policy.ts'
import type { ClientOAuthOptions, DynamicClientRegistration, Grant, IdentityProvider } from './options.ts'
import { createMemoryFlowStore, createMemoryTokenCache } from './stores.ts'
import { given, isObject, isScope, printable } from './text.ts'

const simplify = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = simplify(name)
  // Swapped letters count as two edits. Short names would match anything.
  const allowed = plain.length < 4 ? 1 : Math.max(2, Math.floor(plain.length / 3))
  const near = known
    .map(one => ({ one, steps: distance(plain, simplify(one)) }))
    .filter(({ steps }) => steps <= allowed)
    .sort((a, b) => a.steps - b.steps)
  return near[0]?.one
}

interface Fit {
  /** The text after "give" in messages. */
  readonly what: string
  readonly fits: (value: unknown) => boolean
  readonly known?: readonly string[]
  readonly members?: Shape
  readonly secret?: true
  readonly needed?: true
}

type Shape = Readonly<Record<string, Fit>>
type ShapeOf<T> = { readonly [Name in keyof Required<T>]: Fit }

const isText = (value: unknown): value is string => typeof value === 'string'
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)

const text: Fit = { what: 'a text', fits: isText }
const secret: Fit = { ...text, secret: true }
const url: Fit = { what: 'a text or a URL', fits: value => isText(value) || value instanceof URL }
const texts: Fit = { what: 'a list of texts', fits: isTexts }
const truth: Fit = { what: 'true or false', fits: value => typeof value === 'boolean' }
const call: Fit = { what: 'a function', fits: value => typeof value === 'function' }
const needed = (fit: Fit): Fit => ({ ...fit, needed: true })
const object = (members: Shape, what = 'an object'): Fit => ({ what, fits: isObject, members })
const autoOrTruth: Fit = {
  ...{ what: "'auto', true or false", known: ['auto'] },
  fits: value => value === 'auto' || typeof value === 'boolean',
}

const oneOf = (...known: readonly string[]): Fit => ({
  what: `one of ${known.map(value => `'${value}'`).join(', ')}`,
  fits: value => isText(value) && known.includes(value),
  known,
})

const number = (what: string, most = Number.MAX_VALUE): Fit => ({
  what,
  fits: value => typeof value === 'number' && value >= 0 && value <= most,
})

const withMethods = (what: string, methods: readonly string[], optional: readonly string[] = []): Fit => ({
  what: `${what}: an object with ${methods.join(' and ')}`,
  fits: value =>
    [...methods, ...optional].every(name => {
      const member: unknown = isObject(value) ? value[name] : undefined
      return typeof member === 'function' || (member === undefined && optional.includes(name))
    }),
})

const IDENTITY_PROVIDER = { issuer: text, tokenEndpoint: text, clientId: needed(text), clientSecret: secret }

const GRANTS: { readonly [Type in Grant['type']]: ShapeOf<Extract<Grant, { type: Type }>> } = {
  authorization_code: { type: text },
  client_credentials: { type: text },
  jwt_bearer: { type: text, assertion: needed(call) },
  enterprise: {
    type: text,
    idToken: needed(call),
    idp: needed(object(IDENTITY_PROVIDER satisfies ShapeOf<IdentityProvider>, 'an object with clientId')),
  },
  device: { type: text, onUserCode: needed(call) },
}
const grantType = oneOf(...Object.keys(GRANTS))

export const OPTIONS: ShapeOf<ClientOAuthOptions> = {
  serverUrl: needed(url),
  redirectUri: url,
  clientId: text,
  clientSecret: secret,
  clientIssuer: text,
  clientMetadataDocumentUri: url,
  scopes: texts,
  scopeMode: oneOf('override', 'fallback'),
  scopeSelector: call,
  authServerSelector: call,
  authorizationRedirectDelegate: call,
  authorizationCallbackHandler: call,
  strictResponse: truth,
  dynamicClientRegistration: object({
    clientName: text,
    clientUri: text,
    initialAccessToken: secret,
    applicationType: oneOf('native', 'web'),
    responseDelegate: call,
    enabled: truth,
    metadata: { what: 'an object of client metadata (RFC 7591)', fits: isObject },
    registration: {
      what: 'a registration of an earlier run: an object with issuer and clientId',
      fits: value => isObject(value) && isText(value['issuer']) && isText(value['clientId']),
      secret: true,
    },
  } satisfies ShapeOf<DynamicClientRegistration>),
  additionalAuthorizationParameters: {
    what: 'an object of texts',
    fits: value => isObject(value) && Object.values(value).every(isText),
  },
  tokenCache: withMethods('a token cache', ['getTokens', 'storeTokens'], ['deleteTokens', 'withLock', 'leaseLogin']),
  flowStore: withMethods('a flow store', ['save', 'take']),
  fetch: call,
  profile: text,
  grant: { ...grantType, what: `an object whose type is ${grantType.what}`, fits: isObject },
  privateKey: {
    what: 'a PKCS#8 PEM, a private JWK or a CryptoKey',
    fits: value => isText(value) || isObject(value),
    secret: true,
  },
  alg: text,
  kid: text,
  tokenEndpointAuthMethod: oneOf('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'),
  clientAuthentication: call,
  dpop: autoOrTruth,
  offlineAccess: autoOrTruth,
  resourceIndicator: {
    what: "'auto', 'omit', or an absolute URI without a fragment (RFC 8707)",
    fits: value =>
      value === 'auto' || value === 'omit' || (isText(value) && URL.canParse(value) && !value.includes('#')),
    known: ['auto', 'omit'],
  },
  resourceMatch: oneOf('exact-or-origin', 'path-prefix'),
  issuerMatch: oneOf('exact', 'ignore-trailing-slash'),
  trustedIssuers: {
    what: "an object with a list of issuers for each server's URL",
    fits: value => isObject(value) && Object.values(value).every(isTexts),
  },
  assumePkceS256: texts,
  tokenEndpoint: text,
  refreshScope: oneOf('omit', 'granted'),
  legacyFallback: truth,
  refreshLeewaySeconds: number('a number of 0 or more'),
  maxStepUps: {
    what: 'a whole number of 0 or more',
    fits: value => Number.isSafeInteger(value) && (value as number) >= 0,
  },
  interactive: oneOf('post', 'any', 'never', 'defer'),
  loginTimeoutMs: number(`a number of milliseconds from 0 to ${MAX_TIMER}`, MAX_TIMER),
  networkPolicy: object({ blockPrivateNetworks: truth, allowHosts: texts }),
  onEvent: call,
  openTelemetry: {
    what: "the module '@opentelemetry/api', all of it",
    fits: value =>
      isObject(value) && ['trace', 'context', 'propagation', 'SpanKind'].every(name => isObject(value[name])),
  },
}

const fail = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function describe(value: unknown, isSecret = false): string {
  if (isSecret) return kindOf(value)
  if (typeof value === 'string') return printable(JSON.stringify(value.slice(0, 60)))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
}

function checkValue(path: string, value: unknown, fit: Fit): void {
  if (value === undefined && !fit.needed) return
  if (value === undefined) throw fail(`${path} is missing`, `give ${fit.what}`)
  if (!fit.fits(value)) {
    const near = typeof value === 'string' && fit.known ? nearest(value, fit.known) : undefined
    const meant = near === undefined ? '' : `; did you mean '${near}'?`
    throw fail(`${path} is ${describe(value, fit.secret)}`, `give ${fit.what}${meant}`)
  }
  if (fit.members) checkShape(`${path}.`, value as object, fit.members)
}

function checkShape(path: string, given: object, shape: Shape): void {
  const known = Object.keys(shape)
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(shape, name)) continue
    const near = nearest(name, known)
    const fix = near === undefined ? `there are: ${known.join(', ')}` : `did you mean ${path}${near}?`
    throw fail(`unknown option ${path}${printable(name, 60)}`, fix)
  }
  for (const [name, fit] of Object.entries(shape))
    checkValue(`${path}${name}`, (given as Record<string, unknown>)[name], fit)
}

/** Throws an AuthError `invalid_options` for the first invalid option. */
export function checkOptions(options: unknown): void {
  if (!isObject(options)) throw fail(`the options are ${kindOf(options)}`, 'pass an object with at least serverUrl')
  checkShape('', options, OPTIONS)
  const { grant } = options as Partial<ClientOAuthOptions>
  if (grant === undefined) return
  checkValue('grant.type', grant.type, needed(grantType))
  checkShape('grant.', grant, GRANTS[grant.type])
}

/** Throws an AuthError `invalid_options` for an invalid scope (RFC 6749 §3.3). */
export function checkScopes(name: string, scopes: readonly string[]): void {
  if (!Array.isArray(scopes)) throw fail(`${name} is ${kindOf(scopes)}`, 'use a list of strings')
  const bad = scopes.find(scope => !isScope(scope))
  if (bad === undefined) return
  const found = printable(JSON.stringify(bad) ?? '', 80)
  throw fail(`${name} has ${found}`, 'each is one scope, without spaces or quotes (RFC 6749 §3.3)')
}

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

const DEFAULTS = {
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
} satisfies Partial<ClientOAuthOptions>

type Defaulted = keyof typeof DEFAULTS | 'tokenCache' | 'flowStore' | 'fetch'

export interface ResolvedOptions
  extends Omit<ClientOAuthOptions, Defaulted | 'serverUrl' | 'redirectUri' | 'clientMetadataDocumentUri'>,
    Required<Pick<ClientOAuthOptions, Defaulted>> {
  readonly serverUrl: string
  readonly redirectUri: string | undefined
  readonly clientMetadataDocumentUri: string | undefined
  readonly dynamicClientRegistration: DynamicClientRegistration & { readonly enabled: boolean }
}

export const isLoopback = (hostname: string): boolean => kindOfHost(hostname) === 'loopback'

function parse(name: string, value: string | URL): URL {
  const text = String(value)
  if (!URL.canParse(text)) {
    throw fail(`${name} is not a URL: ${JSON.stringify(text)}`, 'use an absolute URL, such as https://example.com')
  }
  const url = new URL(text)
  if (url.username || url.password) throw fail(`${name} carries a user or password`, 'leave them out')
  if (name !== 'serverUrl' && text.includes('#')) throw fail(`${name} has a fragment`, 'leave it out')
  return url
}

function checkServerUrl(value: string | URL): string {
  if (!/^https?:$/.test(parse('serverUrl', value).protocol)) {
    throw fail('serverUrl is not http or https', 'use its http or https URL')
  }
  return String(value)
}

/** Allows https, http on loopback, or a private-use scheme (MCP authorization, "Communication Security"). */
function checkRedirectUri(value: string | URL, mayBeOpen: boolean): string {
  const { protocol, hostname, port } = parse('redirectUri', value)
  const text = String(value)
  if (port === '0' && !mayBeOpen) {
    throw fail(
      'redirectUri has port 0, to which a browser cannot return',
      'set a port, or use createLoopbackRedirect; on Node.js, port 0 works for a loopback redirectUri without query, authorizationRedirectDelegate and interactive: "defer"',
    )
  }

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
  const { protocol, pathname } = parse('clientMetadataDocumentUri', value)
  const fix = 'a client id of this kind is https://host/path, without fragment, user or dot segments'
  if (protocol !== 'https:') throw fail('clientMetadataDocumentUri is not https', fix)
  if (pathname === '/') throw fail('clientMetadataDocumentUri has no path', fix)

  const path = text.replace(/^[^:]+:\/\/[^/]*/, '').split('?', 1)[0] ?? ''
  if (path.split('/').some(segment => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw fail('clientMetadataDocumentUri has dot segments', fix)
  }
  return text
}

/** Requires TLS except on loopback. */
function checkTokenEndpoint(value: string): string {
  const { protocol, hostname } = parse('tokenEndpoint', value)
  if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return value
  throw fail('tokenEndpoint is not https', 'use https; http is allowed only for loopback addresses')
}

function checkParameters(extra: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(extra)) {
    if (!RESERVED_PARAMETERS.includes(name)) continue
    const instead =
      name === 'scope' ? '`scopes`' : name === 'resource' ? '`resourceIndicator`' : 'the option of its own'
    throw fail(`additionalAuthorizationParameters cannot set ${name}`, `use ${instead}`)
  }
}

function checkClient(options: ClientOAuthOptions): void {
  const { clientId, clientSecret, grant = { type: 'authorization_code' } } = options
  if (clientSecret !== undefined && !clientId) throw fail('clientSecret without clientId', 'set both, or neither')
  if (clientSecret === '') throw fail('clientSecret is empty', 'leave it out for a public client')
  if (clientId === '') throw fail('clientId is empty', 'leave it out to register dynamically')
  const { clientIssuer, dynamicClientRegistration: { initialAccessToken } = {} } = options
  const secret =
    clientSecret !== undefined
      ? 'clientSecret'
      : initialAccessToken !== undefined && 'dynamicClientRegistration.initialAccessToken'
  if (secret && clientIssuer === undefined) {
    throw fail(`${secret} without clientIssuer`, 'set the issuer that issued it: it is sent only to this issuer')
  }
  if (clientIssuer !== undefined && !clientId && !secret) throw fail('clientIssuer without clientId', 'set both')
  if (grant.type !== 'authorization_code' && grant.type !== 'device' && !clientId) {
    throw fail(`the grant ${grant.type} needs clientId`, 'register the client with the authorization server first')
  }
  if (options.authorizationRedirectDelegate && options.authorizationCallbackHandler) {
    throw fail('authorizationRedirectDelegate and authorizationCallbackHandler are both set', 'set one of them')
  }
  if (grant.type === 'authorization_code' && options.redirectUri === undefined && options.interactive !== 'never') {
    throw fail(
      'redirectUri is missing',
      'set it to a URL of this client, such as http://127.0.0.1:8765/callback, or set interactive: "never"',
    )
  }
}

/** Throws an AuthError `invalid_options`. `opensRedirects`: port 0 is replaced by a real port. */
export function resolveOptions(all: ClientOAuthOptions, opensRedirects = false): ResolvedOptions {
  checkOptions(all)
  const options = given(all) as ClientOAuthOptions
  checkClient(options)
  checkParameters(options.additionalAuthorizationParameters ?? {})
  checkScopes('scopes', options.scopes ?? [])
  const { redirectUri, clientMetadataDocumentUri, dynamicClientRegistration } = options
  return {
    ...DEFAULTS,
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
