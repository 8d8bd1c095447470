// Tokens that are bound to a key of their client (RFC 7800, RFC 9449): which key a token says, and what whoever reads tokens
// of requests asks of those who show it. dpop/ checks the proofs.
import type { HostContext } from '../kernel/endpoint.ts'
import type { Route } from '../kernel/route.ts'
import { type User, userKey } from '../kernel/user.ts'
import { isObject } from '../mcp/is-object.ts'
import type { Claims } from './user-claims.ts'

/** Why a proof is not taken: `refused` is one clause, for client and log, with nothing of the proof. */
export type ProofFlaw =
  | {
      readonly refused: string
      /** RFC 9449 section 7.1. */
      readonly error: 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce'
      /** The token is bound to a key: the challenge asks for a proof. */
      readonly isBound?: true
    }
  /** Nobody can tell now; `retryAfter` in seconds. */
  | { readonly unavailable: string; readonly retryAfter: number }
  /** Too many proofs of this key, or of this user, are remembered already. */
  | { readonly limited: string; readonly retryAfter: number }

/** What a request shows, for its proof. */
export interface ShownToken {
  readonly route: Route
  /** SHA-256 of the token, base64url. */
  readonly digest: string
  /** The thumbprint of the key that the token is bound to (RFC 7638). */
  readonly thumbprint: string
  /** Names the user whose token it is. */
  readonly user: string
}

/** What `identifyBearer` asks of whoever shows a token: made by `enforceDPoP`. */
export interface Possession {
  /** Whether tokens are read that come by the scheme DPoP. */
  readonly accepts: boolean
  /** Tokens that are bound to no key are refused. */
  readonly required: boolean
  /** `proof`: bound tokens pass without one, where a host only explains itself. `all`: unbound ones too, which a test makes up. */
  readonly waived?: 'proof' | 'all' | undefined
  /** Hears of each bound token that is refused because none are accepted. */
  readonly missed?: () => void
  /** Undefined: this request has a proof of the key, for this token and address, that nobody used before. */
  check(ctx: HostContext, shown: ShownToken): Promise<ProofFlaw | undefined>
}

/** Where a plugin says nothing of DPoP: bound tokens are refused, for nobody asks for their proof. */
export const NO_POSSESSION: Possession = {
  accepts: false,
  required: false,
  check: async () => ({ refused: 'proofs (DPoP) are not accepted here', error: 'invalid_token' }),
}

/**
 * The thumbprint of the key that a token is bound to by DPoP (RFC 9449 section 6). Undefined: it is bound to none. Null: what it
 * says cannot be understood.
 */
export function boundKey({ cnf }: Claims): string | undefined | null {
  if (cnf === undefined || cnf === null) return undefined
  if (!isObject(cnf)) return null
  const jkt: unknown = Object.hasOwn(cnf, 'jkt') ? cnf['jkt'] : undefined
  if (jkt === undefined) return undefined
  return typeof jkt === 'string' && /^[\w-]{43}$/.test(jkt) ? jkt : null
}

const unproven = (refused: string) => ({ refused, error: 'invalid_token' as const })

/** Why a token that was verified is not taken as it was shown; undefined: it is. */
export async function flawOf(
  ctx: HostContext,
  possession: Possession,
  shown: { readonly route: Route; readonly isDPoP: boolean; digest(): string },
  user: User,
): Promise<ProofFlaw | undefined> {
  const { accepts, required, waived } = possession
  const thumbprint = boundKey(user.claims)
  if (thumbprint === null) return unproven('the key that the token is bound to (cnf) cannot be understood')
  if (waived === 'all') return undefined
  if (thumbprint === undefined) {
    if (required) return unproven('the token is bound to no key, and only bound ones (DPoP) are accepted')
    return shown.isDPoP ? unproven('the token is bound to no key: it is no DPoP token') : undefined
  }
  if (!accepts) {
    possession.missed?.()
    return unproven('the token is bound to a key, and its proofs (DPoP) are not accepted here')
  }
  if (waived === 'proof') return undefined
  if (!shown.isDPoP) {
    return { ...unproven('the token is bound to a key: it comes by the scheme DPoP, with a proof'), isBound: true }
  }
  return possession.check(ctx, { route: shown.route, digest: shown.digest(), thumbprint, user: userKey(user) })
}
