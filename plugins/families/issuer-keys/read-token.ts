// Decodes a JWT (RFC 7515) strictly: ambiguous input is rejected before verification.
import { type Claims, parseJson } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'

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

/** Header and claims, both unverified. */
export function readToken(token: string): ReadToken | { readonly refused: string } {
  const parts = token.split('.')
  if (parts.length !== 3) return { refused: 'the token is no JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decodePart)
  if (!head || !body || !signature) return { refused: 'the token is not encoded as a JWT is' }
  const [header, claims] = [readJsonPart(head), readJsonPart(body)]
  return header && claims ? { header, claims } : { refused: 'the header or the claims of the token are no JSON object' }
}
