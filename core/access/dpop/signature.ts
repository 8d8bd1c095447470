// Whether a signature is of the key that a proof shows, by node:crypto: each algorithm of options.ts.
import { constants, type SigningOptions, verify } from 'node:crypto'
import type { ReadProof } from './read-proof.ts'

const PSS: SigningOptions = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  // As long as the digest (RFC 7518 section 3.5).
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
}
const ECDSA: SigningOptions = { dsaEncoding: 'ieee-p1363' }

function settingsOf(algorithm: ReadProof['algorithm']): SigningOptions {
  if (algorithm.startsWith('PS')) return PSS
  return algorithm.startsWith('ES') ? ECDSA : {}
}

/** True for the signature of the key; false for any other, whatever is in it. */
export function isSigned({ algorithm, key, signed, signature }: Omit<ReadProof, 'claims'>): boolean {
  const digest = algorithm.startsWith('Ed') ? null : `sha${algorithm.slice(2)}`
  try {
    return verify(digest, Buffer.from(signed), { key, ...settingsOf(algorithm) }, signature)
  } catch {
    return false
  }
}
