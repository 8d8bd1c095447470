// Credentials: a password, or a function that is called for each connection and before expiry.
import { errorText, type Logger } from '../../../core/plugin.ts'
import { RedisTimeout, within, withoutPassword } from './failures.ts'
import type { ResolvedRedis } from './settings.ts'

export interface Authenticated {
  sendCommand(words: readonly string[]): Promise<unknown>
}

interface CredentialsSettings {
  readonly redis: Pick<ResolvedRedis, 'username' | 'password' | 'name' | 'commandTimeout'>
  readonly log: Logger
  open(): readonly Authenticated[]
}

interface Credential {
  readonly password: string | undefined
  readonly expires: number | undefined
}

/** Fraction of the lifetime after which a password is renewed. */
const RENEWAL_RATIO = 0.75
const MIN_DELAY = 500
const RETRY_DELAY = 2_000
const MAX_DELAY = 2 ** 31 - 1

export class Credentials {
  readonly #settings: CredentialsSettings
  /** Recent passwords, to remove them from error messages. */
  #recent: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  #due = Number.POSITIVE_INFINITY
  #closed = false

  constructor(settings: CredentialsSettings) {
    this.#settings = settings
  }

  async fetch(): Promise<{ username?: string; password?: string }> {
    const { username } = this.#settings.redis
    const { password, expires } = await this.#read()
    this.#renewBefore(expires)
    return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
  }

  hide(thrown: unknown): unknown {
    return this.#recent.reduce(withoutPassword, withoutPassword(thrown, undefined))
  }

  close() {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #read(): Promise<Credential> {
    const { password, commandTimeout } = this.#settings.redis
    const given =
      typeof password === 'function'
        ? parseCredential(await call(password, commandTimeout))
        : { password, expires: undefined }
    if (given.password !== undefined) this.#recent = [...new Set([given.password, ...this.#recent])].slice(0, 3)
    return given
  }

  #renewBefore(expires: number | undefined) {
    if (expires === undefined || this.#closed) return
    const now = Date.now()
    const due = now + Math.max(MIN_DELAY, (expires - now) * RENEWAL_RATIO)
    if (due >= this.#due && this.#due > now) return
    this.#renewAt(due)
  }

  #renewAt(due: number) {
    if (this.#closed) return
    clearTimeout(this.#timer)
    this.#due = due
    this.#timer = setTimeout(() => void this.#renew(), Math.min(due - Date.now(), MAX_DELAY)).unref()
  }

  async #renew() {
    const { redis, log, open } = this.#settings
    this.#due = Number.POSITIVE_INFINITY
    try {
      const { password = '', expires } = await this.#read()
      const words = ['AUTH', redis.username ?? 'default', password]
      await Promise.all(open().map(client => within(client.sendCommand(words), redis.commandTimeout)))
      log.debug({ redis: redis.name }, 'sent a new password to Redis')
      this.#renewBefore(expires)
    } catch (error) {
      if (this.#closed) return
      const reason = errorText(this.hide(error))
      log.warn({ code: 'MH2320', redis: redis.name, reason }, 'cannot send the new password to Redis; retrying')
      this.#renewAt(Date.now() + RETRY_DELAY)
    }
  }
}

async function call(source: Exclude<ResolvedRedis['password'], string | undefined>, timeout: number): Promise<unknown> {
  try {
    return await within(Promise.resolve().then(source), timeout)
  } catch (cause) {
    const why = cause instanceof RedisTimeout ? `nothing within ${timeout} ms` : errorText(cause)
    throw createError(`the function redis.password failed: ${why}`)
  }
}

/** Creates an error that counts as a network error. */
const createError = (text: string) => Object.assign(new Error(text), { code: 'ERR_REDIS_PASSWORD' })

const INVALID =
  'the function redis.password must return a string or { password, expires }; expires is a Date or milliseconds'

function parseCredential(given: unknown): Credential {
  const { password, expires } = (typeof given === 'string' ? { password: given } : (given ?? {})) as {
    password?: unknown
    expires?: unknown
  }
  const until = expires instanceof Date ? expires.getTime() : expires
  if (typeof password !== 'string' || password === '') throw createError(INVALID)
  if (until !== undefined && !(typeof until === 'number' && Number.isFinite(until))) throw createError(INVALID)
  // Secret files end with a line break.
  return { password: password.replace(/[\r\n]+$/, ''), expires: until }
}
