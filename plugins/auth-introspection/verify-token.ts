// Verifies opaque tokens by introspection, with a short cache and shared concurrent requests.
import { LRUCache } from 'lru-cache'
import { stringsAt } from '../../core/auth.ts'
import {
  type ClaimPaths,
  type Claims,
  isObject,
  type Logger,
  readUser,
  type TokenPlace,
  type TokenVerdict,
  type VerifyToken,
} from '../../core/plugin.ts'
import { readToken } from '../families/issuer-keys/index.ts'

const MAX_REMEMBERED = 10_000
/** Seconds. */
const RETRY_AFTER = 5
/** Seconds. */
const CLOCK_TOLERANCE = 60

export interface VerifierSettings {
  ask(token: string): Promise<Claims | undefined>
  readonly issuer: string | undefined
  readonly origin: string
  /** Another plugin of the route verifies the tokens of this issuer. */
  isForeignIssuer?(route: TokenPlace['route'], issuer: string): boolean
  /** Accepted audiences; undefined if not checked. */
  audienceAt: ((place: TokenPlace) => readonly string[]) | undefined
  readonly cacheFor: number
  readonly claims: ClaimPaths | undefined
  readonly streamsOutliveToken?: boolean | undefined
  readonly log: Logger
  readonly now?: () => number
}

interface Answer {
  readonly verdict: TokenVerdict
  /** Milliseconds. */
  readonly until: number
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

export function createVerifier(settings: VerifierSettings): VerifyToken {
  const { ask, issuer, origin, isForeignIssuer, audienceAt, cacheFor, claims: paths, log, now = Date.now } = settings
  const remembered = new LRUCache<string, Answer>({ max: MAX_REMEMBERED })
  const asking = new Map<string, Promise<TokenVerdict>>()

  function problemOf(claims: Claims): string | undefined {
    const { exp, nbf, iss, token_type: type } = claims
    const seconds = now() / 1_000
    if (exp !== undefined && (!isTime(exp) || exp + CLOCK_TOLERANCE <= seconds)) return 'the token expired'
    if (nbf !== undefined && (!isTime(nbf) || nbf > seconds + CLOCK_TOLERANCE))
      return 'the token is not valid yet (nbf)'
    if (iss !== undefined && issuer !== undefined && iss !== issuer) return 'the token is of another issuer'
    if (type === undefined || String(type).toLowerCase() === 'bearer') return undefined
    if (String(type).toLowerCase() !== 'dpop') return 'the token is neither a bearer token nor a DPoP token'
    return isObject(claims['cnf']) && typeof claims['cnf']['jkt'] === 'string'
      ? undefined
      : 'the answer about the token says DPoP, and not to which key it is bound (cnf.jkt)'
  }

  /** A JWT of the plugin's issuer. If it is revoked, another plugin that verifies its signature must not accept it. */
  function isOwn(token: string): boolean {
    const read = readToken(token)
    return 'claims' in read && read.claims['iss'] === (issuer ?? origin)
  }

  /** Without `issuer`, the response can name any issuer, also that of another plugin's users. */
  function checkIssuer(verdict: TokenVerdict, { route }: TokenPlace): TokenVerdict {
    const named = 'user' in verdict ? verdict.user.issuer : undefined
    if (issuer !== undefined || named === undefined || named === origin) return verdict
    return isForeignIssuer?.(route, named) ? { refused: 'the token is of the issuer of another plugin' } : verdict
  }

  async function verify(token: string, id: string, wanted: readonly string[] | undefined): Promise<TokenVerdict> {
    const asked = now()
    let claims: Claims | undefined
    try {
      claims = await ask(token)
    } catch (err) {
      log.error({ code: 'MH2021', err }, 'the authorization server cannot be asked about a token')
      return { unavailable: 'the authorization server cannot be asked about the token', retryAfter: RETRY_AFTER }
    }
    if (!claims) return { refused: 'the token is not active', ...(!isOwn(token) && { foreign: true }) }
    const problem = problemOf(claims)
    if (problem !== undefined) return { refused: problem }
    if (wanted && !stringsAt(claims, 'aud').some(audience => wanted.includes(audience))) {
      return { refused: 'the token is for another audience', audience: wanted }
    }
    const named = typeof claims['iss'] === 'string' ? claims['iss'] : (issuer ?? origin)
    const user = readUser(claims, named, paths, settings)
    if (!user) return { refused: 'the token names neither a subject (sub) nor a client' }
    const expires = isTime(claims['exp']) ? claims['exp'] * 1_000 : Number.POSITIVE_INFINITY
    const until = Math.min(asked + cacheFor, expires)
    if (until > asked) remembered.set(id, { verdict: { user }, until })
    return { user }
  }

  return function verifyToken(token, place, digest) {
    const wanted = audienceAt?.(place)
    const id = `${digest()}${wanted?.join(' ') ?? ''}`
    const known = remembered.get(id)
    if (known && now() < known.until) return checkIssuer(known.verdict, place)
    const answer = asking.get(id) ?? verify(token, id, wanted).finally(() => asking.delete(id))
    asking.set(id, answer)
    return answer.then(verdict => checkIssuer(verdict, place))
  }
}
