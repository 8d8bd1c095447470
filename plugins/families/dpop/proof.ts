// Checks a DPoP proof (RFC 9449 section 4.3). Replay comes last, so that a forged proof uses up no valid one.
import { createHash } from 'node:crypto'
import { compactVerify, decodeJwt, decodeProtectedHeader, type JWK } from 'jose'
import { LRUCache } from 'lru-cache'
import type { ProofProblem } from '../../../core/auth.ts'
import { HostError } from '../../../core/index.ts'
import { type Claims, isObject } from '../../../core/plugin.ts'
import type { ProofAlgorithm } from './options.ts'
import type { Nonces, UsedProof, UseOnce } from './replay.ts'
import { canonicalTarget } from './target.ts'

/** Maximum clock difference between nodes, milliseconds: added to the time for which a used proof is remembered. */
const MAX_CLOCK_SKEW = 10_000
/** Maximum length of a proof, characters. A proof signed by RSA with 4,096 bits has about 2,400. */
const MAX_PROOF = 4_096
const MAX_ID = 128
/** Maximum characters of a URL echoed in a response header. */
const MAX_SHOWN_URL = 300
/** Value of `Retry-After`, seconds: for a store that does not respond, and for a key or user with too many proofs. */
const RETRY_AFTER = 1
const RETRY_AFTER_LIMITED = 5
const MAX_CACHED_KEYS = 1_000
/** Maximum base64url characters of an RSA exponent and of a 4,096 bit modulus. Larger ones only cost time. */
const RSA_SIZES = { e: 6, n: 683 } as const

/** Required JWK members by key type, in the order of the thumbprint (RFC 7638 section 3.2, RFC 8037 section 2). */
const REQUIRED_MEMBERS = { EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'], RSA: ['e', 'kty', 'n'] } as const
const OPTIONAL_MEMBERS: ReadonlySet<string> = new Set(['alg', 'use', 'key_ops', 'kid', 'ext'])
const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }
/** Sizes of `x` and `y`, bytes. */
const COORDINATE_SIZES: Readonly<Record<string, number>> = { 'P-256': 32, 'P-384': 48, 'P-521': 66, Ed25519: 32 }

interface ProofSettings {
  readonly algorithms: readonly ProofAlgorithm[]
  /** Maximum age of a proof, milliseconds. */
  readonly maxAge: number
  /** How far a client's clock can be ahead, milliseconds. */
  readonly clockTolerance: number
  readonly nonces: Nonces | undefined
  readonly now: () => number
}

interface ProvenRequest {
  readonly proof: string | readonly string[] | undefined
  readonly method: string
  readonly targets: readonly string[]
  /** SHA-256 of the token, base64url. */
  readonly digest: string
  /** Thumbprint of the key that the token is bound to. */
  readonly thumbprint: string
  readonly user: string
  /** Time in milliseconds since the epoch. Earlier proofs were possibly used already. */
  readonly since: number | undefined
  readonly useOnce: UseOnce
}

/** `nonce`: the nonce for the client's next proofs. */
interface ProofOutcome {
  readonly outcome: 'accepted' | 'refused' | 'replayed' | 'nonce' | 'limited' | 'unavailable'
  readonly flaw?: ProofProblem
  readonly nonce?: string
  readonly cause?: unknown
}

const refuse = (refused: string): ProofOutcome => ({
  outcome: 'refused',
  flaw: { refused, error: 'invalid_dpop_proof' },
})

const NO_URL =
  'the Host header is not a URL of this server for the proof (htu); use the port of the server, or let its ' +
  'operator set http.publicUrl, or add the name with its port to http.allowedHosts'

function keyTypeOf(algorithm: ProofAlgorithm): keyof typeof REQUIRED_MEMBERS {
  if (!algorithm.startsWith('E')) return 'RSA'
  return algorithm.startsWith('ES') ? 'EC' : 'OKP'
}

/**
 * True for the canonical spelling of a key, because every other spelling has its own thumbprint (RFC 7518 sections
 * 6.2.1.2 and 6.3.1.1). `size`: bytes of a coordinate.
 */
