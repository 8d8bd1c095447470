// Logins to the console: one-time tokens, the configured token, and the sessions of operators.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A session ends after this time, milliseconds. */
const SESSION_TTL = 12 * 3_600_000
/** The same for a login by role, because the role can be withdrawn. */
const ROLE_TTL = 3_600_000
/** A session without requests ends after this time, milliseconds. */
const SESSION_IDLE = 2 * 3_600_000
/** Maximum sessions; a further login ends the oldest one. */
export const MAX_SESSIONS = 16
/** Unused one-time tokens. */
const MAX_TOKENS = 8
/** A one-time token is valid for this time, milliseconds. */
const TOKEN_TTL = 10 * 60_000

/** Maximum failed logins per window: of one address, and of all addresses. */
export const MAX_FAILURES = 5
const MAX_TOTAL_FAILURES = 50
const WINDOW = 60_000

export interface OperatorSession {
  readonly via: 'one-time token' | 'token' | 'role'
  /** The pseudonym of a user who logged in by role. */
  readonly user?: string
  readonly expiresAt: number
  /** Returns a function that removes the task. */
  onEnd(task: () => void): () => void
}

interface StoredSession extends OperatorSession {
  usedAt: number
  readonly cookie: Buffer
  readonly ending: Set<() => void>
}

const digest = (text: string) => createHash('sha256').update(text).digest()
const keyOf = (text: string) => digest(text).toString('base64url')

const createSecret = () => randomBytes(32).toString('base64url')

/** Limits failed attempts per address in fixed windows. Successful logins are not limited. */
function createAttempts(now: () => number) {
  let failures = new Map<string, number>()
  let all = 0
  let began = now()
  return {
    isBlocked(address: string): boolean {
      if (now() - began >= WINDOW) {
        failures = new Map()
        all = 0
        began = now()
      }
      return all >= MAX_TOTAL_FAILURES || (failures.get(address) ?? 0) >= MAX_FAILURES
    },
    note(address: string) {
      all++
      failures.set(address, (failures.get(address) ?? 0) + 1)
    },
  }
}

/** A request needs both. Other ports of the address receive the cookie, but not the secret, which is a header. */
export interface Credentials {
  readonly cookie: string
  readonly secret: string
}

type LoginResult =
  | ({ readonly kind: 'accepted'; readonly session: OperatorSession } & Credentials)
  | { readonly kind: 'refused' | 'blocked' }

/** `token`: the configured token, valid for any number of logins. */
export function createLogins(token: string | undefined, now: () => number) {
  const expected = token === undefined ? undefined : digest(token)
  /** When each token expires. */
  const oneTime = new Map<string, number>()
  const sessions = new Map<string, StoredSession>()
  const attempts = createAttempts(now)

  function end(key: string) {
    const session = sessions.get(key)
    if (!session) return
    sessions.delete(key)
    for (const task of session.ending) task()
  }

  function open(via: OperatorSession['via'], user?: string) {
    for (const key of [...sessions.keys()].slice(0, Math.max(0, sessions.size - MAX_SESSIONS + 1))) end(key)
    // Not chosen by the client, which prevents session fixation.
    const [cookie, secret] = [createSecret(), createSecret()]
    const ending = new Set<() => void>()
    const session: StoredSession = {
      via,
      ...(user !== undefined && { user }),
      expiresAt: now() + (user === undefined ? SESSION_TTL : ROLE_TTL),
      usedAt: now(),
      cookie: digest(cookie),
      ending,
      onEnd(task) {
        ending.add(task)
        return () => void ending.delete(task)
      },
    }
    sessions.set(keyOf(secret), session)
    return { cookie, secret, session }
  }

  return {
    createToken(): string {
      const made = createSecret()
      oneTime.set(keyOf(made), now() + TOKEN_TTL)
      const [oldest] = oneTime.keys()
      if (oneTime.size > MAX_TOKENS && oldest !== undefined) oneTime.delete(oldest)
      return made
    },
    /** `user`: of a ticket, which is then not compared with tokens. */
    logIn(given: string, address: string, user?: string): LoginResult {
      if (user !== undefined) return { kind: 'accepted', ...open('role', user) }
      // One-time tokens cannot be guessed, so the limit on failures does not apply to them.
      const key = keyOf(given)
      const expiresAt = oneTime.get(key) ?? 0
      oneTime.delete(key)
      if (now() < expiresAt) return { kind: 'accepted', ...open('one-time token') }
      // Behind a proxy, all clients have one address: failures of others must not lock the operator out.
      if (expected && timingSafeEqual(digest(given), expected)) return { kind: 'accepted', ...open('token') }
      if (attempts.isBlocked(address)) return { kind: 'blocked' }
      attempts.note(address)
      return { kind: 'refused' }
    },
    /** `cookies`: values with the name of the console's cookie. Other ports of the address can set further ones. */
    find(secret: string, cookies: readonly string[]): OperatorSession | undefined {
      const key = keyOf(secret)
      const session = sessions.get(key)
      if (!session || !cookies.some(cookie => timingSafeEqual(digest(cookie), session.cookie))) return undefined
      const at = now()
      if (at >= session.expiresAt || at - session.usedAt >= SESSION_IDLE) return void end(key)
      session.usedAt = at
      return session
    },
    logOut: (secret: string) => end(keyOf(secret)),
    endAll() {
      for (const key of [...sessions.keys()]) end(key)
    },
  }
}

export type Logins = ReturnType<typeof createLogins>
