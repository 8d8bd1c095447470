// Stops a client that gets tokens over and over and is still refused: three of them, or three logins, within a minute and
// no answer in between open the breaker, and for a minute nothing is sent.
import { AuthError } from './errors.ts'

const LIMIT = 3
/** Milliseconds. */
const WINDOW = 60_000
const COOL_DOWN = 60_000
/** Keys that are remembered at most; the oldest go first. */
const MAX_KEYS = 1_000

interface Count {
  token: readonly number[]
  prompt: readonly number[]
  openUntil: number
}

/** Of every client in this process that has the same key, because a program may make a client for each request. */
const counts = new Map<string, Count>()

function countOf(key: string): Count {
  const count = counts.get(key) ?? { token: [], prompt: [], openUntil: 0 }
  counts.delete(key)
  counts.set(key, count)
  if (counts.size > MAX_KEYS) counts.delete(counts.keys().next().value as string)
  return count
}

export interface StormBreaker {
  /** Before anything is sent or asked for. Throws `auth_storm` while the breaker is open, and opens it at the limit. */
  check(): void
  /** A token was obtained, or a person is asked to log in. */
  count(what: 'token' | 'prompt'): void
  /** The server answered with something else than 401 and 403. */
  success(): void
}

export function createStormBreaker(key: string, now: () => number, opened: (until: number) => void): StormBreaker {
  const refuse = (until: number) =>
    new AuthError('the server refuses every token that it is given', {
      code: 'auth_storm',
      retryable: true,
      fix: `nothing is sent for ${Math.ceil((until - now()) / 1000)} s; check audience and scopes with: mcp-host doctor`,
    })

  const isFull = (times: readonly number[]) => times.filter(time => time > now() - WINDOW).length >= LIMIT

  return {
    check() {
      const count = counts.get(key)
      if (!count) return
      if (count.openUntil > now()) throw refuse(count.openUntil)
      if (!isFull(count.token) && !isFull(count.prompt)) return
      count.openUntil = now() + COOL_DOWN
      count.token = []
      count.prompt = []
      opened(count.openUntil)
      throw refuse(count.openUntil)
    },
    count(what) {
      const count = countOf(key)
      count[what] = [...count[what].slice(1 - LIMIT), now()]
    },
    success: () => void counts.delete(key),
  }
}
