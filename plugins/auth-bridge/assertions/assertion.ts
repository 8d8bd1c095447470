// Checks identity assertions (ID-JAG): JWTs in which a trusted issuer says who somebody is, for one client at this server.
// draft-ietf-oauth-identity-assertion-authz-grant, sections 3 and 4.4.
import type { Claims } from '../../../core/auth.ts'
import { type Algorithm, ASYMMETRIC, loadJsonWebToken, readToken, signer } from '../../families/issuer-keys/index.ts'
import type { TrustedIssuer, TrustedIssuers } from './trusted-issuers.ts'

const TYPE = 'oauth-id-jag+jwt'
/** Seconds that clocks may be apart. */
const TOLERANCE = 60
/** Seconds from `iat` to `exp`. */
const MAX_LIFE = 600
/** Characters of an assertion, and of the names in it. */
const MAX_ASSERTION = 16_384
const MAX_NAME = 512

export interface Assertion {
  readonly from: TrustedIssuer
  readonly claims: Claims
  readonly subject: string
  /** `jti`. */
  readonly id: string
  /** Milliseconds since the epoch at which nobody takes it any more. */
  readonly until: number
}

export type Checked =
  | { readonly assertion: Assertion }
  /** For the client; nothing of the assertion is in it. */
  | { readonly refused: string }
  /** Seconds. */
  | { readonly unavailable: string; readonly retryAfter: number }

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_NAME

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

function headerProblem({ crit, typ, alg, kid }: Claims): string | undefined {
  if (crit !== undefined) return 'it has critical headers (crit), and none is understood here'
  if (typ !== TYPE) return `its type (typ) is not ${TYPE}`
  if (!ASYMMETRIC.some(one => one === alg)) return `its algorithm (alg) is not one of ${ASYMMETRIC.join(', ')}`
  return kid === undefined || typeof kid === 'string' ? undefined : 'its key id (kid) is no text'
}

function timeProblem({ exp, iat, nbf }: Claims, now: number): string | undefined {
  if (!isTime(exp)) return 'it has no time at which it expires (exp)'
  if (!isTime(iat)) return 'it has no time at which it was issued (iat)'
  if (exp + TOLERANCE <= now) return 'it has expired'
  if (iat > now + TOLERANCE) return 'it was issued in the future (iat): compare the clocks'
  if (nbf !== undefined && (!isTime(nbf) || nbf > now + TOLERANCE)) return 'it is not valid yet (nbf)'
  return exp - iat > MAX_LIFE ? `it is valid for more than ${MAX_LIFE / 60} minutes (exp, iat)` : undefined
}

/** The audience as one text; undefined where there is none, or several. */
function onlyAudience({ aud }: Claims): unknown {
  return Array.isArray(aud) ? (aud.length === 1 ? aud[0] : undefined) : aud
}

interface Expected {
  readonly audience: string
  readonly clientId: string
  /** Seconds. */
  readonly now: number
}

function claimsProblem(claims: Claims, from: TrustedIssuer, { audience, clientId, now }: Expected): string | undefined {
  if (onlyAudience(claims) !== audience) return `its audience (aud) is not this server, ${audience}, alone`
  if (claims['client_id'] !== clientId) return 'it was made for another client (client_id)'
  if (!isName(claims['sub'])) return 'it names nobody (sub)'
  if (!isName(claims['jti'])) return 'it has no id (jti)'
  // Of an issuer with several tenants the same `sub` may be another person in each.
  if (claims['tenant'] !== from.tenant) return 'its tenant is not the one that is trusted'
  // Nothing here would ask the client to prove that it has the key.
  if (claims['cnf'] !== undefined) return 'it is bound to a key (cnf), which is not supported here'
  return timeProblem(claims, now)
}

/** Seconds since the epoch, as `now` for `claimsProblem`. */
const inSeconds = (milliseconds: number) => milliseconds / 1_000

/** Everything but whether it was used before. `audience`: our issuer. */
export function createAssertionCheck(trusted: TrustedIssuers, audience: string, now: () => number = Date.now) {
  return async (text: string, clientId: string): Promise<Checked> => {
    const read = text.length > MAX_ASSERTION ? undefined : readToken(text)
    if (!read || 'refused' in read) return { refused: 'it is no signed JWT' }
    const { header, claims } = read
    const from = typeof claims['iss'] === 'string' ? trusted.get(claims['iss']) : undefined
    if (!from) return { refused: 'its issuer (iss) is not trusted here' }
    // What is refused for what it says needs no key: garbage costs no question to the issuer.
    const expected = { audience, clientId, now: inSeconds(now()) }
    const problem = headerProblem(header) ?? claimsProblem(claims, from, expected)
    if (problem !== undefined) return { refused: problem }
    const algorithm = header['alg'] as Algorithm
    const found = await from.keys.find(header['kid'] as string | undefined, algorithm)
    if ('unavailable' in found)
      return { unavailable: 'the keys of its issuer cannot be fetched now', retryAfter: found.retryAfter }
    const { key } = signer(await loadJsonWebToken(), text, algorithm, found.keys)
    if (!key) return { refused: 'its signature is of no key of its issuer' }
    const { sub, jti, exp } = claims as { sub: string; jti: string; exp: number }
    return { assertion: { from, claims, subject: sub, id: jti, until: (exp + TOLERANCE) * 1_000 } }
  }
}
