// Issuer keys and token signatures, for plugins that verify JWTs.

import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import type { SigningKey } from 'jwks-rsa'
import { fetchJson, IDENTIFIER, parseJson, redactUrl } from '../../../core/auth.ts'
import type { InternalHost } from '../../../core/internal.ts'
import { type Claims, errorText, isObject, type Logger, type Route } from '../../../core/plugin.ts'

/** EdDSA means Ed25519, its name since RFC 9864. */
export const ASYMMETRIC = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const),
  ...(['EdDSA', 'Ed25519'] as const),
] as const
export const SYMMETRIC = ['HS256', 'HS384', 'HS512'] as const
export type Algorithm = (typeof ASYMMETRIC)[number] | (typeof SYMMETRIC)[number]

const audience = { type: 'string', minLength: 1, ...IDENTIFIER } as const
export const AUDIENCE_SCHEMA = {
  anyOf: [audience, { type: 'array', items: audience, minItems: 1 }],
  description: 'Accepted audiences; a token needs one of them. Default: the resource of the route.',
} as const

export interface VerificationKey {
  readonly kid: string | undefined
  /** The only algorithm of the key, if its owner restricts it. */
  readonly alg: string | undefined
  readonly key: KeyObject
  readonly pem: string
}

type KeyLookup =
  | { readonly keys: readonly VerificationKey[] }
  | { readonly unavailable: string; readonly retryAfter: number }

export interface KeySource {
  find(kid: string | undefined, algorithm: Algorithm): KeyLookup | Promise<KeyLookup>
  /** True if earlier verifications with the key are still valid. */
  isCurrent(key: VerificationKey): boolean
}

const MIN_RSA_BITS = 2048

function weaknessOf({ key }: VerificationKey): string | undefined {
  const bits = key.asymmetricKeyDetails?.modulusLength
  return bits !== undefined && bits < MIN_RSA_BITS ? `has ${bits} bits; at least ${MIN_RSA_BITS} are needed` : undefined
}

const isEdwards = (algorithm: string | undefined): algorithm is 'EdDSA' | 'Ed25519' =>
  algorithm === 'EdDSA' || algorithm === 'Ed25519'

function fitsType({ asymmetricKeyType, type }: KeyObject, algorithm: Algorithm): boolean {
  if (algorithm.startsWith('HS')) return type === 'secret'
  if (isEdwards(algorithm)) return asymmetricKeyType === 'ed25519'
  if (algorithm.startsWith('ES')) return asymmetricKeyType === 'ec'
  return asymmetricKeyType === 'rsa' || (algorithm.startsWith('PS') && asymmetricKeyType === 'rsa-pss')
}

/** Returns the keys to try for a token. `lenient` (`validate.signingKey: false`) ignores `kid`, `alg` and key size. */
export function selectKeys(
  keys: readonly VerificationKey[],
  kid: string | undefined,
  algorithm: Algorithm,
  lenient: boolean,
): VerificationKey[] {
  const hasKid = (key: VerificationKey) => kid === undefined || key.kid === undefined || key.kid === kid
  const hasAlg = (key: VerificationKey) =>
    key.alg === undefined || key.alg === algorithm || (isEdwards(key.alg) && isEdwards(algorithm))
  return keys.filter(
    key => fitsType(key.key, algorithm) && (lenient || (hasKid(key) && hasAlg(key) && weaknessOf(key) === undefined)),
  )
}

const readText = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

export function readKey(input: Readonly<Record<string, unknown>> | string): VerificationKey {
  if (isObject(input) && input['kty'] === 'oct') throw new Error('set a symmetric key as `secret`')
  let key: KeyObject
  try {
    key =
      typeof input === 'string' ? createPublicKey(input) : createPublicKey({ key: input as JsonWebKey, format: 'jwk' })
  } catch (cause) {
    throw new Error(`it cannot be read: ${errorText(cause)}`, { cause })
  }
  if (!['rsa', 'rsa-pss', 'ec', 'ed25519'].includes(key.asymmetricKeyType ?? '')) {
    throw new Error(`a key of type ${key.asymmetricKeyType} supports no accepted algorithm`)
  }
  const [kid, alg] = typeof input === 'string' ? [] : [readText(input['kid']), readText(input['alg'])]
  return { kid, alg, key, pem: key.export({ type: 'spki', format: 'pem' }).toString() }
}

