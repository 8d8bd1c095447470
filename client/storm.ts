// Circuit breaker for repeated refused tokens and unfinished logins: three within a minute open it for a minute.
import { LRUCache } from 'lru-cache'
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

const LIMIT = 3
const WINDOW = 60_000
const COOL_DOWN = 60_000
const MAX_KEYS = 1_000

type Kind = 'token' | 'prompt' | 'login'

interface Count extends Record<Kind, readonly number[]> {
  readonly openUntil: Record<Kind, number>
  /** The newest token is from an explicit login and was not refused yet. */
  fresh: boolean
}

/** Shared across clients with the same key, because a program can create a client per request. */
const counts = new LRUCache<string, Count>({ max: MAX_KEYS })

function countOf(key: string): Count {
  const openUntil = { token: 0, prompt: 0, login: 0 }
  const count = counts.get(key) ?? { token: [], prompt: [], login: [], openUntil, fresh: false }
  counts.set(key, count)
  return count
}

interface StormContext {
  readonly serverUrl: string
  readonly now: () => number
  readonly opened: (until: number) => void
}

export function createStormBreaker(key: string, { serverUrl, now, opened }: StormContext) {
  const recent = (times: readonly number[]) => times.filter(time => time > now() - WINDOW)
  const withNow = (times: readonly number[]) => [...times.slice(1 - LIMIT), now()]

  function refuse(until: number, tokensWereRefused: boolean): AuthError {
    const seconds = Math.ceil((until - now()) / 1000)
    const about = { code: 'auth_storm', retryable: true }
    if (!tokensWereRefused) {
      return new AuthError(`${LIMIT} logins were started within a minute, and none was completed`, {
        ...about,
        fix: {
          text: `no login starts for ${seconds} s; to log in now, use`,
          method: 'login',
          url: printableUrl(serverUrl),
        },
      })
    }
    const doctor = `mcp-host doctor ${printableUrl(serverUrl)}`
    return new AuthError(`the server refused ${LIMIT} tokens within a minute`, {
      ...about,
      fix: `no request is sent for ${seconds} s or until the next login; check audience and scopes with: ${doctor}`,
    })
  }

  return {
    /** `token`: before a request; `prompt`: before a login for a request; `login`: before an explicit login. */
    check(what: Kind): void {
      const count = counts.get(key)
      if (!count) return
      const tokensWereRefused = what === 'token' || (what === 'login' && recent(count.token).length > 0)
      if (count.openUntil[what] > now()) throw refuse(count.openUntil[what], tokensWereRefused)
      if (recent(count[what]).length < LIMIT) return
      const until = now() + COOL_DOWN
      count.openUntil[what] = until
      count[what] = []
      opened(until)
      throw refuse(until, tokensWereRefused)
    },
    obtained(explicit: boolean): void {
      const count = countOf(key)
      count.prompt = []
      count.openUntil.prompt = 0
      if (!explicit) {
        count.token = withNow(count.token)
        return
      }
      count.fresh = true
      if (count.openUntil.token > now()) {
        // Half-open: one more refusal opens it again.
        count.openUntil.token = 0
        count.token = Array<number>(LIMIT - 1).fill(now())
      }
      if (recent(count.token).length === 0) count.login = []
    },
    asked(explicit: boolean): void {
      const count = countOf(key)
      if (explicit) count.login = withNow(count.login)
      else count.prompt = withNow(count.prompt)
    },
    refused(): void {
      const count = counts.get(key)
      if (!count?.fresh) return
      count.fresh = false
      count.token = withNow(count.token)
    },
    success: () => void counts.delete(key),
  }
}
