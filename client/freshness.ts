// How long a token still serves, by the client's own clock.
import type { TokenContainer } from './cache/types.ts'

/** The longest time before its end that a token is renewed, milliseconds. */
const MAX_LEEWAY = 60_000
/** The part of its life that it is renewed before its end. */
const LEEWAY = 0.1

type Lifetime = Pick<TokenContainer, 'obtainedAt' | 'expiresIn'>

/** Milliseconds since the epoch; undefined: it does not expire as far as is known. */
export const expiresAt = ({ obtainedAt, expiresIn }: Lifetime): number | undefined =>
  obtainedAt === undefined || expiresIn === undefined ? undefined : obtainedAt + expiresIn * 1000

export function isExpired(token: Lifetime, now: number): boolean {
  const end = expiresAt(token)
  return end !== undefined && now >= end
}

/**
 * True where a token ends so soon that it is renewed first: within a tenth of its life, a minute at most, or within
 * `leeway` seconds. `spread` of 0 to 1 makes processes that share a token try at different times.
 */
export function isDue(token: Lifetime, now: number, leeway: number | undefined, spread: number): boolean {
  const end = expiresAt(token)
  if (end === undefined) return false
  const most = leeway === undefined ? Math.min(MAX_LEEWAY, (token.expiresIn ?? 0) * 1000 * LEEWAY) : leeway * 1000
  return now >= end - most * (1 - spread / 4)
}
