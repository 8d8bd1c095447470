// Authenticates callers by opaque tokens (RFC 7662), and enforces `authorize` of routes.

import { LRUCache } from 'lru-cache'
import {
  basicCredentials,
  fetchJson,
  isLoopback,
  redactUrl,
  requireResource,
  sameResources,
  stringsAt,
} from '../../core/auth.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import {
  authenticateBearer,
  authorizeRoute,
  type Claims,
  isObject,
  parseDuration,
  readUser,
  StartError,
  type TokenPlace,
  type TokenVerdict,
  type VerifyToken,
} from '../../core/plugin.ts'
import { enforceDPoP } from '../families/dpop/index.ts'
import { createIssuerCheck, decodeJwt, isTime } from '../families/issuer-keys/index.ts'
import { type AuthIntrospectionOptions, authIntrospectionSchema, type FilledAuthIntrospection } from './options.ts'

const MAX_REMEMBERED = 10_000
/** Value of `Retry-After`, seconds. */
const RETRY_AFTER = 5
/** Tolerated clock skew, seconds. */
const CLOCK_TOLERANCE = 60

interface Answer {
  readonly verdict: TokenVerdict
  /** Expiry, milliseconds since the epoch. */
  readonly until: number
}

interface VerifierParts {
  introspect(token: string): Promise<Claims | undefined>
  /** Accepted audiences; undefined if not checked. */
  readonly audienceAt: ((place: TokenPlace) => readonly string[]) | undefined
  readonly cacheFor: number
}

/** Verifies tokens with a short cache and shared concurrent requests. */
function createVerifier(host: InternalHost, options: FilledAuthIntrospection, parts: VerifierParts): VerifyToken {
  const { log, clock } = host
  const { issuer, endpoint, claims: paths } = options
  const { introspect, audienceAt, cacheFor } = parts
  const { origin } = new URL(endpoint)
  /** True if another plugin of the route verifies the tokens of this issuer. */
  const isForeignIssuer = createIssuerCheck(host)
  const remembered = new LRUCache<string, Answer>({ max: MAX_REMEMBERED })
  const pending = new Map<string, Promise<TokenVerdict>>()

  function problemOf(claims: Claims): string | undefined {
    const { exp, nbf, iss, token_type: type } = claims
    const seconds = clock.now() / 1_000
    if (exp !== undefined && (!isTime(exp) || exp + CLOCK_TOLERANCE <= seconds)) return 'the token has expired'
    if (nbf !== undefined && (!isTime(nbf) || nbf > seconds + CLOCK_TOLERANCE))
      return 'the token is not valid yet (nbf)'
    if (iss !== undefined && issuer !== undefined && iss !== issuer) return 'the token is from another issuer'
    if (type === undefined || String(type).toLowerCase() === 'bearer') return undefined
    if (String(type).toLowerCase() !== 'dpop') return 'the token is neither a bearer token nor a DPoP token'
    return isObject(claims['cnf']) && typeof claims['cnf']['jkt'] === 'string'
      ? undefined
      : 'the introspection response has the type DPoP, but no key (cnf.jkt)'
  }

  /** True for a JWT of the plugin's issuer: another plugin must not accept it after its revocation. */
  function isOwn(token: string): boolean {
    const read = decodeJwt(token)
    return 'claims' in read && read.claims['iss'] === (issuer ?? origin)
  }

  /** Checks the issuer. Without `issuer`, the response can name any issuer, even one of another plugin's users. */
  function checkIssuer(verdict: TokenVerdict, { route }: TokenPlace): TokenVerdict {
    const named = 'user' in verdict ? verdict.user.issuer : undefined
    if (issuer !== undefined || named === undefined || named === origin) return verdict
    return isForeignIssuer(route, named) ? { refused: 'the token is of the issuer of another plugin' } : verdict
  }

  async function verify(token: string, id: string, wanted: readonly string[] | undefined): Promise<TokenVerdict> {
    const startedAt = clock.now()
    let claims: Claims | undefined
    try {
      claims = await introspect(token)
    } catch (err) {
      log.error({ code: 'MH2021', err }, 'cannot validate a token at the authorization server')
      return { unavailable: 'cannot validate the token at the authorization server', retryAfter: RETRY_AFTER }
    }
    if (!claims) return { refused: 'the token is not active', ...(!isOwn(token) && { foreign: true }) }
    const problem = problemOf(claims)
    if (problem !== undefined) return { refused: problem }
    if (wanted && !stringsAt(claims, 'aud').some(audience => wanted.includes(audience))) {
      return { refused: 'the token is for another audience', audience: wanted }
    }
    const named = typeof claims['iss'] === 'string' ? claims['iss'] : (issuer ?? origin)
    const user = readUser(claims, named, paths, options)
    if (!user) return { refused: 'the token names neither a subject (sub) nor a client' }
    const expires = isTime(claims['exp']) ? claims['exp'] * 1_000 : Number.POSITIVE_INFINITY
    const until = Math.min(startedAt + cacheFor, expires)
    if (until > startedAt) remembered.set(id, { verdict: { user }, until })
    return { user }
  }

  return function verifyToken(token, place, digest) {
    const wanted = audienceAt?.(place)
    const id = `${digest()}${wanted?.join(' ') ?? ''}`
    const known = remembered.get(id)
    if (known && clock.now() < known.until) return checkIssuer(known.verdict, place)
    const verification = pending.get(id) ?? verify(token, id, wanted).finally(() => pending.delete(id))
    pending.set(id, verification)
    return verification.then(verdict => checkIssuer(verdict, place))
  }
}

