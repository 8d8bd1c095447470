// One container of the token cache: read, written and dropped so that nobody's newer token is lost, within this process
// and, where the cache has a lock, between processes.
import type { CacheContext, LoginLease, TokenCache, TokenContainer } from './cache/types.ts'
import { AuthError } from './errors.ts'
import { splitScope, unite } from './scopes.ts'

export interface TokenStore {
  read(): Promise<TokenContainer | undefined>
  /** Resolves once it is kept. */
  write(container: TokenContainer): Promise<void>
  /**
   * Drops the tokens of one generation: those that `used` was part of. Gives what is stored instead where somebody has
   * newer ones. The registration, and what was ever asked for, stay.
   */
  drop(used: Pick<TokenContainer, 'accessToken' | 'refreshToken'>): Promise<TokenContainer | undefined>
  /** Drops everything, or everything but the registration. */
  clear(keepRegistration: boolean): Promise<void>
  /** While no other process does. Reading and writing inside is safe. */
  locked<T>(work: () => Promise<T>): Promise<T>
  leaseLogin(): Promise<LoginLease>
}

const HELD: LoginLease = { held: true, release: async () => undefined }

const without = (container: TokenContainer): TokenContainer | undefined =>
  container.registration && { v: 1, registration: container.registration }

/** What outlives tokens that were refused: who the client is, and what was ever asked for (the next login asks again). */
const spent = ({ registration, authorizationServer, requestedScope, scope }: TokenContainer): TokenContainer => ({
  v: 1,
  ...(registration && { registration }),
  ...(authorizationServer !== undefined && { authorizationServer }),
  ...((requestedScope ?? scope) !== undefined && {
    requestedScope: unite(splitScope(requestedScope), splitScope(scope)).join(' '),
  }),
})

export function createTokenStore(cache: TokenCache, context: CacheContext): TokenStore {
  async function guarded<T>(what: string, work: () => Promise<T> | T): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      if (AuthError.is(cause)) throw cause
      throw new AuthError(`the token cache could not ${what}`, {
        code: 'cache_failed',
        fix: 'look at the cause; the tokens were not lost by the server',
        cause,
      })
    }
  }

  const read = async () => (await guarded('be read', () => cache.getTokens(context))) ?? undefined

  const write = (container: TokenContainer) =>
    guarded('store', async () => {
      await cache.storeTokens(container, context)
    })

  async function keep(container: TokenContainer | undefined) {
    if (container) return write(container)
    if (!cache.deleteTokens) return write({ v: 1 })
    await guarded('delete', async () => {
      await cache.deleteTokens?.(context)
    })
  }

  return {
    read,
    write,
    async drop({ accessToken, refreshToken }) {
      const stored = await read()
      if (!stored?.accessToken && !stored?.refreshToken) return undefined
      if (stored.accessToken !== accessToken || stored.refreshToken !== refreshToken) return stored
      await keep(spent(stored))
      return undefined
    },
    async clear(keepRegistration) {
      // What cannot be read is dropped as well: this is the way out.
      const stored = keepRegistration ? await read().catch(() => undefined) : undefined
      await keep(stored && without(stored))
    },
    locked: work => (cache.withLock ? cache.withLock(context, work) : work()),
    leaseLogin: async () => (cache.leaseLogin ? cache.leaseLogin(context) : HELD),
  }
}
