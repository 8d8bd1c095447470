// Takes a JWT apart, strictly: what two readers could understand in two ways is refused before anybody verifies it.
import type { Claims } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'

export interface ReadToken {
  readonly header: Claims
  readonly claims: Claims
}

/** The bytes of a part that is canonical base64url: no padding, no other alphabet, no loose bits at its end. */
function decode(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return part !== '' && bytes.toString('base64url') === part ? bytes : undefined
}

function readObject(bytes: Buffer): Claims | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Header and claims, neither of them verified; or why there are none. */
export function readToken(token: string): ReadToken | { readonly refused: string } {
  const parts = token.split('.')
  if (parts.length !== 3) return { refused: 'the token is no JWT' }
  if (parts[2] === '') return { refused: 'the token is not signed' }
  const [head, body, signature] = parts.map(decode)
  if (!head || !body || !signature) return { refused: 'the token is not encoded as a JWT is' }
  const [header, claims] = [readObject(head), readObject(body)]
  return header && claims ? { header, claims } : { refused: 'the header or the claims of the token are no JSON object' }
}