async function requestIntrospection(
  token: string,
  { endpoint, clientId, clientSecret, clientAuth }: FilledAuthIntrospection,
  signal: AbortSignal,
): Promise<Claims | undefined> {
  const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
  const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' }
  if (clientAuth === 'post') {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  } else {
    headers['Authorization'] = basicCredentials(clientId, clientSecret)
  }
  const { status, body } = await fetchJson(endpoint, { method: 'POST', body: form.toString(), headers, signal })
  const shown = redactUrl(endpoint)
  if (status === 401 || status === 403) throw new Error(`${shown} answers ${status}: check clientId and clientSecret`)
  if (status !== 200) throw new Error(`${shown} answers ${status}`)
  if (!isObject(body) || typeof body['active'] !== 'boolean')
    throw new Error(`the response of ${shown} is invalid (RFC 7662)`)
  return body['active'] ? body : undefined
}

export type { AuthIntrospectionOptions } from './options.ts'

/** Maximum cache time, milliseconds; limits the use of a revoked token. */
const MAX_CACHE = 300_000

export const authIntrospection = definePlugin<AuthIntrospectionOptions, FilledAuthIntrospection>({
  options: authIntrospectionSchema,
  provides: ['user', 'authorize'],
  setup(host, options) {
    const { endpoint, clientId, clientSecret, audience, validate } = options
    const stop = (why: string, ...key: string[]) => new StartError('MH2020', why, { at: [...host.config.at, ...key] })
    if (!endpoint || !clientId || !clientSecret) throw stop('endpoint, clientId and clientSecret must not be empty')
    if (endpoint.startsWith('http:') && !isLoopback(new URL(endpoint).hostname)) {
      const what =
        'tokens and the client secret are sent over plain http: anyone on the network path can read them; use https'
      const severity = process.env['NODE_ENV'] === 'production' ? 'error' : 'warning'
      host.report(stop(what, 'endpoint'), severity)
    }
    const cacheFor = parseDuration(options.cacheFor)
    if (cacheFor > MAX_CACHE)
      throw stop('more than 5m: revoked tokens would stay valid too long; use 5m or less', 'cacheFor')
    const fixed = audience === undefined ? undefined : [audience].flat().flatMap(sameResources)
    if (fixed?.length === 0)
      throw stop('empty; set the audience of tokens, or omit it for the URL of each route', 'audience')
    if (!validate.audience) {
      const what = 'validate.audience is off: tokens that were issued for other services are accepted'
      host.log.warn({ code: 'MH2009', check: 'audience' }, what)
    }
    const closing = new AbortController()

    const resourceAt = ({ route, params }: TokenPlace) =>
      host.services.slot('protectedResource', route).resourceOf(route, params)
    const audienceAt = validate.audience ? (place: TokenPlace) => fixed ?? sameResources(resourceAt(place)) : undefined
    const introspect = (token: string) => requestIntrospection(token, options, closing.signal)
    const verify = createVerifier(host, options, { introspect, audienceAt, cacheFor })
    host.authenticate(authenticateBearer(host, verify, enforceDPoP(host, options.dpop)))
    host.authorize(authorizeRoute(host))
    host.onReady(() => {
      if (validate.audience && !fixed) requireResource(host)
    })
    host.onClose(() => closing.abort(new Error('the host is closing')))
  },
  async underTest(options) {
    const { answerInTest } = await import('./under-test.ts')
    return answerInTest(options)
  },
})
