// Takes a JWT apart, strictly: what two readers could understand in two ways is refused before anybody verifies it.
import { type Claims, decodePart, readJsonPart } from '../../../core/auth.ts'

export interface ReadToken {
  readonly header: Claims
  readonly claims: Claims
}

/** Header and claims, neither of them verified; or why there are none. */
export function readToken(token: string): ReadToken | { readonly refused: string } {
  const parts = token.split('.')
  if (parts.length !== 3) return { refused: 'the token is no JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decodePart)
  if (!head || !body || !signature) return { refused: 'the token is not encoded as a JWT is' }
  const [header, claims] = [readJsonPart(head), readJsonPart(body)]
  return header && claims ? { header, claims } : { refused: 'the header or the claims of the token are no JSON object' }
}
