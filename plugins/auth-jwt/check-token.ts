// The checks of a token that jsonwebtoken leaves out or does too kindly: its header before the signature is verified,
// its claims after. Most give the reason for a refusal, or undefined.
import { type Claims, claimAt, stringsAt } from '../../core/auth.ts'
import type { Issuer } from './profile.ts'

const ACCESS_TOKEN_TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/at+jwt'])

/** Claims that only ID tokens have: a login's receipt is no right to call. */
const OF_ID_TOKENS = ['nonce', 'at_hash', 'c_hash']

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

export function headerProblem({ crit, typ, alg, kid }: Claims, issuer: Issuer): string | undefined {
  if (crit !== undefined) return 'the token has critical headers (crit), and none is understood here'
  if (typ !== undefined && (typeof typ !== 'string' || !ACCESS_TOKEN_TYPES.has(typ.toLowerCase()))) {
    return 'the type (typ) of the token is neither JWT nor at+jwt'
  }
  if (kid !== undefined && typeof kid !== 'string') return 'the key id (kid) of the token is no text'
  if (typeof alg !== 'string' || alg.toLowerCase() === 'none') return 'the token is not signed'
  if (issuer.algorithms.has(alg)) return undefined
  const named = /^[A-Za-z0-9-]{1,16}$/.test(alg) ? alg : 'of the token'
  return `the algorithm ${named} is not accepted; accepted are ${[...issuer.algorithms].join(', ')}`
}

/** Seconds. What jsonwebtoken checks of `exp` and `nbf` it checks only where they are there. */
export function lifetimeProblem({ exp, iat, nbf }: Claims, now: number, tolerance: number): string | undefined {
  if (!isTime(exp)) return 'the token has no time at which it expires (exp)'
  if (exp + tolerance <= now) return 'the token expired'
  if (nbf !== undefined && (!isTime(nbf) || nbf > now + tolerance)) return 'the token is not valid yet (nbf)'
  if (iat !== undefined && (!isTime(iat) || iat > now + tolerance)) return 'the token was issued in the future (iat)'
  return undefined
}

export const isFor = (claims: Claims, issuer: Issuer, wanted: readonly string[]): boolean =>
  stringsAt(claims, issuer.claims.audience).some(audience => wanted.includes(audience))

export function purposeProblem(claims: Claims, issuer: Issuer): string | undefined {
  const mark = OF_ID_TOKENS.find(name => Object.hasOwn(claims, name))
  if (mark !== undefined) return `the token is an ID token: it has ${mark}`
  const required = Object.entries(issuer.claims.required ?? {})
  const unmet = required.find(([path, value]) => claimAt(claims, path) !== value)
  return unmet && `the claim ${unmet[0]} of the token is not "${unmet[1]}"`
}
