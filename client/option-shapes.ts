// What each option of `createAuthFetch` may be, as a table: the compiler holds it in step with the types.
import type { TokenCache } from './cache/types.ts'
import type { FlowStore } from './flow-store.ts'
import type { NetworkPolicy } from './net-policy.ts'
import type { ClientOAuthOptions, DynamicClientRegistration, Grant, IdentityProvider } from './options.ts'

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
    what: "the API of OpenTelemetry: import * as api from '@opentelemetry/api'",
    fits: value =>
      isRecord(value) && ['trace', 'context', 'propagation', 'SpanKind'].every(name => isRecord(value[name])),
  },
}
