// Decodes a JWT (RFC 7515) strictly: ambiguous input is rejected before verification.

import { type KeyObject, verify } from 'node:crypto'
import { parseJson } from '../../../core/auth.ts'
import { type Claims, isObject } from '../../../core/plugin.ts'
import { type Algorithm, isEdwards, type VerificationKey } from './verification-key.ts'

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
  if (parts.length !== 3) return { refused: 'the token is no JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decodePart)
  if (!head || !body || !signature) return { refused: 'the token is not encoded as a JWT is' }
  const [header, claims] = [readJsonPart(head), readJsonPart(body)]
  return header && claims ? { header, claims } : { refused: 'the header or the claims of the token are no JSON object' }
}

export const loadJsonWebToken = async () => (await import('jsonwebtoken')).default
export type JsonWebToken = Awaited<ReturnType<typeof loadJsonWebToken>>

/** A token without `kid` costs one signature check per key. */
const MAX_TRIED = 32

/** jsonwebtoken does not support Ed25519. Throws its error for a signature of another key. */
function verifyEdwards(token: string, key: KeyObject): void {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  if (!verify(null, Buffer.from(token.slice(0, end)), key, signature)) throw new Error('invalid signature')
}

export function signer(jwt: JsonWebToken, token: string, algorithm: Algorithm, keys: readonly VerificationKey[]) {
  let reason = 'the signature of the token is of no key of its issuer'
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
    ? { reason: `the token names no key (kid), and its issuer has more than ${MAX_TRIED} keys for it` }
    : { reason }
}
