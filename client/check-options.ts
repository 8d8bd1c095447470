// Checks the type of each option of `createAuthFetch`, and reports unknown names.
import { distance } from 'fastest-levenshtein'
import { AuthError } from './errors.ts'
import type { FlowStore } from './flow-store.ts'
import type { NetworkPolicy } from './net-policy.ts'
import type { ClientOAuthOptions, DynamicClientRegistration, Grant, IdentityProvider } from './options.ts'
import { isScope, printable } from './text.ts'
import type { TokenCache } from './token-cache.ts'

const simplify = (name: string): string => name.toLowerCase().replace(/[-_\s]/g, '')

/** The closest of `known`, or undefined when none is close. Case, dashes and underscores do not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = simplify(name)
  // Two letters swapped are two steps; short names would match anything.
  const allowed = plain.length < 4 ? 1 : Math.max(2, Math.floor(plain.length / 3))
  const near = known
    .map(one => ({ one, steps: distance(plain, simplify(one)) }))
    .filter(({ steps }) => steps <= allowed)
    .sort((a, b) => a.steps - b.steps)
  return near[0]?.one
}

/** One option. */
export interface Fit {
  /** In words, after "give". */
  readonly what: string
  readonly fits: (value: unknown) => boolean
  /** The texts that it may be, for "did you mean". */
  readonly known?: readonly string[]
  /** Members, each with its own rule; others are mistakes. */
  readonly members?: Shape
  /** Never shown, not even where it is wrong. */
  readonly secret?: true
  readonly needed?: true
}

export type Shape = Readonly<Record<string, Fit>>

type ShapeOf<T> = { readonly [Name in keyof Required<T>]: Fit }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is string => typeof value === 'string'
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)
const isFunction = (value: unknown): boolean => typeof value === 'function'

const text: Fit = { what: 'a text', fits: isText }
const secret: Fit = { ...text, secret: true }
const url: Fit = { what: 'a text or a URL', fits: value => isText(value) || value instanceof URL }
const texts: Fit = { what: 'a list of texts', fits: isTexts }
const truth: Fit = { what: 'true or false', fits: value => typeof value === 'boolean' }
const call: Fit = { what: 'a function', fits: isFunction }
const quoted = (values: readonly string[]) => values.map(value => `'${value}'`).join(', ')

const oneOf = (...known: readonly string[]): Fit => ({
  what: `one of ${quoted(known)}`,
  fits: value => isText(value) && known.includes(value),
  known,
})

/** Longer waits overflow a timer, which then fires at once. */
const MAX_MS = 2_147_483_647

const number = (what: string, most = Number.POSITIVE_INFINITY): Fit => ({
  what,
  fits: value => typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= most,
})

const count: Fit = {
  what: 'a whole number of 0 or more',
  fits: value => Number.isSafeInteger(value) && (value as number) >= 0,
}

const members = (what: string, shape: Shape): Fit => ({ what, fits: isRecord, members: shape })

const needed = (fit: Fit): Fit => ({ ...fit, needed: true })

/** An object of the caller's own making, such as an instance of a class: it has these methods, and what else it likes. */
function object(what: string, methods: readonly string[], others: readonly string[] = []): Fit {
  const has = (value: object, name: string, optional: boolean) => {
    const member = (value as Record<string, unknown>)[name]
    return typeof member === 'function' || (optional && member === undefined)
  }
  const fits = (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    methods.every(name => has(value, name, false)) &&
    others.every(name => has(value, name, true))
  return { what: `${what}: an object with ${methods.join(' and ')}`, fits }
}

const cacheMethods = ['getTokens', 'storeTokens'] satisfies (keyof TokenCache)[]
const moreCacheMethods = ['deleteTokens', 'withLock', 'leaseLogin'] satisfies (keyof TokenCache)[]
const flowMethods = ['save', 'take'] satisfies (keyof FlowStore)[]

const networkPolicy: ShapeOf<NetworkPolicy> = { blockPrivateNetworks: truth, allowHosts: texts }

const registration: Fit = {
  what: 'a registration of an earlier run: an object with issuer and clientId',
  fits: value => isRecord(value) && isText(value['issuer']) && isText(value['clientId']),
  secret: true,
}

const dynamicClientRegistration: ShapeOf<DynamicClientRegistration> = {
  clientName: text,
  clientUri: text,
  initialAccessToken: secret,
  applicationType: oneOf('native', 'web'),
  responseDelegate: call,
  enabled: truth,
  metadata: { what: 'an object of client metadata (RFC 7591)', fits: isRecord },
  registration,
}

const idp: ShapeOf<IdentityProvider> = {
  issuer: text,
  tokenEndpoint: text,
  clientId: needed(text),
  clientSecret: secret,
}

/** The members of a grant, by its type. */
export const GRANTS: { readonly [Type in Grant['type']]: ShapeOf<Extract<Grant, { type: Type }>> } = {
  authorization_code: { type: text },
  client_credentials: { type: text },
  jwt_bearer: { type: text, assertion: needed(call) },
  enterprise: { type: text, idToken: needed(call), idp: needed(members('an object with clientId', idp)) },
  device: { type: text, onUserCode: needed(call) },
}

const grantTypes = Object.keys(GRANTS)

const grant: Fit = { what: `an object whose type is one of ${quoted(grantTypes)}`, fits: isRecord, known: grantTypes }

const parameters: Fit = {
  what: 'an object of texts',
  fits: value => isRecord(value) && Object.values(value).every(isText),
}

const issuers: Fit = {
  what: "an object with a list of issuers for each server's URL",
  fits: value => isRecord(value) && Object.values(value).every(isTexts),
}

const isAbsolute = (value: unknown): boolean => isText(value) && URL.canParse(value) && !value.includes('#')

const resource: Fit = {
  what: "'auto', 'omit', or an absolute URI without a fragment (RFC 8707)",
  fits: value => value === 'auto' || value === 'omit' || isAbsolute(value),
  known: ['auto', 'omit'],
}

const dpop: Fit = {
  what: "'auto', true or false",
  fits: value => value === 'auto' || typeof value === 'boolean',
  known: ['auto'],
}

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
  dynamicClientRegistration: members('an object', dynamicClientRegistration),
  additionalAuthorizationParameters: parameters,
  tokenCache: object('a token cache', cacheMethods, moreCacheMethods),
  flowStore: object('a flow store', flowMethods),
  fetch: call,
  profile: text,
  grant,
  privateKey: {
    what: 'a PKCS#8 PEM, a private JWK or a CryptoKey',
    fits: value => isText(value) || isRecord(value),
    secret: true,
  },
  alg: text,
  kid: text,
  tokenEndpointAuthMethod: oneOf('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'),
  clientAuthentication: call,
  dpop,
  offlineAccess: dpop,
  resourceIndicator: resource,
  resourceMatch: oneOf('exact-or-origin', 'path-prefix'),
  issuerMatch: oneOf('exact', 'ignore-trailing-slash'),
  trustedIssuers: issuers,
  assumePkceS256: texts,
  tokenEndpoint: text,
  refreshScope: oneOf('omit', 'granted'),
  legacyFallback: truth,
  refreshLeewaySeconds: number('a number of 0 or more'),
  maxStepUps: count,
  interactive: oneOf('post', 'any', 'never', 'defer'),
  loginTimeoutMs: number(`a number of milliseconds from 0 to ${MAX_MS}`, MAX_MS),
  networkPolicy: members('an object', networkPolicy),
  onEvent: call,
  openTelemetry: {
    what: `the module @opentelemetry/api: import * as api from ${quoted(['@opentelemetry/api'])}`,
    fits: value =>
      isRecord(value) && ['trace', 'context', 'propagation', 'SpanKind'].every(name => isRecord(value[name])),
  },
}

