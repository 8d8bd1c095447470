// Validates the options of `createAuthFetch` and fills in defaults.
import { distance } from 'fastest-levenshtein'
import { AuthError } from './errors.ts'
import { MAX_TIMER } from './http.ts'
import { classifyHost } from './net-policy.ts'
import type { ClientOAuthOptions, DynamicClientRegistration, Grant, IdentityProvider } from './options.ts'
import { createMemoryFlowStore, createMemoryTokenCache } from './stores.ts'
import { defined, isObject, isScope, printable } from './text.ts'

const normalizeName = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

export function findClosest(name: string, known: readonly string[]): string | undefined {
  const plain = normalizeName(name)
  // Swapped letters count as two edits. Short names would match anything.
  const allowed = plain.length < 4 ? 1 : Math.max(2, Math.floor(plain.length / 3))
  const closest = known
    .map(name => ({ one: name, steps: distance(plain, normalizeName(name)) }))
    .filter(({ steps }) => steps <= allowed)
    .sort((a, b) => a.steps - b.steps)
  return closest[0]?.one
}

interface OptionRule {
  /** The text after "give" in messages. */
  readonly what: string
  readonly accepts: (value: unknown) => boolean
  readonly known?: readonly string[]
  readonly rules?: OptionRules
  readonly secret?: true
  readonly required?: true
}

type OptionRules = Readonly<Record<string, OptionRule>>
type RulesOf<T> = { readonly [Name in keyof Required<T>]: OptionRule }

const isText = (value: unknown): value is string => typeof value === 'string'
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)

const text: OptionRule = { what: 'a text', accepts: isText }
const secret: OptionRule = { ...text, secret: true }
const url: OptionRule = { what: 'a text or a URL', accepts: value => isText(value) || value instanceof URL }
const textList: OptionRule = { what: 'a list of texts', accepts: isTexts }
const boolean: OptionRule = { what: 'true or false', accepts: value => typeof value === 'boolean' }
const func: OptionRule = { what: 'a function', accepts: value => typeof value === 'function' }
const needed = (rule: OptionRule): OptionRule => ({ ...rule, required: true })
const object = (rules: OptionRules, what = 'an object'): OptionRule => ({ what, accepts: isObject, rules })
const autoOrBoolean: OptionRule = {
  ...{ what: "'auto', true or false", known: ['auto'] },
  accepts: value => value === 'auto' || typeof value === 'boolean',
}

const oneOf = (...known: readonly string[]): OptionRule => ({
  what: `one of ${known.map(value => `'${value}'`).join(', ')}`,
  accepts: value => isText(value) && known.includes(value),
  known,
})

const number = (what: string, most = Number.MAX_VALUE): OptionRule => ({
  what,
  accepts: value => typeof value === 'number' && value >= 0 && value <= most,
})

const withMethods = (what: string, methods: readonly string[], optional: readonly string[] = []): OptionRule => ({
  what: `${what}: an object with ${methods.join(' and ')}`,
  accepts: value =>
    [...methods, ...optional].every(name => {
      const member: unknown = isObject(value) ? value[name] : undefined
      return typeof member === 'function' || (member === undefined && optional.includes(name))
    }),
})

const IDENTITY_PROVIDER = { issuer: text, tokenEndpoint: text, clientId: needed(text), clientSecret: secret }

const GRANTS: { readonly [Type in Grant['type']]: RulesOf<Extract<Grant, { type: Type }>> } = {
  authorization_code: { type: text },
  client_credentials: { type: text },
  jwt_bearer: { type: text, assertion: needed(func) },
  enterprise: {
    type: text,
    idToken: needed(func),
    idp: needed(object(IDENTITY_PROVIDER satisfies RulesOf<IdentityProvider>, 'an object with clientId')),
  },
  device: { type: text, onUserCode: needed(func) },
}
const grantType = oneOf(...Object.keys(GRANTS))