export function createStaticKeys(inputs: ReadonlyArray<Record<string, unknown> | string>, lenient: boolean): KeySource {
  const keys = inputs.map(readKey)
  const weak = lenient ? undefined : keys.map(weaknessOf).find(weakness => weakness !== undefined)
  if (weak !== undefined) throw new Error(`a key ${weak}`)
  return { find: (kid, algorithm) => ({ keys: selectKeys(keys, kid, algorithm, lenient) }), isCurrent: () => true }
}

export function createSecretKeys(secret: string): KeySource {
  const keys = [{ kid: undefined, alg: undefined, key: createSecretKey(Buffer.from(secret)), pem: '' }]
  return { find: (kid, algorithm) => ({ keys: selectKeys(keys, kid, algorithm, false) }), isCurrent: () => true }
}

/** True for a NumericDate (RFC 7519). */
export const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

interface DecodedToken {
  readonly header: Claims
  readonly claims: Claims
}

/** Requires canonical base64url: no padding, no other alphabet, no unused bits, and not empty. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return part !== '' && bytes.toString('base64url') === part ? bytes : undefined
}

function readJsonPart(bytes: Buffer): Claims | undefined {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function decodeJwt(token: string): DecodedToken | { readonly refused: string } {
  const parts = token.split('.')
  if (parts.length !== 3) return { refused: 'the token is not a JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decodePart)
  if (!head || !body || !signature) return { refused: 'the token has an invalid JWT encoding' }
  const [header, claims] = [readJsonPart(head), readJsonPart(body)]
  return header && claims
    ? { header, claims }
    : { refused: 'the header or the claims of the token are not a JSON object' }
}

export const loadJsonWebToken = async () => (await import('jsonwebtoken')).default
export type JsonWebToken = Awaited<ReturnType<typeof loadJsonWebToken>>

/** Maximum keys to try for a token without `kid`, which costs one signature check per key. */
const MAX_ATTEMPTS = 32

/** jsonwebtoken does not support Ed25519. Throws the same error for an invalid signature. */
function verifyEdwards(token: string, key: KeyObject): void {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  if (!verify(null, Buffer.from(token.slice(0, end)), key, signature)) throw new Error('invalid signature')
}

export function findKey(jwt: JsonWebToken, token: string, algorithm: Algorithm, keys: readonly VerificationKey[]) {
  let reason = 'the signature of the token matches no key of its issuer'
  for (const key of keys.slice(0, MAX_ATTEMPTS)) {
    try {
      if (isEdwards(algorithm)) {
        verifyEdwards(token, key.key)
        return { key }
      }
      // Claims are checked separately, and more strictly.
      const options = { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true }
      jwt.verify(token, key.key, options)
      return { key }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if (error.message === 'invalid signature') reason = 'the signature of the token is invalid'
    }
  }
  return keys.length > MAX_ATTEMPTS
    ? { reason: `the token has no key id (kid), and its issuer has more than ${MAX_ATTEMPTS} keys for it` }
    : { reason }
}

/** Milliseconds between fetches for unknown keys. */
const UNKNOWN_KEY_INTERVAL = 10_000
/** Milliseconds between a failure and the next attempt. */
const RETRY_INTERVAL = 2_000
/** Fraction of the maximum age after which the set is renewed in the background. */
const RENEWAL_RATIO = 0.8

interface IssuerKeysSettings {
  readonly issuer: string
  readonly jwksUri: string | undefined
  readonly maxAge: number
  /** Milliseconds for which the last set is used during an outage. */
  readonly maxStale: number
  readonly lenient: boolean
  /** The issuer is this host, which does not listen yet: `warmUp` does nothing. */
  readonly isOwn?: boolean
  readonly log: Logger
  readonly onFetch?: (outcome: 'ok' | 'failed') => void
  readonly now?: () => number
}

export type IssuerKeys = ReturnType<typeof createIssuerKeys>