const wrong = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** What a caller gave, in a few words; of a secret only its kind. */
function describe(value: unknown, { secret }: Fit): string {
  if (secret) return kindOf(value)
  if (typeof value === 'string') return printable(JSON.stringify(value.slice(0, 60)))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
}

function meant(value: unknown, known: readonly string[] | undefined): string {
  const near = typeof value === 'string' && known ? nearest(value, known) : undefined
  return near === undefined ? '' : `; did you mean '${near}'?`
}

function checkNames(path: string, given: object, shape: Shape): void {
  const known = Object.keys(shape)
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(shape, name)) continue
    const near = nearest(name, known)
    const fix = near === undefined ? `there are: ${known.join(', ')}` : `did you mean ${path}${near}?`
    throw wrong(`there is no option ${path}${printable(name, 60)}`, fix)
  }
}

function checkMember(path: string, value: unknown, fit: Fit): void {
  if (value === undefined) {
    if (fit.needed) throw wrong(`${path} is missing`, `give ${fit.what}`)
    return
  }
  if (!fit.fits(value)) throw wrong(`${path} is ${describe(value, fit)}`, `give ${fit.what}${meant(value, fit.known)}`)
  if (fit.members) checkShape(`${path}.`, value as object, fit.members)
}

function checkShape(path: string, given: object, shape: Shape): void {
  checkNames(path, given, shape)
  for (const [name, fit] of Object.entries(shape)) {
    checkMember(`${path}${name}`, (given as Record<string, unknown>)[name], fit)
  }
}

function checkGrant(grant: { readonly type?: unknown }): void {
  const { type } = grant
  const types: Readonly<Record<string, Shape>> = GRANTS
  const shape = typeof type === 'string' && Object.hasOwn(types, type) ? types[type] : undefined
  if (shape) {
    checkShape('grant.', grant, shape)
    return
  }
  const fit = OPTIONS.grant
  const found = type === undefined ? 'missing' : describe(type, fit)
  throw wrong(
    `grant.type is ${found}`,
    `give ${fit.what.replace('an object whose type is ', '')}${meant(type, fit.known)}`,
  )
}

/** Throws an AuthError `invalid_options` for the first option that does not fit. */
export function checkOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw wrong(`the options are ${kindOf(options)}`, 'give an object with at least serverUrl')
  }
  checkShape('', options, OPTIONS)
  const { grant } = options as { grant?: { readonly type?: unknown } }
  if (grant !== undefined) checkGrant(grant)
}

/** Throws an AuthError `invalid_options` for what is no scope (RFC 6749 §3.3). */
export function checkScopes(name: string, scopes: readonly string[]): void {
  if (!Array.isArray(scopes)) throw wrong(`${name} is ${kindOf(scopes)}`, 'give a list of texts')
  const bad = scopes.find(scope => !isScope(scope))
  if (bad === undefined) return
  throw wrong(
    `${name} has ${printable(JSON.stringify(bad) ?? '', 80)}`,
    'each is one scope, without spaces or quotes (RFC 6749 §3.3)',
  )
}
