// Checks one proof for one request (RFC 9449 section 4.3): what is cheap first, its signature next, and that it was not used before
// last, so that nobody uses up a proof that is not theirs.
import { createHash } from 'node:crypto'
import { HostError } from '../../http/errors.ts'
import type { ProofFlaw } from '../possession.ts'
import type { Claims } from '../user-claims.ts'
import type { Nonces } from './nonces.ts'
import type { ProofAlgorithm } from './options.ts'
import { createProofReader, type ReadProof } from './read-proof.ts'
import { isSigned } from './signature.ts'
import { canonicalTarget } from './target.ts'
import type { UsedProof, UseOnce } from './used-proofs.ts'

/** Milliseconds that the clocks of nodes may differ: for so much longer a used proof is remembered. */
const SKEW = 10_000
const MAX_ID = 128
/** Characters of an address in an answer, which is a header. */
const MAX_SHOWN = 300
/** Seconds: a store that does not answer, and a key or a user with too many proofs. */
const RETRY_AFTER = 1
const LIMITED_FOR = 5

export interface ProofSettings {
  readonly algorithms: readonly ProofAlgorithm[]
  /** Milliseconds. */
  readonly maxAge: number
  /** Milliseconds that the clock of a client may be ahead: for so much longer its proofs are remembered. */
  readonly clockTolerance: number
  readonly nonces: Nonces | undefined
  /** Milliseconds; for tests. */
  readonly now?: () => number
}

/** The request that a proof has to be for. */
export interface ProvenRequest {
  /** The header `DPoP` as Node gives it. */
  readonly proof: string | readonly string[] | undefined
  readonly method: string
  /** The canonical addresses that it may name. */
  readonly targets: readonly string[]
  /** SHA-256 of the token, base64url. */
  readonly digest: string
  /** Of the key that the token is bound to. */
  readonly thumbprint: string
  /** Names the user whose token it is. */
  readonly user: string
  /** Milliseconds since the epoch: of proofs that were made before, nobody knows whether they were used. */
  readonly since: number | undefined
  readonly useOnce: UseOnce
}

/** What became of a proof, for the figures; `flaw` where it is not taken. `nonce`: what the next proofs should have. */
export interface ProofOutcome {
  readonly outcome: 'accepted' | 'refused' | 'replayed' | 'nonce' | 'limited' | 'unavailable'
  readonly flaw?: ProofFlaw
  readonly nonce?: string
  /** Why nobody can tell, for the log. */
  readonly cause?: unknown
}

const ageFlaw = (most: number, where: 'ago' | 'ahead') =>
  `the time (iat) of the proof is more than ${Math.round(most / 1_000)} s ${where}: is the clock right?`

const refuse = (refused: string): ProofOutcome => ({
  outcome: 'refused',
  flaw: { refused, error: 'invalid_dpop_proof' },
})

const NO_ADDRESS =
  'the request names no address (Host) of this server that a proof could be for (htu); use its own port, or have its ' +
  'operator set http.publicUrl, or add the name with its port to http.allowedHosts'

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Proofs say whole seconds: the one in which it began counts. */
const isBefore = (iat: number, since: number | undefined) => since !== undefined && iat < Math.floor(since / 1_000)

async function remember(proof: UsedProof, useOnce: UseOnce): Promise<ProofOutcome> {
  try {
    if (await useOnce(proof)) return { outcome: 'accepted' }
    return { ...refuse('the proof was used before: each request needs its own'), outcome: 'replayed' }
  } catch (error) {
    if (HostError.is(error) && error.kind === 'tooManyRequests') {
      const limited = error.detail ?? 'too many proofs (DPoP) were used of late; send fewer requests a second'
      return { outcome: 'limited', flaw: { limited, retryAfter: LIMITED_FOR } }
    }
    const unavailable = 'nobody can tell now whether the proof (DPoP) was used before'
    return { outcome: 'unavailable', flaw: { unavailable, retryAfter: RETRY_AFTER }, cause: error }
  }
}

/** Checks proofs by these settings. Never rejects. */
export function createProofCheck({ algorithms, maxAge, clockTolerance, nonces, now = Date.now }: ProofSettings) {
  const readProof = createProofReader(algorithms)

  function claimFlaw({ jti, htm, htu, iat, ath }: Claims, request: ProvenRequest): string | undefined {
    const { method, targets, digest, since } = request
    if (!isText(jti) || jti.length > MAX_ID) return `the id (jti) of the proof is no text of 1 to ${MAX_ID} characters`
    if (htm !== method) return `the proof is not for ${method} (htm)`
    const target = canonicalTarget(htu)
    const [address] = targets
    if (address === undefined) return NO_ADDRESS
    if (target === undefined || !targets.includes(target)) {
      return `the proof is for another address (htu); this one is ${address.slice(0, MAX_SHOWN)}`
    }
    if (ath !== digest) return 'the proof is for another token (ath)'
    if (typeof iat !== 'number' || !Number.isFinite(iat)) return 'the proof has no time (iat)'
    const age = now() - iat * 1_000
    if (age > maxAge) return ageFlaw(maxAge, 'ago')
    if (-age > clockTolerance) return ageFlaw(clockTolerance, 'ahead')
    if (isBefore(iat, since))
      return 'the proof was made (iat) before this server began: make a new one for each request'
    return undefined
  }

  /** `nonce`: to be told, beside an answer too. */
  function judgeNonce({ claims }: ReadProof): { readonly nonce?: string; readonly refused?: string } {
    const verdict = nonces?.judge(claims['nonce'])
    if (!nonces || verdict === 'current') return {}
    const nonce = nonces.current()
    if (verdict === 'known') return { nonce }
    const has = claims['nonce'] === undefined ? 'has no nonce' : 'has a nonce that is not good any more'
    return { nonce, refused: `the proof ${has}; send it with the one of this answer` }
  }

  return async function checkProof(request: ProvenRequest): Promise<ProofOutcome> {
    const { proof, thumbprint, user, useOnce } = request
    if (proof === undefined || proof === '') return refuse('the token is bound to a key, and there is no DPoP header')
    const read = readProof(typeof proof === 'string' ? proof : proof.join(','), thumbprint)
    if ('flaw' in read) {
      const { flaw, isOther } = read
      return isOther ? { outcome: 'refused', flaw: { refused: flaw, error: 'invalid_token' } } : refuse(flaw)
    }
    const flaw = claimFlaw(read.claims, request)
    if (flaw !== undefined) return refuse(flaw)
    if (!isSigned(read)) return refuse('the signature of the proof does not fit')
    const { nonce, refused } = judgeNonce(read)
    const told = nonce === undefined ? {} : { nonce }
    if (refused !== undefined) return { outcome: 'nonce', flaw: { refused, error: 'use_dpop_nonce' }, ...told }
    const { jti, iat } = read.claims as { readonly jti: string; readonly iat: number }
    // What a client says of itself is no key of a store: of any length, of any letters.
    const id = createHash('sha256').update(`${thumbprint} ${jti}`).digest('base64url')
    const left = Math.max(0, iat * 1_000 + maxAge - now())
    return { ...(await remember({ id, ttl: left + SKEW, thumbprint, user }, useOnce)), ...told }
  }
}
