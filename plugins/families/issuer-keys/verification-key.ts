// Verification keys with their sources, and strict decoding of JWTs (RFC 7515).

import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { parseJson } from '../../../core/auth.ts'
import { type Claims, errorText, isObject } from '../../../core/plugin.ts'

/** EdDSA means Ed25519, its name since RFC 9864. */
export const ASYMMETRIC = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const),
  ...(['EdDSA', 'Ed25519'] as const),
] as const
export const SYMMETRIC = ['HS256', 'HS384', 'HS512'] as const
export type Algorithm = (typeof ASYMMETRIC)[number] | (typeof SYMMETRIC)[number]

export interface VerificationKey {
  readonly kid: string | undefined
  /** The only algorithm of the key, if its owner restricts it. */
  readonly alg: string | undefined
  readonly key: KeyObject
  readonly pem: string
}

export type KeyLookup =
  | { readonly keys: readonly VerificationKey[] }
  | { readonly unavailable: string; readonly retryAfter: number }

export interface KeySource {
  find(kid: string | undefined, algorithm: Algorithm): KeyLookup | Promise<KeyLookup>
  /** True if earlier verifications with the key are still valid. */
  isCurrent(key: VerificationKey): boolean
}

const MIN_RSA_BITS = 2048

export function weaknessOf({ key }: VerificationKey): string | undefined {
  const bits = key.asymmetricKeyDetails?.modulusLength
  return bits !== undefined && bits < MIN_RSA_BITS ? `has ${bits} bits; at least ${MIN_RSA_BITS} are needed` : undefined
}

const isEdwards = (algorithm: string | undefined): algorithm is 'EdDSA' | 'Ed25519' =>
  algorithm === 'EdDSA' || algorithm === 'Ed25519'

function fitsType({ asymmetricKeyType, type }: KeyObject, algorithm: Algorithm): boolean {
  if (algorithm.startsWith('HS')) return type === 'secret'
  if (isEdwards(algorithm)) return asymmetricKeyType === 'ed25519'
  if (algorithm.startsWith('ES')) return asymmetricKeyType === 'ec'
  return asymmetricKeyType === 'rsa' || (algorithm.startsWith('PS') && asymmetricKeyType === 'rsa-pss')
}

/** Returns the keys to try for a token. `loose` (`validate.signingKey: false`) ignores `kid`, `alg` and key size. */
export function candidates(
  keys: readonly VerificationKey[],
  kid: string | undefined,
  algorithm: Algorithm,
  loose: boolean,
): VerificationKey[] {
  const named = (key: VerificationKey) => kid === undefined || key.kid === undefined || key.kid === kid
  const meant = (key: VerificationKey) =>
    key.alg === undefined || key.alg === algorithm || (isEdwards(key.alg) && isEdwards(algorithm))
  return keys.filter(
    key => fitsType(key.key, algorithm) && (loose || (named(key) && meant(key) && weaknessOf(key) === undefined)),
  )
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

export function readKey(given: Readonly<Record<string, unknown>> | string): VerificationKey {
  if (isObject(given) && given['kty'] === 'oct') throw new Error('a symmetric key belongs into `secret`')
  let key: KeyObject
  try {
    key =
      typeof given === 'string' ? createPublicKey(given) : createPublicKey({ key: given as JsonWebKey, format: 'jwk' })
  } catch (cause) {
    throw new Error(`it cannot be read: ${errorText(cause)}`, { cause })
  }
  if (!['rsa', 'rsa-pss', 'ec', 'ed25519'].includes(key.asymmetricKeyType ?? '')) {
    throw new Error(`a key of type ${key.asymmetricKeyType} supports no accepted algorithm`)
  }
  const [kid, alg] = typeof given === 'string' ? [] : [textOf(given['kid']), textOf(given['alg'])]
  return { kid, alg, key, pem: key.export({ type: 'spki', format: 'pem' }).toString() }
}

export function createFixedKeys(given: ReadonlyArray<Record<string, unknown> | string>, loose: boolean): KeySource {
  const keys = given.map(readKey)
  const weak = loose ? undefined : keys.map(weaknessOf).find(weakness => weakness !== undefined)
  if (weak !== undefined) throw new Error(`a key ${weak}`)
  return { find: (kid, algorithm) => ({ keys: candidates(keys, kid, algorithm, loose) }), isCurrent: () => true }
}

export function createSecret(secret: string): KeySource {
  const keys = [{ kid: undefined, alg: undefined, key: createSecretKey(Buffer.from(secret)), pem: '' }]
  return { find: (kid, algorithm) => ({ keys: candidates(keys, kid, algorithm, false) }), isCurrent: () => true }
}

export interface ReadToken {
  readonly header: Claims
  readonly claims: Claims
}

/** Requires canonical base64url: no padding, no other alphabet, no loose bits at the end, and not empty. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return part !== '' && bytes.toString('base64url') === part ? bytes : undefined
}

function readJsonPart(bytes: Buffer): Claims | undefined {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function readToken(token: string): ReadToken | { readonly refused: string } {
  const parts = token.split('.')
  if (parts.length !== 3) return { refused: 'the token is not a JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decodePart)
  if (!head || !body || !signature) return { refused: 'the token is not encoded as a JWT is' }
  const [header, claims] = [readJsonPart(head), readJsonPart(body)]
  return header && claims
    ? { header, claims }
    : { refused: 'the header or the claims of the token are not a JSON object' }
}

export const loadJsonWebToken = async () => (await import('jsonwebtoken')).default
export type JsonWebToken = Awaited<ReturnType<typeof loadJsonWebToken>>

/** Maximum keys to try for a token without `kid`, which costs one signature check per key. */
const MAX_TRIED = 32

/** jsonwebtoken does not support Ed25519. Throws its error for a signature of another key. */
function verifyEdwards(token: string, key: KeyObject): void {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  if (!verify(null, Buffer.from(token.slice(0, end)), key, signature)) throw new Error('invalid signature')
}

export function signer(jwt: JsonWebToken, token: string, algorithm: Algorithm, keys: readonly VerificationKey[]) {
  let reason = 'the signature of the token matches no key of its issuer'
  for (const key of keys.slice(0, MAX_TRIED)) {
    try {
      if (isEdwards(algorithm)) {
        verifyEdwards(token, key.key)
        return { key }
      }
      // Claims are checked separately, and more strictly.
      const options = { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true }
      jwt.verify(token, key.key, options)
      return { key }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if (error.message === 'invalid signature') reason = 'the signature of the token does not fit'
    }
  }
  return keys.length > MAX_TRIED
    ? { reason: `the token has no key id (kid), and its issuer has more than ${MAX_TRIED} keys for it` }
    : { reason }
}
