// Takes a DPoP proof apart, strictly, and reads the public key in it (RFC 9449 section 4.2): what could be understood in two
// ways is refused before anything is verified. Nothing here is believed yet.
import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isObject } from '../../mcp/is-object.ts'
import { decodePart, readJsonPart } from '../jws-part.ts'
import type { Claims } from '../user-claims.ts'
import type { ProofAlgorithm } from './options.ts'

/** Characters of a proof: one by RSA with 4,096 bits has about 2,400. */
const MAX_PROOF = 4_096

/** What a key consists of, by its type; in the order that its thumbprint has (RFC 7638 section 3.2, RFC 8037 section 2). */
const PARTS = { EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'], RSA: ['e', 'kty', 'n'] } as const
type KeyType = keyof typeof PARTS

/** What may stand beside that, and says nothing of another key. */
const BESIDE: ReadonlySet<string> = new Set(['alg', 'use', 'key_ops', 'kid', 'ext'])

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }
/** An exponent of at most 32 bits, a modulus of 2,048 to 4,096: more would only cost. */
const RSA_SIZE = { e: 6, bits: [2_048, 4_096] } as const

const KNOWN_KEYS = 1_000

export interface ReadProof {
  readonly algorithm: ProofAlgorithm
  readonly claims: Claims
  readonly key: KeyObject
  /** What the signature is of. */
  readonly signed: string
  readonly signature: Buffer
}

type Flaw = {
  readonly flaw: string
  /** The proof may be good, for another token. */
  readonly isOther?: true
}

const OTHER_KEY: Flaw = { flaw: 'the token is bound to another key', isOther: true }

interface ProofKey {
  readonly key: KeyObject
}

function keyTypeOf(algorithm: ProofAlgorithm): KeyType {
  if (algorithm.startsWith('E')) return algorithm.startsWith('ES') ? 'EC' : 'OKP'
  return 'RSA'
}

/** Why a key is none for this algorithm, before it is read as one. */
function keyFlaw(jwk: Claims, algorithm: ProofAlgorithm): string | undefined {
  const type = keyTypeOf(algorithm)
  const parts: readonly string[] = PARTS[type]
  if (jwk['kty'] !== type) return `the key (jwk) of the proof is none for ${algorithm}`
  // What makes a key private is among the others.
  const other = Object.keys(jwk).find(name => !parts.includes(name) && !BESIDE.has(name))
  if (other !== undefined) return 'the key (jwk) of the proof has more than a public key has'
  if (parts.some(name => typeof jwk[name] !== 'string')) return 'the key (jwk) of the proof is not whole'
  const { alg, use, key_ops: operations, crv, e } = jwk
  const curve = type === 'OKP' ? 'Ed25519' : CURVES[algorithm]
  if ((alg !== undefined && alg !== algorithm) || (curve !== undefined && crv !== curve)) {
    return `the key (jwk) of the proof is none for ${algorithm}`
  }
  if (use !== undefined && use !== 'sig') return 'the key (jwk) of the proof is not for signatures'
  if (operations !== undefined && !(Array.isArray(operations) && operations.every(one => one === 'verify'))) {
    return 'the key (jwk) of the proof is not for verifying alone'
  }
  if (type === 'RSA' && String(e).length > RSA_SIZE.e) return 'the exponent of the key (jwk) of the proof is too long'
  // Another spelling of a number would be another thumbprint of the same key.
  const numbers = parts.filter(name => name.length === 1)
  return numbers.every(name => decodePart(jwk[name]))
    ? undefined
    : 'the key (jwk) of the proof is not encoded as a JWK is'
}

function importKey(jwk: Claims, parts: readonly string[]): KeyObject | undefined {
  try {
    const bare = Object.fromEntries(parts.map(name => [name, jwk[name]]))
    const key = createPublicKey({ key: bare as JsonWebKey, format: 'jwk' })
    const exported = key.export({ format: 'jwk' }) as Claims
    // What Node reads more kindly than it writes is no canonical key.
    if (parts.some(name => exported[name] !== jwk[name])) return undefined
    const { modulusLength: bits } = key.asymmetricKeyDetails ?? {}
    const [least, most] = RSA_SIZE.bits
    return bits === undefined || (bits >= least && bits <= most) ? key : undefined
  } catch {
    return undefined
  }
}

/** Reads proofs of the key with this thumbprint. */
export type ReadProofOf = (proof: string, thumbprint: string) => ReadProof | Flaw

/** Keys that were read are remembered; none is imported, or remembered, but the one that the token is bound to. */
export function createProofReader(algorithms: readonly ProofAlgorithm[]): ReadProofOf {
  const known = new LRUCache<string, KeyObject>({ max: KNOWN_KEYS })

  function readKey(jwk: unknown, algorithm: ProofAlgorithm, thumbprint: string): ProofKey | Flaw {
    if (!isObject(jwk)) return { flaw: 'the proof has no key (jwk)' }
    const flaw = keyFlaw(jwk, algorithm)
    if (flaw !== undefined) return { flaw }
    const parts = PARTS[keyTypeOf(algorithm)]
    const text = JSON.stringify(Object.fromEntries(parts.map(name => [name, jwk[name]])))
    // What its sender made up costs no more than this.
    if (createHash('sha256').update(text).digest('base64url') !== thumbprint) return OTHER_KEY
    const found = known.get(thumbprint)
    if (found) return { key: found }
    const key = importKey(jwk, parts)
    if (!key) return { flaw: 'the key (jwk) of the proof cannot be used: it is no key, or too short or too long' }
    known.set(thumbprint, key)
    return { key }
  }

  return function readProof(proof, thumbprint) {
    if (proof.includes(',')) return { flaw: 'more than one DPoP header' }
    if (proof.length > MAX_PROOF) return { flaw: `the proof is longer than ${MAX_PROOF} characters` }
    const parts = proof.split('.')
    const [head, body, signature] = parts.map(decodePart)
    const [header, claims] = [head && readJsonPart(head), body && readJsonPart(body)]
    if (parts.length !== 3 || !header || !claims || !signature) return { flaw: 'the DPoP header holds no signed JWT' }
    const { typ, alg, jwk, crit } = header
    if (typ !== 'dpop+jwt') return { flaw: 'the type (typ) of the proof is not dpop+jwt' }
    if (crit !== undefined) return { flaw: 'the proof has critical headers (crit), and none is understood here' }
    const algorithm = algorithms.find(one => one === alg)
    if (algorithm === undefined) return { flaw: `the algorithm of the proof is not accepted: ${algorithms.join(', ')}` }
    const key = readKey(jwk, algorithm, thumbprint)
    if ('flaw' in key) return key
    const signed = proof.slice(0, proof.lastIndexOf('.'))
    return { algorithm, claims, ...key, signed, signature }
  }
}
