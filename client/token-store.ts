// Stored tokens of one server and identity, with atomic updates.

import type { Authority, ResourceInfo } from './discovery.ts'
import { type DPoPSigner, digest } from './dpop.ts'
import { callOption } from './errors.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import { type ScopeChoice, splitScope, unite } from './scopes.ts'
import type { CacheContext, ClientIdentity, LoginLease, ServerInfo, TokenCache, TokenContainer } from './stores.ts'
import { given } from './text.ts'
import type { TokenAnswer } from './token-endpoint.ts'

export type Outcome = TokenContainer | undefined

type Flight = { readonly outcome: Promise<Outcome>; readonly ask: 'no' | 'ask' | 'defer' }
const flights = new WeakMap<TokenCache, Map<string, Flight>>()

export function createFlights(cache: TokenCache, key: string) {
  const ofCache = flights.get(cache) ?? new Map<string, Flight>()
  flights.set(cache, ofCache)
  return {
    current: () => ofCache.get(key),
    start(work: () => Promise<Outcome>, ask: Flight['ask']): Promise<Outcome> {
      const outcome = work().finally(() => ofCache.delete(key))
      ofCache.set(key, { outcome, ask })
      outcome.catch(() => undefined)
      return outcome
    },
  }
}

/** The members of a container that messages must not show. */
export const secretsIn = (container: Outcome): readonly (string | undefined)[] => [
  container?.accessToken,
  container?.refreshToken,
  container?.clientSecret,
  container?.registration?.clientSecret,
  container?.dpopJwk?.d,
]

const MAX_LEEWAY = 60_000
const LEEWAY = 0.1

type Lifetime = Pick<TokenContainer, 'obtainedAt' | 'expiresIn'>

export const expiresAt = ({ obtainedAt, expiresIn }: Lifetime): number | undefined =>
  obtainedAt === undefined || expiresIn === undefined ? undefined : obtainedAt + expiresIn * 1000

export function isExpired(token: Lifetime, now: number): boolean {
  const end = expiresAt(token)
  return end !== undefined && now >= end
}

/**
 * True if the token expires soon: within a tenth of its lifetime, at most a minute, or `leeway` seconds. `spread` (0 to
 * 1) distributes refreshes.
 */
export function isDue(token: Lifetime, now: number, leeway: number | undefined, spread: number): boolean {
  const end = expiresAt(token)
  if (end === undefined) return false
  const most = leeway === undefined ? Math.min(MAX_LEEWAY, (token.expiresIn ?? 0) * 1000 * LEEWAY) : leeway * 1000
  return now >= end - most * (1 - spread / 4)
}

type KeyOptions = Pick<ResolvedOptions, 'serverUrl' | 'clientId' | 'clientMetadataDocumentUri' | 'grant' | 'profile'>

export async function createCacheKey(options: KeyOptions): Promise<string> {
  const { serverUrl, clientId, clientMetadataDocumentUri, grant, profile } = options
  // Device and browser logins share a user's tokens; machine tokens are separate.
  const acting = grant.type === 'device' ? 'authorization_code' : grant.type
  const identity = [serverUrl, clientId ?? clientMetadataDocumentUri ?? '', acting, profile ?? '']
  return digest(JSON.stringify(identity))
}

interface AnswerFacts {
  readonly authority: Pick<Authority, 'server' | 'resource'> & { readonly info: Pick<ResourceInfo, 'metadataUrl'> }
  readonly client: ClientIdentity
  readonly choice: ScopeChoice
  readonly dpop: DPoPSigner | undefined
  readonly before: TokenContainer | undefined
  readonly now: number
}

export const earlierScopes = (before: TokenContainer | undefined, issuer: string): string[] =>
  before?.authorizationServer === issuer ? unite(splitScope(before.requestedScope), splitScope(before.scope)) : []

const givenEndpoint = ({ tokenEndpoint, tokenEndpointGiven }: ServerInfo): string | undefined =>
  tokenEndpointGiven ? tokenEndpoint : undefined