function isCanonical(member: string, size: number | undefined): boolean {
  const bytes = Buffer.from(member, 'base64url')
  if (bytes.toString('base64url') !== member) return false
  return size === undefined ? bytes[0] !== 0 : bytes.length === size
}

function findKeyFlaw(jwk: Claims, algorithm: ProofAlgorithm): string | undefined {
  const type = keyTypeOf(algorithm)
  const required: readonly string[] = REQUIRED_MEMBERS[type]
  const { kty, alg, use, key_ops: operations, crv, e = '', n = '' } = jwk
  const curve = type === 'OKP' ? 'Ed25519' : CURVES[algorithm]
  const isMismatch = kty !== type || (alg !== undefined && alg !== algorithm)
  // Additional members belong to a private key.
  if (kty === type && Object.keys(jwk).some(name => !required.includes(name) && !OPTIONAL_MEMBERS.has(name))) {
    return 'the key (jwk) of the proof has members that a public key does not have'
  }
  if (isMismatch || (typeof crv === 'string' && curve !== undefined && crv !== curve)) {
    return `the key (jwk) of the proof does not match ${algorithm}`
  }
  if (required.some(name => !/^[\w-]+$/.test(typeof jwk[name] === 'string' ? jwk[name] : ''))) {
    return 'the key (jwk) of the proof is incomplete or not encoded as a JWK'
  }
  if (use !== undefined && use !== 'sig') return 'the key (jwk) of the proof is not for signatures'
  if (operations !== undefined && !(Array.isArray(operations) && operations.every(name => name === 'verify'))) {
    return 'the key (jwk) of the proof is not only for operation verify'
  }
  if (String(e).length > RSA_SIZES.e) return 'the exponent of the key (jwk) of the proof is too long'
  if (String(n).length > RSA_SIZES.n) return 'the key (jwk) of the proof is too long'
  const numbers = required.filter(name => name !== 'kty' && name !== 'crv')
  const size = type === 'RSA' ? undefined : COORDINATE_SIZES[String(crv)]
  const isEachCanonical = numbers.every(name => isCanonical(String(jwk[name]), size))
  return isEachCanonical ? undefined : 'the key (jwk) of the proof is not in canonical base64url form'
}

function decode(proof: string): { readonly header: Claims; readonly claims: Claims } | undefined {
  try {
    return { header: decodeProtectedHeader(proof), claims: decodeJwt(proof) }
  } catch {
    return undefined
  }
}

async function recordUse(proof: UsedProof, useOnce: UseOnce): Promise<ProofOutcome> {
  try {
    if (await useOnce(proof)) return { outcome: 'accepted' }
    return { ...refuse('the proof was used before: each request needs its own'), outcome: 'replayed' }
  } catch (cause) {
    if (HostError.is(cause) && cause.kind === 'tooManyRequests') {
      const limited = cause.detail ?? 'too many DPoP proofs were used recently; send fewer requests per second'
      return { outcome: 'limited', flaw: { limited, retryAfter: RETRY_AFTER_LIMITED } }
    }
    const unavailable = 'the store for used DPoP proofs is not available'
    return { outcome: 'unavailable', flaw: { unavailable, retryAfter: RETRY_AFTER }, cause }
  }
}

