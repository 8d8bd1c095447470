// Circuit breaker for repeated refused tokens and unfinished logins: three within a minute open it for a minute.
import { LRUCache } from 'lru-cache'
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

const MAX_ATTEMPTS = 3
const WINDOW = 60_000
const COOL_DOWN = 60_000
const MAX_KEYS = 1_000

type Limit = 'token' | 'prompt' | 'login'

interface State extends Record<Limit, readonly number[]> {
  readonly openUntil: Record<Limit, number>
  /** The newest token is from an explicit login and was not refused yet. */
  isFresh: boolean
}

/** Shared across clients with the same key, because a program can create a client per request. */
const states = new LRUCache<string, State>({ max: MAX_KEYS })

function getState(key: string): State {
  const openUntil = { token: 0, prompt: 0, login: 0 }
  const state = states.get(key) ?? { token: [], prompt: [], login: [], openUntil, isFresh: false }
  states.set(key, state)
  return state
}

interface StormContext {
  readonly serverUrl: string
  readonly now: () => number
  readonly onOpen: (until: number) => void
}

export function createBreaker(key: string, { serverUrl, now, onOpen }: StormContext) {
  const recent = (times: readonly number[]) => times.filter(time => time > now() - WINDOW)
  const addNow = (times: readonly number[]) => [...times.slice(1 - MAX_ATTEMPTS), now()]

  function createError(until: number, tokensWereRefused: boolean): AuthError {
    const seconds = Math.ceil((until - now()) / 1000)
    const details = { code: 'auth_storm', retryable: true }
    if (!tokensWereRefused) {
      return new AuthError(`${MAX_ATTEMPTS} logins were started within a minute, and none was completed`, {
        ...details,
        fix: {
          text: `no login starts for ${seconds} s; to log in now, use`,
          method: 'login',
          url: printableUrl(serverUrl),
        },
      })
    }
    const command = `mcp-host doctor ${printableUrl(serverUrl)}`
    return new AuthError(`the server refused ${MAX_ATTEMPTS} tokens within a minute`, {
      ...details,
      fix: `no request is sent for ${seconds} s or until the next login; check audience and scopes with: ${command}`,
    })
  }

  return {
    /** `token`: before a request; `prompt`: before a login for a request; `login`: before an explicit login. */
    check(limit: Limit): void {
      const state = states.get(key)
      if (!state) return
      const tokensWereRefused = limit === 'token' || (limit === 'login' && recent(state.token).length > 0)
      if (state.openUntil[limit] > now()) throw createError(state.openUntil[limit], tokensWereRefused)
      if (recent(state[limit]).length < MAX_ATTEMPTS) return
      const until = now() + COOL_DOWN
      state.openUntil[limit] = until
      state[limit] = []
      onOpen(until)
      throw createError(until, tokensWereRefused)
    },
    recordToken(explicit: boolean): void {
      const state = getState(key)
      state.prompt = []
      state.openUntil.prompt = 0
      if (!explicit) {
        state.token = addNow(state.token)
        return
      }
      state.isFresh = true
      if (state.openUntil.token > now()) {
        // Half-open: one more refusal opens it again.
        state.openUntil.token = 0
        state.token = Array<number>(MAX_ATTEMPTS - 1).fill(now())
      }
      if (recent(state.token).length === 0) state.login = []
    },
    recordPrompt(explicit: boolean): void {
      const state = getState(key)
      if (explicit) state.login = addNow(state.login)
      else state.prompt = addNow(state.prompt)
    },
    recordRefusal(): void {
      const state = states.get(key)
      if (!state?.isFresh) return
      state.isFresh = false
      state.token = addNow(state.token)
    },
    success: () => void states.delete(key),
  }
}
