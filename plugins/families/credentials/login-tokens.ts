// Stored tokens of users at one API, and the dynamic registration of this host, which all users share.
import { LRUCache } from 'lru-cache'
import { HostError } from '../../../core/index.ts'
import { lruLimit, type Services } from '../../../core/internal.ts'
import type { Clock } from '../../../core/plugin.ts'
import { grantedKey, type Records } from './records.ts'

type TokenCache = Parameters<Services['createLoginClient']>[0]['tokenCache']
type Tokens = Parameters<TokenCache['storeTokens']>[0]
type Registration = NonNullable<Tokens['registration']>

/** Milliseconds. */
const DAY = 86_400_000
/** After the last use. */
const TOKENS_TTL = 30 * DAY
const REGISTRATION_TTL = 90 * DAY
const LOCK_TTL = 30_000
/** At most one registration is dropped in this time, because the next login registers again. */
const DROP_PAUSE = 60_000
const MAX_USED = 10_000
const MAX_DROPPED = 100

export interface LoginTokens {
  readonly cache: TokenCache
  /** The client id of the shared registration. */
  readClientId(): Promise<string | undefined>
  /** Drops a registration that the authorization server has deleted. False if another one was dropped just now. */
  dropRegistration(clientId: string): Promise<boolean>
}

/** `name`: of the API and its settings. `isRegistered`: the client id is from a dynamic registration. */
export function createLoginTokens(records: Records, clock: Clock, name: string, isRegistered: boolean): LoginTokens {
  const sharedKey = grantedKey('api client', name)
  const lastUse = new LRUCache<string, number>(lruLimit(MAX_USED))
  const deleted = new LRUCache<string, true>(lruLimit(MAX_DROPPED))
  let pausedUntil = Number.NEGATIVE_INFINITY

  const tokenKey = (key: string) => grantedKey('api tokens', JSON.stringify([name, key]))
  const usable = (found: Registration | undefined) => (found && !deleted.has(found.clientId) ? found : undefined)
  const readShared = async () => (isRegistered ? usable(await records.read<Registration>(sharedKey)) : undefined)

  async function find(key: string): Promise<Tokens | undefined> {
    const stored = await records.read<Tokens>(tokenKey(key))
    const registration = usable(stored?.registration) ?? (await readShared())
    if (!stored) return registration && { v: 1, registration }
    const { registration: _, ...rest } = stored
    return registration ? { ...rest, registration } : rest
  }

  async function extendUse(key: string) {
    const now = clock.monotonic()
    if (now - (lastUse.get(key) ?? Number.NEGATIVE_INFINITY) < DAY) return
    lastUse.set(key, now)
    await records.update<Tokens>(tokenKey(key), TOKENS_TTL, tokens => tokens)
  }

  async function dropRegistration(clientId: string): Promise<boolean> {
    const now = clock.monotonic()
    if (now < pausedUntil) return false
    pausedUntil = now + DROP_PAUSE
    deleted.set(clientId, true)
    await records.remove<Registration>(sharedKey, one => one.clientId === clientId)
    return true
  }

  async function storeRegistration(registration: Registration, before: Registration | undefined) {
    const current = await readShared()
    // Tokens of a user can have an older registration than the shared one.
    const isNew = before?.clientId !== registration.clientId
    if (isNew || !current || current.clientId === registration.clientId)
      await records.write(sharedKey, registration, REGISTRATION_TTL)
  }

  return {
    cache: {
      async getTokens({ key }) {
        const tokens = await find(key)
        if (tokens?.accessToken !== undefined) await extendUse(key)
        return tokens
      },
      async storeTokens(tokens, { key }) {
        const { registration, accessToken, refreshToken } = tokens
        const previous = (await find(key))?.registration
        if (registration) await storeRegistration(registration, previous)
        else if (previous) await dropRegistration(previous.clientId)
        if (accessToken === undefined && refreshToken === undefined) await records.delete(tokenKey(key))
        else await records.write(tokenKey(key), tokens, TOKENS_TTL)
      },
      async withLock({ key }, work) {
        const done = await records.withLock(grantedKey('api tokens lock', JSON.stringify([name, key])), LOCK_TTL, work)
        if (!done) throw new HostError('unavailable', { detail: 'another node renews the token' })
        return done.value
      },
    },
    readClientId: async () => (await readShared())?.clientId,
    dropRegistration,
  }
}
