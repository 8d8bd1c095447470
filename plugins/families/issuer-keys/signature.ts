// Finds the key that signed a token, with jsonwebtoken, which is loaded for the first token.
import type { Algorithm, VerificationKey } from './verification-key.ts'

export const loadJsonWebToken = async () => (await import('jsonwebtoken')).default
export type JsonWebToken = Awaited<ReturnType<typeof loadJsonWebToken>>

/** Maximum keys tried for one token: a token without a `kid` costs one signature check per key. */
const MAX_TRIED = 32

/** The key that made the signature, or why there is none. */
export function signer(jwt: JsonWebToken, token: string, algorithm: Algorithm, keys: readonly VerificationKey[]) {
  let reason = 'the signature of the token is of no key of its issuer'
  for (const key of keys.slice(0, MAX_TRIED)) {
    try {
      // Times, issuer and audience are checked by whoever asks, more strictly.
      const options = { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true }
      jwt.verify(token, key.key, options)
      return { key }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if (error.message === 'invalid signature') reason = 'the signature of the token does not fit'
    }
  }
  return keys.length > MAX_TRIED
    ? { reason: `the token names no key (kid), and its issuer has more than ${MAX_TRIED} keys for it` }
    : { reason }
}
