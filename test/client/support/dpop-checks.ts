// Checks of DPoP proofs in the fake servers (RFC 9449 section 4.3): signature, target, age, single use, token and
// nonce.
import { createHash, createPublicKey, verify } from 'node:crypto'
import type { RecordedRequest } from './recording-server.ts'

export interface ProofCheck {
  /** Origin and path that the proof must be for. */
  readonly target: string
  /** The token that must be hashed in it. */
  readonly accessToken?: string | undefined
  readonly nonce?: string | undefined
  /** `jti` values that were used; gets this one. */
  readonly used: Set<string>
}

/** The key's thumbprint (RFC 7638), or what is wrong. */
export type ProofVerdict = { readonly jkt: string } | { readonly error: string; readonly why: string }

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())

export const thumbprint = ({ crv, kty, x, y }: Readonly<Record<string, unknown>>): string =>
  sha256(JSON.stringify({ crv, kty, x, y }))

const invalid = (why: string): ProofVerdict => ({ error: 'invalid_dpop_proof', why })

/** Judges the `DPoP` header of a request; only ES256 proofs are good. */
export function checkProof(request: RecordedRequest, { target, accessToken, nonce, used }: ProofCheck): ProofVerdict {
  const proof = request.headers['dpop']
  if (typeof proof !== 'string') return invalid('there is not one DPoP header')
  const [head, claims, signature] = proof.split('.')
  const header = decode(head)
  const { htm, htu, iat, jti, ath, nonce: given } = decode(claims)
  if (header.typ !== 'dpop+jwt' || header.alg !== 'ES256') return invalid('typ or alg')
  if (header.jwk?.d !== undefined) return invalid('the private key was sent')
  const key = createPublicKey({ key: header.jwk, format: 'jwk' })
  const signed = Buffer.from(`${head}.${claims}`)
  const good = verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature ?? '', 'base64url'))
  if (!good) return invalid('signature')
  if (htm !== request.method || htu !== target) return invalid(`for ${htm} ${htu}, not ${request.method} ${target}`)
  if (typeof iat !== 'number' || Math.abs(Date.now() / 1000 - iat) > 300) return invalid('iat')
  if (typeof jti !== 'string' || used.has(jti)) return invalid('jti is missing or was used')
  used.add(jti)
  if (accessToken !== undefined && ath !== sha256(accessToken)) return invalid('ath')
  if (nonce !== undefined && given !== nonce) return { error: 'use_dpop_nonce', why: 'another nonce' }
  return { jkt: thumbprint(header.jwk) }
}
