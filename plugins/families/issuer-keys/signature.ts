// Whose signature a token has: jws, loaded where a token comes, over the keys that may have made it.
import type { Algorithm, VerificationKey } from './verification-key.ts'

/** The curve that a signature of an algorithm is on (RFC 7518, section 3.4). */
const CURVES: Partial<Record<Algorithm, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' }

/** The first key that the signature is of; times, issuer and audience are checked by whoever asks. */
export async function signer(token: string, algorithm: Algorithm, keys: readonly VerificationKey[]) {
  const { default: jws } = await import('jws')
  let reason = 'the signature of the token is of no key of its issuer'
  for (const key of keys) {
    const curve = CURVES[algorithm]
    if (curve !== undefined && key.key.asymmetricKeyDetails?.namedCurve !== curve) continue
    try {
      // Its types know only texts as keys.
      if (jws.verify(token, algorithm, key.key as unknown as string)) return { key }
      reason = 'the signature of the token does not fit'
    } catch (error) {
      // It throws for a signature of another length.
      if (!(error instanceof Error)) throw error
    }
  }
  return { reason }
}
