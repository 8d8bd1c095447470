// Decodes the parts of a JWS (RFC 7515) strictly: ambiguous input is rejected. For tokens and proofs.
import { parseJson } from '../http/json-text.ts'
import { isObject } from '../mcp/is-object.ts'
import type { Claims } from './user-claims.ts'

/** The bytes of a part that is canonical base64url: no padding, no other alphabet, no loose bits at its end, and not empty. */
export function decodePart(part: unknown): Buffer | undefined {
  if (typeof part !== 'string' || part === '') return undefined
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

/** The JSON object in these UTF-8 bytes; undefined if they are not one. */
export function readJsonPart(bytes: Buffer): Claims | undefined {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