export const OPTIONS: RulesOf<ClientOAuthOptions> = {
  serverUrl: needed(url),
  redirectUri: url,
  clientId: text,
  clientSecret: secret,
  clientIssuer: text,
  clientMetadataDocumentUri: url,
  scopes: textList,
  scopeMode: oneOf('override', 'fallback'),
  scopeSelector: func,
  authServerSelector: func,
  authorizationRedirectDelegate: func,
  authorizationCallbackHandler: func,
  strictResponse: boolean,
  dynamicClientRegistration: object({
    clientName: text,
    clientUri: text,
    initialAccessToken: secret,
    applicationType: oneOf('native', 'web'),
    responseDelegate: func,
    enabled: boolean,
    metadata: { what: 'an object of client metadata (RFC 7591)', accepts: isObject },
    registration: {
      what: 'a registration of an earlier run: an object with issuer and clientId',
      accepts: value => isObject(value) && isText(value['issuer']) && isText(value['clientId']),
      secret: true,
    },
  } satisfies RulesOf<DynamicClientRegistration>),
  additionalAuthorizationParameters: {
    what: 'an object of texts',
    accepts: value => isObject(value) && Object.values(value).every(isText),
  },
  tokenCache: withMethods('a token cache', ['getTokens', 'storeTokens'], ['deleteTokens', 'withLock', 'leaseLogin']),
  flowStore: withMethods('a flow store', ['save', 'take']),
  fetch: func,
  profile: text,
  grant: { ...grantType, what: `an object whose type is ${grantType.what}`, accepts: isObject },
  privateKey: {
    what: 'a PKCS#8 PEM, a private JWK or a CryptoKey',
    accepts: value => isText(value) || isObject(value),
    secret: true,
  },
  alg: text,
  kid: text,
  tokenEndpointAuthMethod: oneOf('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'),
  clientAuthentication: func,
  dpop: autoOrBoolean,
  offlineAccess: autoOrBoolean,
  resourceIndicator: {
    what: "'auto', 'omit', or an absolute URI without a fragment (RFC 8707)",
    accepts: value =>
      value === 'auto' || value === 'omit' || (isText(value) && URL.canParse(value) && !value.includes('#')),
    known: ['auto', 'omit'],
  },
  resourceMatch: oneOf('exact-or-origin', 'path-prefix'),
  issuerMatch: oneOf('exact', 'ignore-trailing-slash'),
  trustedIssuers: {
    what: "an object with a list of issuers for each server's URL",
    accepts: value => isObject(value) && Object.values(value).every(isTexts),
  },
  assumePkceS256: textList,
  tokenEndpoint: text,
  refreshScope: oneOf('omit', 'granted'),
  legacyFallback: boolean,
  refreshLeewaySeconds: number('a number of 0 or more'),
  maxStepUps: {
    what: 'a whole number of 0 or more',
    accepts: value => Number.isSafeInteger(value) && (value as number) >= 0,
  },
  interactive: oneOf('post', 'any', 'never', 'defer'),
  loginTimeoutMs: number(`a number of milliseconds from 0 to ${MAX_TIMER}`, MAX_TIMER),
  networkPolicy: object({ blockPrivateNetworks: boolean, allowHosts: textList }),
  onEvent: func,
  openTelemetry: {
    what: "the module '@opentelemetry/api', all of it",
    accepts: value =>
      isObject(value) && ['trace', 'context', 'propagation', 'SpanKind'].every(name => isObject(value[name])),
  },
}

const fail = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function describe(value: unknown, isSecret = false): string {
  if (isSecret) return typeName(value)
  if (typeof value === 'string') return printable(JSON.stringify(value.slice(0, 60)))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : typeName(value)
}

function checkValue(path: string, value: unknown, rule: OptionRule): void {
  if (value === undefined && !rule.required) return
  if (value === undefined) throw fail(`${path} is missing`, `give ${rule.what}`)
  if (!rule.accepts(value)) {
    const closest = typeof value === 'string' && rule.known ? findClosest(value, rule.known) : undefined
    const hint = closest === undefined ? '' : `; did you mean '${closest}'?`
    throw fail(`${path} is ${describe(value, rule.secret)}`, `give ${rule.what}${hint}`)
  }
  if (rule.rules) checkMembers(`${path}.`, value as object, rule.rules)
}

function checkMembers(path: string, given: object, rules: OptionRules): void {
  const known = Object.keys(rules)
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(rules, name)) continue
    const closest = findClosest(name, known)
    const fix = closest === undefined ? `available: ${known.join(', ')}` : `did you mean ${path}${closest}?`
    throw fail(`unknown option ${path}${printable(name, 60)}`, fix)
  }
  for (const [name, rule] of Object.entries(rules))
    checkValue(`${path}${name}`, (given as Record<string, unknown>)[name], rule)
}

/** Throws an AuthError `invalid_options` for the first invalid option. */
export function checkOptions(options: unknown): void {
  if (!isObject(options)) throw fail(`the options are ${typeName(options)}`, 'pass an object with at least serverUrl')
  checkMembers('', options, OPTIONS)
  const { grant } = options as Partial<ClientOAuthOptions>
  if (grant === undefined) return
  checkValue('grant.type', grant.type, needed(grantType))
  checkMembers('grant.', grant, GRANTS[grant.type])
}

/** Throws an AuthError `invalid_options` for an invalid scope (RFC 6749 §3.3). */
export function checkScopes(name: string, scopes: readonly string[]): void {
  if (!Array.isArray(scopes)) throw fail(`${name} is ${typeName(scopes)}`, 'use a list of strings')
  const invalid = scopes.find(scope => !isScope(scope))
  if (invalid === undefined) return
  const found = printable(JSON.stringify(invalid) ?? '', 80)
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

export const isLoopback = (hostname: string): boolean => classifyHost(hostname) === 'loopback'

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
function checkRedirectUri(value: string | URL, allowsPortZero: boolean): string {
  const { protocol, hostname, port } = parse('redirectUri', value)
  const text = String(value)
  if (port === '0' && !allowsPortZero) {
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
  const options = defined(all) as ClientOAuthOptions
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
