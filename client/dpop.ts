// Creates DPoP proofs (RFC 9449). oauth4webapi's DPoP handle is not used, because it signs only its own requests.
import { AuthError } from './errors.ts'
import type { CryptoKey, JsonWebKey } from './token-cache.ts'

export type DPoPSigner = Awaited<ReturnType<typeof createDPoPSigner>>

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const

const MAX_NONCES = 100

const toBase64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

const encodeText = (text: string) => new TextEncoder().encode(text)

const encodePart = (part: object): string => toBase64Url(encodeText(JSON.stringify(part)))

async function digest(text: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', encodeText(text))))
}

async function generateJwk(): Promise<JsonWebKey> {
  const { privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  return crypto.subtle.exportKey('jwk', privateKey)
}

async function importKey(jwk: JsonWebKey): Promise<CryptoKey> {
  try {
    return await crypto.subtle.importKey('jwk', { ...jwk, key_ops: ['sign'] }, ALGORITHM, false, ['sign'])
  } catch {
    // No cause, because it may contain the key.
    throw new AuthError('the DPoP key that was kept with the tokens cannot be read', {
      code: 'cache_failed',
      fix: 'log out and in again: tokens that are bound to a lost key are worth nothing',
    })
  }
}

/** `jwk`: key of earlier tokens. Default: a new ES256 key. */
export async function createDPoPSigner(jwk?: JsonWebKey, now: () => number = Date.now) {
  const privateJwk = jwk ?? (await generateJwk())
  const key = await importKey(privateJwk)
  const { kty, crv, x, y } = privateJwk
  const header = encodePart({ typ: 'dpop+jwt', alg: 'ES256', jwk: { kty, crv, x, y } })
  const nonces = new Map<string, string>()

  return {
    jwk: privateJwk,
    /** Returns a `DPoP` header. The query of `url` is not signed. `accessToken`: for resource requests only. */
    async proof(method: string, url: string, accessToken?: string): Promise<string> {
      const { origin, pathname } = new URL(url)
      const payload = {
        jti: toBase64Url(crypto.getRandomValues(new Uint8Array(16))),
        htm: method.toUpperCase(),
        htu: `${origin}${pathname}`,
        iat: Math.floor(now() / 1000),
        ...(accessToken !== undefined && { ath: await digest(accessToken) }),
        ...(nonces.has(origin) && { nonce: nonces.get(origin) }),
      }
      const signed = `${header}.${encodePart(payload)}`
      const signature = await crypto.subtle.sign(SIGNATURE, key, encodeText(signed))
      return `${signed}.${toBase64Url(new Uint8Array(signature))}`
    },
    rememberNonce(origin: string, nonce: string): void {
      nonces.delete(origin)
      nonces.set(origin, nonce)
      const [oldest] = nonces.keys()
      if (nonces.size > MAX_NONCES && oldest !== undefined) nonces.delete(oldest)
    },
  }
}