/** Fetches a key set. Rejects for an invalid key set; an empty set is valid. */
async function readKeySet(jwksUri: string, signal: AbortSignal): Promise<SigningKey[]> {
  const { status, body } = await fetchJson(jwksUri, { signal })
  if (status !== 200) throw new Error(`${redactUrl(jwksUri)} answers ${status}`)
  if (!isObject(body) || !Array.isArray(body['keys']))
    throw new Error(`${redactUrl(jwksUri)} is not a JSON Web Key Set`)
  const set = { keys: body['keys'].filter(isObject) }
  if (set.keys.length === 0) return []
  const { JwksClient } = await import('jwks-rsa')
  const client = new JwksClient({ jwksUri, cache: false, rateLimit: false, fetcher: async () => set })
  // `getSigningKeys` rejects for a set without signature keys.
  return client.getSigningKeys().catch(() => [])
}

function createVerificationKeys(listed: readonly SigningKey[], known: readonly VerificationKey[]): VerificationKey[] {
  return listed.flatMap(signingKey => {
    const { kid, alg } = signingKey as { kid?: string; alg?: string }
    const pem = signingKey.getPublicKey()
    const unchanged = known.find(key => key.kid === kid && key.alg === alg && key.pem === pem)
    return unchanged ?? { kid, alg, pem, key: createPublicKey(pem) }
  })
}

export function createIssuerKeys(settings: IssuerKeysSettings) {
  const { issuer, maxAge, lenient, log, now = Date.now } = settings
  const maxStale = Math.max(settings.maxStale, maxAge)
  const closed = new AbortController()
  let keys: readonly VerificationKey[] = []
  let jwksUri = settings.jwksUri
  let fetchedAt = Number.NEGATIVE_INFINITY
  let retryAt = Number.NEGATIVE_INFINITY
  let unknownKeyAt = Number.NEGATIVE_INFINITY
  let isFailing = false
  let isReported = false
  let pending: Promise<void> | undefined

  const age = () => now() - fetchedAt
  const isUsable = () => age() < (isFailing ? maxStale : maxAge)

  async function load() {
    // The age starts with the request, so that a withdrawn key expires on time.
    const requestedAt = now()
    jwksUri ??= await discoverKeys(issuer, closed.signal)
    keys = createVerificationKeys(await readKeySet(jwksUri, closed.signal), keys)
    fetchedAt = requestedAt
    for (const key of lenient ? [] : keys) {
      const weakness = weaknessOf(key)
      if (weakness !== undefined)
        log.warn({ code: 'MH2011', issuer, kid: key.kid }, `a key of the issuer is not used: it ${weakness}`)
    }
  }

  function reportFailure(err: unknown, isRequired: boolean) {
    if (closed.signal.aborted) return
    settings.onFetch?.('failed')
    if (!isRequired)
      log.warn(
        { code: 'MH2012', issuer, err },
        'the keys of the issuer cannot be fetched yet; the first token causes another attempt',
      )
    else if (!isReported)
      log.error({ code: 'MH2012', issuer, err, keys: keys.length }, 'the keys of the issuer cannot be fetched')
    isReported ||= isRequired
    isFailing = true
    jwksUri = settings.jwksUri
    if (isRequired) retryAt = now() + RETRY_INTERVAL
  }

  function refresh(isRequired = true): Promise<void> {
    pending ??= load()
      .then(() => {
        settings.onFetch?.('ok')
        if (isFailing)
          log.info({ code: 'MH2013', issuer, keys: keys.length }, 'the keys of the issuer can be fetched again')
        isFailing = isReported = false
        retryAt = Number.NEGATIVE_INFINITY
      })
      .catch((err: unknown) => reportFailure(err, isRequired))
      .finally(() => {
        pending = undefined
      })
    return pending
  }

  async function renew(): Promise<boolean> {
    if (age() < maxAge * RENEWAL_RATIO) return true
    if (now() < retryAt && !pending) return isUsable()
    const fetched = refresh()
    if (isUsable()) return true
    await fetched
    return !isFailing || isUsable()
  }

  const unavailable = () => ({
    unavailable: 'cannot fetch the keys of the authorization server',
    retryAfter: Math.max(1, Math.ceil((retryAt - now()) / 1_000)),
  })

  return {
    async find(kid: string | undefined, algorithm: Algorithm): Promise<KeyLookup> {
      if (!(await renew())) return unavailable()
      const matching = selectKeys(keys, kid, algorithm, lenient)
      if (matching.length > 0 || kid === undefined || keys.some(key => key.kid === kid)) return { keys: matching }
      if (now() >= unknownKeyAt) {
        unknownKeyAt = now() + UNKNOWN_KEY_INTERVAL
        await refresh()
      } else if (pending) await pending
      const afterRefresh = selectKeys(keys, kid, algorithm, lenient)
      return afterRefresh.length === 0 && isFailing ? unavailable() : { keys: afterRefresh }
    },
    isCurrent(key: VerificationKey): boolean {
      if (age() >= maxAge * RENEWAL_RATIO) void renew()
      return age() < maxAge && keys.includes(key)
    },
    /** Fetches the set before the first request. After a failure, the first token causes another attempt. */
    warmUp(): void {
      if (!settings.isOwn) void refresh(false)
    },
    checkUsable: renew,
    /** Milliseconds since the set was fetched. */
    age: () => (fetchedAt === Number.NEGATIVE_INFINITY ? undefined : age()),
    close: () => closed.abort(new Error('the host is closing')),
  } satisfies KeySource & Record<string, unknown>
}