export function createProofCheck({ algorithms, maxAge, clockTolerance, nonces, now }: ProofSettings) {
  const keyCache = new LRUCache<string, JWK>({ max: MAX_CACHED_KEYS })

  function readKey(jwk: Claims, algorithm: ProofAlgorithm, thumbprint: string): JWK | undefined {
    const members = REQUIRED_MEMBERS[keyTypeOf(algorithm)].map(name => [name, jwk[name]] as const)
    const key: JWK = Object.fromEntries(members)
    if (createHash('sha256').update(JSON.stringify(key)).digest('base64url') !== thumbprint) return undefined
    const cached = keyCache.get(thumbprint) ?? key
    keyCache.set(thumbprint, cached)
    return cached
  }

  function findHeaderFlaw({ typ, crit, jwk }: Claims, algorithm: ProofAlgorithm | undefined): string | undefined {
    if (typ !== 'dpop+jwt') return 'the type (typ) of the proof is not dpop+jwt'
    if (crit !== undefined) return 'the proof has critical headers (crit), which are not supported'
    if (algorithm === undefined) return `the algorithm of the proof is not accepted: ${algorithms.join(', ')}`
    return isObject(jwk) ? findKeyFlaw(jwk, algorithm) : 'the proof has no key (jwk)'
  }

  function findClaimFlaw({ jti, htm, htu, iat, ath }: Claims, request: ProvenRequest): string | undefined {
    const { method, targets, digest, since } = request
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID) {
      return `the id (jti) of the proof is not a string of 1 to ${MAX_ID} characters`
    }
    if (htm !== method) return `the proof is not for ${method} (htm)`
    const [url] = targets
    if (url === undefined) return NO_URL
    if (!targets.includes(canonicalTarget(htu) ?? '')) {
      return `the proof is for another URL (htu); this URL is ${url.slice(0, MAX_SHOWN_URL)}`
    }
    if (ath !== digest) return 'the proof is for another token (ath)'
    if (typeof iat !== 'number' || !Number.isFinite(iat)) return 'the proof has no time (iat)'
    const age = now() - iat * 1_000
    if (age > maxAge || -age > clockTolerance) {
      const [limit, where] = age > maxAge ? [maxAge, 'ago'] : [clockTolerance, 'ahead']
      return `the time (iat) of the proof is more than ${Math.round(limit / 1_000)} s ${where}: check the clock`
    }
    // `iat` has whole seconds, so proofs from the second in which the server started are accepted.
    if (since !== undefined && iat < Math.floor(since / 1_000)) {
      return 'the proof was created (iat) before this server started: create a proof for each request'
    }
    return undefined
  }

  function checkNonce(nonce: unknown): { readonly nonce?: string; readonly refused?: string } {
    const verdict = nonces?.checkNonce(nonce)
    if (!nonces || verdict === 'current') return {}
    const current = nonces.current()
    if (verdict === 'known') return { nonce: current }
    const state = nonce === undefined ? 'has no nonce' : 'has an expired nonce'
    return { nonce: current, refused: `the proof ${state}; use the nonce of this response` }
  }

  return async function checkProof(request: ProvenRequest): Promise<ProofOutcome> {
    const { thumbprint, user, useOnce } = request
    const proof = String(request.proof ?? '')
    if (proof === '') return refuse('the token is bound to a key, but the request has no DPoP header')
    if (proof.includes(',')) return refuse('more than one DPoP header')
    if (proof.length > MAX_PROOF) return refuse(`the proof is longer than ${MAX_PROOF} characters`)
    const decoded = /^[\w-]+\.[\w-]+\.[\w-]+$/.test(proof) ? decode(proof) : undefined
    if (!decoded) return refuse('the DPoP header is not a signed JWT')
    const { header, claims } = decoded
    const algorithm = algorithms.find(accepted => accepted === header['alg'])
    const headerFlaw = findHeaderFlaw(header, algorithm)
    if (headerFlaw !== undefined || algorithm === undefined) return refuse(headerFlaw ?? '')
    const key = readKey(header['jwk'] as Claims, algorithm, thumbprint)
    if (!key) {
      return { outcome: 'refused', flaw: { refused: 'the token is bound to another key', error: 'invalid_token' } }
    }
    const flaw = findClaimFlaw(claims, request)
    if (flaw !== undefined) return refuse(flaw)
    try {
      await compactVerify(proof, key, { algorithms: [algorithm] })
    } catch {
      return refuse('the signature of the proof does not match its key (jwk)')
    }
    const { refused, ...nextNonce } = checkNonce(claims['nonce'])
    if (refused !== undefined) return { outcome: 'nonce', flaw: { refused, error: 'use_dpop_nonce' }, ...nextNonce }
    const { jti, iat } = claims as { readonly jti: string; readonly iat: number }
    // The id is hashed, because a client chooses length and characters of its `jti`.
    const id = createHash('sha256').update(`${thumbprint} ${jti}`).digest('base64url')
    const remaining = Math.max(0, iat * 1_000 + maxAge - now())
    return { ...(await recordUse({ id, ttl: remaining + MAX_CLOCK_SKEW, thumbprint, user }, useOnce)), ...nextNonce }
  }
}
