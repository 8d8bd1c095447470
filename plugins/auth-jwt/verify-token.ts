// Verifies access tokens, with a cache by token hash and audience.
import { LRUCache } from 'lru-cache'
import { claimAt, sameResources, stringsAt } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import { lruLimit } from '../../core/internal.ts'
import {
  type Claims,
  type Route,
  readUser,
  type TokenPlace,
  type TokenVerdict,
  type VerifyToken,
} from '../../core/plugin.ts'
import {
  type Algorithm,
  decodeJwt,
  findKey,
  isTime,
  type JsonWebToken,
  type KeySource,
  loadJsonWebToken,
  type VerificationKey,
} from '../families/issuer-keys/index.ts'
import type { Issuer, OwnIssuer, Profile } from './issuers.ts'

const ACCESS_TOKEN_TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/at+jwt'])

/** Claims that only ID tokens have. An ID token does not authorize calls. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

function headerProblem({ crit, typ, alg, kid }: Claims, issuer: Issuer): string | undefined {
  if (crit !== undefined) return 'the token has critical headers (crit), which are not supported'
  if (typ !== undefined && (typeof typ !== 'string' || !ACCESS_TOKEN_TYPES.has(typ.toLowerCase()))) {
    return 'the type (typ) of the token is neither JWT nor at+jwt'
  }
  if (kid !== undefined && typeof kid !== 'string') return 'the key id (kid) of the token is not a string'
  if (typeof alg !== 'string' || alg.toLowerCase() === 'none') return 'the token is not signed'
  if (issuer.algorithms.has(alg)) return undefined
  const algorithmName = /^[A-Za-z0-9-]{1,16}$/.test(alg) ? alg : 'of the token'
  return `the algorithm ${algorithmName} is not accepted; accepted are ${[...issuer.algorithms].join(', ')}`
}

/** Times in seconds. jsonwebtoken checks `exp` and `nbf` only if they are present. */
function lifetimeProblem({ exp, iat, nbf }: Claims, now: number, tolerance: number): string | undefined {
  if (!isTime(exp)) return 'the token has no expiry time (exp)'
  if (exp + tolerance <= now) return 'the token has expired'
  const early = (time: unknown, what: string) => {
    if (time === undefined || (isTime(time) && time <= now + tolerance)) return undefined
    if (!isTime(time)) return `${what}: not a number`
    return `${what}: by ${Math.ceil(time - now)} s, tolerance ${tolerance} s; check the clocks of the issuer and of this host`
  }
  return early(nbf, 'the token is not valid yet (nbf)') ?? early(iat, 'the token was issued in the future (iat)')
}

const hasAudience = (claims: Claims, issuer: Issuer, expected: readonly string[]): boolean =>
  stringsAt(claims, issuer.claims.audience).some(audience => expected.includes(audience))

function claimProblem(claims: Claims, issuer: Issuer): string | undefined {
  const idTokenClaim = ID_TOKEN_CLAIMS.find(name => Object.hasOwn(claims, name))
  if (idTokenClaim !== undefined) return `the token is an ID token: it has ${idTokenClaim}`
  const required = Object.entries(issuer.claims.required ?? {})
  const unmet = required.find(([path, value]) => claimAt(claims, path) !== value)
  return unmet && `the claim ${unmet[0]} of the token is not "${unmet[1]}"`
}

const MAX_CACHED = 10_000
const NO_OWN_ISSUERS: ReadonlyMap<Route, OwnIssuer> = new Map()

interface CachedVerdict {
  readonly verdict: { readonly user: User }
  readonly source: KeySource
  readonly key: VerificationKey
  readonly until: number
}

type Refusal = Extract<TokenVerdict, { refused: string }>
type Outcome = Exclude<TokenVerdict, { user: User }> | CachedVerdict

export interface VerifierSettings {
  readonly profile: Profile
  readonly own?: ReadonlyMap<Route, OwnIssuer>
  resourceAt(place: TokenPlace): string
  readonly now?: () => number
}

export function createVerifier(settings: VerifierSettings): VerifyToken {
  const { profile, own: ownIssuers = NO_OWN_ISSUERS, resourceAt, now = Date.now } = settings
  const { issuers, validate, clockTolerance } = profile
  const cache = new LRUCache<string, CachedVerdict>(lruLimit(MAX_CACHED))
  const usesResource = [...issuers.values(), ...ownIssuers.values()].some(({ audience }) => audience === undefined)
  const [firstIssuer] = issuers.values()
  let jwt: JsonWebToken | undefined

  function issuerOf({ iss }: Claims, own: OwnIssuer | undefined): Issuer | undefined {
    const isNamed = typeof iss === 'string' && iss !== ''
    const named = isNamed ? (issuers.get(iss) ?? (own?.name === iss ? own : undefined)) : undefined
    return named ?? (validate.issuer ? undefined : (firstIssuer ?? own))
  }

  function checkClaims(claims: Claims, issuer: Issuer, resource: string): Refusal | undefined {
    const lifetime = validate.lifetime ? lifetimeProblem(claims, now() / 1_000, clockTolerance) : undefined
    if (lifetime !== undefined) return { refused: lifetime }
    const audience = issuer.audience ?? sameResources(resource)
    if (validate.audience && !hasAudience(claims, issuer, audience)) {
      return { refused: 'the token is for another audience', audience }
    }
    const problem = claimProblem(claims, issuer)
    return problem === undefined ? undefined : { refused: problem }
  }

  async function verify(token: string, resource: string, own: OwnIssuer | undefined): Promise<Outcome> {
    const parsed = decodeJwt(token)
    if ('refused' in parsed) return { ...parsed, foreign: true }
    const { header, claims } = parsed
    const issuer = issuerOf(claims, own)
    if (!issuer) {
      const iss = typeof claims['iss'] === 'string' ? claims['iss'] : ''
      const names = { issuer: iss, issuers: [...issuers.keys(), ...(own ? [own.name] : [])] }
      return { refused: 'the token is from another issuer', ...names, foreign: true }
    }
    const problem = headerProblem(header, issuer)
    if (problem !== undefined) return { refused: problem }
    // Checks claims before keys, so that invalid tokens cause no request to the issuer.
    const claimRefusal = checkClaims(claims, issuer, resource)
    if (claimRefusal) return claimRefusal
    const [algorithm, kid] = [header['alg'] as Algorithm, header['kid'] as string | undefined]
    const found = await issuer.keys.find(kid, algorithm)
    if ('unavailable' in found) return found
    jwt ??= await loadJsonWebToken()
    const { key, reason } = findKey(jwt, token, algorithm, found.keys)
    if (!key) return { refused: reason ?? '' }
    const name = typeof claims['iss'] === 'string' ? claims['iss'] : issuer.name
    const user = readUser(claims, name, issuer.claims, profile)
    if (!user) return { refused: 'the token names neither a subject (sub) nor a client' }
    const exp = claims['exp']
    const until = validate.lifetime && typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
    return { verdict: { user }, source: issuer.keys, key, until }
  }

  return function verifyToken(token, place, digest) {
    const resource = usesResource ? resourceAt(place) : ''
    const own = ownIssuers.get(place.route)
    // The authorization servers of this host have separate caches, because they are separate by route.
    const cacheKey = `${digest()}${own?.cacheKey ?? ''} ${resource}`
    const entry = cache.get(cacheKey)
    if (entry && now() < entry.until && entry.source.isCurrent(entry.key)) return entry.verdict
    return verify(token, resource, own).then(outcome => {
      if (!('verdict' in outcome)) return outcome
      cache.set(cacheKey, outcome)
      return outcome.verdict
    })
  }
}