export function createContainer(answer: TokenAnswer, facts: AnswerFacts): TokenContainer {
  const { authority, client, choice, dpop, before, now } = facts
  const { server, info, resource } = authority
  const requested = unite(earlierScopes(before, server.issuer), splitScope(choice.requested))
  return {
    v: 1,
    obtainedAt: now,
    accessToken: answer.accessToken,
    tokenType: answer.tokenType,
    clientId: client.clientId,
    authorizationServer: server.issuer,
    ...given({
      refreshToken: answer.refreshToken,
      expiresIn: answer.expiresIn,
      // A response without `scope` grants the requested scopes (RFC 6749 §5.1).
      scope: answer.scope ?? choice.scope,
      requestedScope: requested.length > 0 ? requested.join(' ') : undefined,
      clientSecret: client.source === 'registered' ? client.clientSecret : undefined,
      clientSecretExpiresAt: client.clientSecretExpiresAt,
      tokenEndpointAuthMethod: client.tokenEndpointAuthMethod,
      tokenEndpoint: givenEndpoint(server),
      resource,
      resourceMetadataUrl: info.metadataUrl,
      dpopJwk: answer.tokenType === 'DPoP' ? dpop?.jwk : undefined,
      registration: client.registration ?? before?.registration,
    }),
  }
}

/** Keeps omitted values after a refresh (RFC 6749 §6). */
export const renewContainer = (answer: TokenAnswer, before: TokenContainer, now: number): TokenContainer => {
  const { expiresIn: _, ...kept } = before
  return {
    ...kept,
    obtainedAt: now,
    accessToken: answer.accessToken,
    tokenType: answer.tokenType,
    ...given({
      expiresIn: answer.expiresIn,
      refreshToken: answer.refreshToken ?? before.refreshToken,
      scope: answer.scope ?? before.scope,
    }),
  }
}

type Stamps = Pick<ResolvedOptions, 'clientId' | 'clientIssuer' | 'resourceIndicator'>

export function isOurs(container: TokenContainer, { clientId, clientIssuer, resourceIndicator }: Stamps): boolean {
  if (clientId !== undefined && container.clientId !== clientId) return false
  if (clientIssuer !== undefined && container.authorizationServer !== clientIssuer) return false
  return (
    resourceIndicator === 'auto' ||
    container.resource === (resourceIndicator === 'omit' ? undefined : resourceIndicator)
  )
}

export const fits = (container: TokenContainer, { server, resource }: Authority, client: ClientIdentity): boolean =>
  container.refreshToken !== undefined &&
  container.authorizationServer === server.issuer &&
  container.clientId === client.clientId &&
  container.tokenEndpoint === givenEndpoint(server) &&
  container.tokenEndpointAuthMethod === client.tokenEndpointAuthMethod &&
  container.resource === resource

export type TokenStore = ReturnType<typeof createTokenStore>

const HELD: LoginLease = { held: true, release: async () => undefined }

const without = (container: TokenContainer): TokenContainer | undefined =>
  container.registration && { v: 1, registration: container.registration }

const spent = ({ registration, authorizationServer, requestedScope, scope }: TokenContainer): TokenContainer => ({
  v: 1,
  ...(registration && { registration }),
  ...(authorizationServer !== undefined && { authorizationServer }),
  ...((requestedScope ?? scope) !== undefined && {
    requestedScope: unite(splitScope(requestedScope), splitScope(scope)).join(' '),
  }),
})

const CACHE_FIX = 'see `cause`; the server still accepts the tokens'

export function createTokenStore(cache: TokenCache, context: CacheContext) {
  const guarded = <T>(what: string, work: () => Promise<T> | T): Promise<T> =>
    callOption(`the token cache could not ${what}`, { code: 'cache_failed', fix: CACHE_FIX }, work)

  const read = async () => (await guarded('be read', () => cache.getTokens(context))) ?? undefined

  const write = async (container: TokenContainer): Promise<void> => {
    await guarded('store', () => cache.storeTokens(container, context))
  }

  async function keep(container: TokenContainer | undefined): Promise<void> {
    if (container || !cache.deleteTokens) return write(container ?? { v: 1 })
    await guarded('delete', () => cache.deleteTokens?.(context))
  }

  return {
    read,
    write,
    /** Deletes these tokens, but not the registration and requested scopes. Returns newer stored tokens instead. */
    async drop({ accessToken, refreshToken }: Pick<TokenContainer, 'accessToken' | 'refreshToken'>): Promise<Outcome> {
      const stored = await read()
      if (!stored?.accessToken && !stored?.refreshToken) return undefined
      if (stored.accessToken !== accessToken || stored.refreshToken !== refreshToken) return stored
      await keep(spent(stored))
      return undefined
    },
    async clear(keepRegistration: boolean): Promise<void> {
      // Unreadable data is deleted, too.
      const stored = keepRegistration ? await read().catch(() => undefined) : undefined
      await keep(stored && without(stored))
    },
    locked: <T>(work: () => Promise<T>): Promise<T> => (cache.withLock ? cache.withLock(context, work) : work()),
    leaseLogin: async (): Promise<LoginLease> => (cache.leaseLogin ? cache.leaseLogin(context) : HELD),
  }
}
