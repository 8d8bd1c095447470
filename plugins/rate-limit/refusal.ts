// What a client is told that asks too often: 429 with Retry-After, and the fields of draft-ietf-httpapi-ratelimit-headers;
// and those who are not refused, how much is left.
import { blame } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { type Cap, inWords, type Limit } from './limits.ts'
import type { Tally } from './tally.ts'

/** Seconds until a call may have ended: nobody knows. */
const SOON = 1

/** Whole seconds until a window ends, at least one. */
const secondsLeft = ({ until }: Tally, now: number) => Math.max(1, Math.ceil((until - now) / 1_000))

/** The limit's member of `RateLimit`. */
export const standing = ({ name, rate }: Limit, tally: Tally, now: number): string =>
  `"${name}";r=${Math.max(0, rate.most - tally.used)};t=${secondsLeft(tally, now)}`

/** Whose refusals these are. */
export interface Refusing {
  /** The plugin, as the config names it. */
  readonly by: string
  /** By the clock that tallies are made with. */
  now(): number
  /** Is told of each, by the name of its limit. */
  refused(limit: string): void
}

interface Told {
  readonly detail: string
  /** For logs and observers. */
  readonly reason: string
  readonly limit: string
  /** Seconds. */
  readonly retryAfter: number
  readonly headers: Record<string, string>
}

function tooMany({ by, refused }: Refusing, { detail, reason, limit, retryAfter, headers }: Told): HostError {
  const error = new HostError('tooManyRequests', {
    detail: `${detail}; try again in ${retryAfter} s`,
    headers: { 'Retry-After': String(retryAfter), ...headers },
    data: { reason: 'rate-limited', limit, retryAfter, retryable: true },
    reason,
  })
  blame(error, by)
  refused(limit)
  return error
}

const WHAT: Readonly<Record<string, string>> = {
  address: 'from one address',
  user: 'of one user',
  client: 'of one client',
  tool: 'of this tool',
}

/** For whom asks more often than a limit allows. */
export function overLimit(limit: Limit, tally: Tally, refusing: Refusing): HostError {
  const { name, place, rate, policy } = limit
  const what = inWords(limit, name === 'tool' ? 'call' : 'request')
  return tooMany(refusing, {
    detail: `at most ${what} ${WHAT[name]}`,
    reason: `rate limit ${place}: ${rate.text}`,
    limit: name,
    retryAfter: secondsLeft(tally, refusing.now()),
    headers: { 'RateLimit-Policy': policy, RateLimit: standing(limit, tally, refusing.now()) },
  })
}

/** For whom has as many calls running as may. */
export function overCap({ name, place, most }: Cap, refusing: Refusing): HostError {
  const calls = `${most} call${most === 1 ? '' : 's'}`
  return tooMany(refusing, {
    detail: `at most ${calls} ${WHAT[name]} at once`,
    reason: `rate limit ${place}: ${most} at once`,
    limit: 'concurrent',
    retryAfter: SOON,
    headers: {
      'RateLimit-Policy': `"concurrent";q=${most};qu="concurrent-requests"`,
      RateLimit: `"concurrent";r=0`,
    },
  })
}