/** Returns the metadata URLs in order of requests (MCP basic/authorization, "Authorization Server Metadata Discovery"). */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const openId = '/.well-known/openid-configuration'
  const urls = [`${origin}/.well-known/oauth-authorization-server${path}`, `${origin}${openId}${path}`]
  return path === '' ? urls : [...urls, `${origin}${path}${openId}`]
}

function readMetadata(body: unknown, issuer: string): { problem: string } | { jwksUri: string } {
  if (!isObject(body)) return { problem: 'is not a JSON object' }
  if (body['issuer'] !== issuer) {
    return { problem: `is of the issuer ${JSON.stringify(body['issuer'])}, and not of ${JSON.stringify(issuer)}` }
  }
  const jwksUri = body['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) return { problem: 'has no jwks_uri' }
  const { protocol } = new URL(jwksUri)
  const isAllowed = protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))
  return isAllowed ? { jwksUri } : { problem: `has a jwks_uri of ${protocol}` }
}

/** Finds the key URL. Rejects with the failures of all attempts. `issuer` must match the document exactly. */
async function discoverKeys(issuer: string, signal: AbortSignal): Promise<string> {
  const problems: string[] = []
  async function readAt(url: string) {
    const { status, body } = await fetchJson(url, { signal })
    return status === 200 ? readMetadata(body, issuer) : { problem: `answers ${status}` }
  }
  for (const url of metadataUrls(issuer)) {
    const found = await readAt(url).catch((error: unknown) => {
      if (signal.aborted) throw error
      return { problem: errorText(error) }
    })
    if ('jwksUri' in found) return found.jwksUri
    problems.push(`${url} ${found.problem}`)
  }
  throw new Error(problems.join('; '))
}

type IssuerCheck = (route: Route, issuer: string) => boolean

const ACCEPTED = Symbol('accepted issuers')

const acceptedIssuers = (host: Pick<InternalHost, 'share'>) => host.share(ACCEPTED, (): IssuerCheck[] => [])

export function registerIssuers(host: Pick<InternalHost, 'routes' | 'share'>, issuers: ReadonlyMap<string, unknown>) {
  const routes: ReadonlySet<Route> = new Set(host.routes)
  acceptedIssuers(host).push((route, issuer) => routes.has(route) && issuers.has(issuer))
}

/**
 * Creates a check that is true for issuers of the route's `auth-jwt`, and for the authorization server of this host.
 * Must be called in `setup`.
 */
export function createIssuerCheck(host: Pick<InternalHost, 'services' | 'share'>): IssuerCheck {
  const accepted = acceptedIssuers(host)
  return (route, issuer) =>
    host.services.slot('authorizationServer', route).issuer() === issuer ||
    accepted.some(accepts => accepts(route, issuer))
}
