// Creates DPoP proofs (RFC 9449). oauth4webapi's DPoP handle is not used, because it signs only its own requests.
import { base64url, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import { AuthError } from './errors.ts'
import type { JsonWebKey } from './stores.ts'

export type DPoPSigner = Awaited<ReturnType<typeof createDPoPSigner>>

const ALGORITHM = 'ES256'
const MAX_NONCES = 100

export async function digest(text: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}

async function importKey({ kty, crv, x, y, d }: JsonWebKey) {
  try {
    return await importJWK({ kty, crv, x, y, d } as JWK, ALGORITHM)
  } catch {
    // The cause is omitted, because it can contain the key.
    throw new AuthError('the stored DPoP key cannot be read', {
      code: 'cache_failed',
      fix: 'log out and in again: tokens bound to a lost key cannot be used',
    })
  }
}

/** `jwk`: the private key of earlier tokens. Default: a new ES256 key. */
export async function createDPoPSigner(jwk?: JsonWebKey, now: () => number = Date.now) {
  const privateJwk = jwk ?? (await exportJWK((await generateKeyPair(ALGORITHM, { extractable: true })).privateKey))
  const key = await importKey(privateJwk)
  const { kty, crv, x, y } = privateJwk
  const header = { typ: 'dpop+jwt', alg: ALGORITHM, jwk: { kty, crv, x, y } as JWK }
  const nonces = new LRUCache<string, string>({ max: MAX_NONCES })

  return {
    jwk: privateJwk,
    /** Returns a `DPoP` header. The query of `url` is not signed. `accessToken`: for resource requests only. */
    async proof(method: string, url: string, accessToken?: string): Promise<string> {
      const { origin, pathname } = new URL(url)
      const payload = {
        jti: base64url.encode(crypto.getRandomValues(new Uint8Array(16))),
        htm: method.toUpperCase(),
        htu: `${origin}${pathname}`,
        iat: Math.floor(now() / 1000),
        ...(accessToken !== undefined && { ath: await digest(accessToken) }),
        ...(nonces.has(origin) && { nonce: nonces.get(origin) }),
      }
      return new SignJWT(payload).setProtectedHeader(header).sign(key)
    },
    rememberNonce: (origin: string, nonce: string): void => void nonces.set(origin, nonce),
  }
}
