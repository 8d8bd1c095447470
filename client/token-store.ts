// Stored tokens of one server and identity, with atomic updates.

import type { Authority, ResourceInfo } from './discovery.ts'
import { type DPoPSigner, digest } from './dpop.ts'
import { callOption } from './errors.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import { type ScopeChoice, splitScope, union } from './scopes.ts'
import type { CacheContext, ClientIdentity, LoginLease, ServerInfo, TokenCache, TokenContainer } from './stores.ts'
import { defined } from './text.ts'
import type { TokenResult } from './token-endpoint.ts'

export type Outcome = TokenContainer | undefined

type Flight = { readonly outcome: Promise<Outcome>; readonly prompt: 'no' | 'ask' | 'defer' }
const flights = new WeakMap<TokenCache, Map<string, Flight>>()

export function createFlights(cache: TokenCache, key: string) {
  const cacheFlights = flights.get(cache) ?? new Map<string, Flight>()
  flights.set(cache, cacheFlights)
  return {
    current: () => cacheFlights.get(key),
    start(work: () => Promise<Outcome>, prompt: Flight['prompt']): Promise<Outcome> {
      const outcome = work().finally(() => cacheFlights.delete(key))
      cacheFlights.set(key, { outcome, prompt })
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
  const maxLeeway = leeway === undefined ? Math.min(MAX_LEEWAY, (token.expiresIn ?? 0) * 1000 * LEEWAY) : leeway * 1000
  return now >= end - maxLeeway * (1 - spread / 4)
}

type KeyOptions = Pick<ResolvedOptions, 'serverUrl' | 'clientId' | 'clientMetadataDocumentUri' | 'grant' | 'profile'>

export async function createCacheKey(options: KeyOptions): Promise<string> {
  const { serverUrl, clientId, clientMetadataDocumentUri, grant, profile } = options
  // Device and browser logins share a user's tokens; machine tokens are separate.
  const acting = grant.type === 'device' ? 'authorization_code' : grant.type
  const identity = [serverUrl, clientId ?? clientMetadataDocumentUri ?? '', acting, profile ?? '']
  return digest(JSON.stringify(identity))
}

interface ContainerInput {
  readonly authority: Pick<Authority, 'server' | 'resource'> & { readonly info: Pick<ResourceInfo, 'metadataUrl'> }
  readonly client: ClientIdentity
  readonly choice: ScopeChoice
  readonly dpop: DPoPSigner | undefined
  readonly previous: TokenContainer | undefined
  readonly now: number
}

export const earlierScopes = (previous: TokenContainer | undefined, issuer: string): string[] =>
  previous?.authorizationServer === issuer ? union(splitScope(previous.requestedScope), splitScope(previous.scope)) : []

const configuredEndpoint = ({ tokenEndpoint, tokenEndpointGiven }: ServerInfo): string | undefined =>
  tokenEndpointGiven ? tokenEndpoint : undefined

export function createContainer(response: TokenResult, input: ContainerInput): TokenContainer {
  const { authority, client, choice, dpop, previous, now } = input
  const { server, info, resource } = authority
  const requested = union(earlierScopes(previous, server.issuer), splitScope(choice.requested))
  return {
    v: 1,
    obtainedAt: now,
    accessToken: response.accessToken,
    tokenType: response.tokenType,
    clientId: client.clientId,
    authorizationServer: server.issuer,
    ...defined({
      refreshToken: response.refreshToken,
      expiresIn: response.expiresIn,
      // A response without `scope` grants the requested scopes (RFC 6749 §5.1).
      scope: response.scope ?? choice.scope,
      requestedScope: requested.length > 0 ? requested.join(' ') : undefined,
      clientSecret: client.source === 'registered' ? client.clientSecret : undefined,
      clientSecretExpiresAt: client.clientSecretExpiresAt,
      tokenEndpointAuthMethod: client.tokenEndpointAuthMethod,
      tokenEndpoint: configuredEndpoint(server),
      resource,
      resourceMetadataUrl: info.metadataUrl,
      dpopJwk: response.tokenType === 'DPoP' ? dpop?.jwk : undefined,
      registration: client.registration ?? previous?.registration,
    }),
  }
}

/** Keeps omitted values after a refresh (RFC 6749 §6). */
export const renewContainer = (response: TokenResult, previous: TokenContainer, now: number): TokenContainer => {
  const { expiresIn: _, ...rest } = previous
  return {
    ...rest,
    obtainedAt: now,
    accessToken: response.accessToken,
    tokenType: response.tokenType,
    ...defined({
      expiresIn: response.expiresIn,
      refreshToken: response.refreshToken ?? previous.refreshToken,
      scope: response.scope ?? previous.scope,
    }),
  }
}

type OwnOptions = Pick<ResolvedOptions, 'clientId' | 'clientIssuer' | 'resourceIndicator'>

export function isOwn(container: TokenContainer, { clientId, clientIssuer, resourceIndicator }: OwnOptions): boolean {
  if (clientId !== undefined && container.clientId !== clientId) return false
  if (clientIssuer !== undefined && container.authorizationServer !== clientIssuer) return false
  return (
    resourceIndicator === 'auto' ||
    container.resource === (resourceIndicator === 'omit' ? undefined : resourceIndicator)
  )
}

export const canRefresh = (tokens: TokenContainer, { server, resource }: Authority, client: ClientIdentity): boolean =>
  tokens.refreshToken !== undefined &&
  tokens.authorizationServer === server.issuer &&
  tokens.clientId === client.clientId &&
  tokens.tokenEndpoint === configuredEndpoint(server) &&
  tokens.tokenEndpointAuthMethod === client.tokenEndpointAuthMethod &&
  tokens.resource === resource

export type TokenStore = ReturnType<typeof createTokenStore>

const UNSHARED_LEASE: LoginLease = { held: true, release: async () => undefined }

const registrationOnly = (container: TokenContainer): TokenContainer | undefined =>
  container.registration && { v: 1, registration: container.registration }

/** Keeps the issuer of the client id, which must not be sent to another one. */
const dropTokens = (tokens: TokenContainer): TokenContainer => {
  const { registration, clientId, authorizationServer, requestedScope, scope } = tokens
  const requested = union(splitScope(requestedScope), splitScope(scope)).join(' ') || undefined
  return { v: 1, ...defined({ registration, clientId, authorizationServer, requestedScope: requested }) }
}

const CACHE_FIX = 'see `cause`; the server still accepts the tokens'

export function createTokenStore(cache: TokenCache, context: CacheContext) {
  const callCache = <T>(what: string, work: () => Promise<T> | T): Promise<T> =>
    callOption(`the token cache could not ${what}`, { code: 'cache_failed', fix: CACHE_FIX }, work)

  const read = async () => (await callCache('be read', () => cache.getTokens(context))) ?? undefined

  const write = async (container: TokenContainer): Promise<void> => {
    await callCache('store', () => cache.storeTokens(container, context))
  }

  async function replace(container: TokenContainer | undefined): Promise<void> {
    if (container || !cache.deleteTokens) return write(container ?? { v: 1 })
    await callCache('delete', () => cache.deleteTokens?.(context))
  }

  return {
    read,
    write,
    /** Deletes these tokens, but not the registration and requested scopes. Returns newer stored tokens instead. */
    async drop({ accessToken, refreshToken }: Pick<TokenContainer, 'accessToken' | 'refreshToken'>): Promise<Outcome> {
      const stored = await read()
      if (!stored?.accessToken && !stored?.refreshToken) return undefined
      if (stored.accessToken !== accessToken || stored.refreshToken !== refreshToken) return stored
      await replace(dropTokens(stored))
      return undefined
    },
    async clear(keepRegistration: boolean): Promise<void> {
      // Unreadable data is deleted, too.
      const stored = keepRegistration ? await read().catch(() => undefined) : undefined
      await replace(stored && registrationOnly(stored))
    },
    locked: <T>(work: () => Promise<T>): Promise<T> => (cache.withLock ? cache.withLock(context, work) : work()),
    leaseLogin: async (): Promise<LoginLease> => (cache.leaseLogin ? cache.leaseLogin(context) : UNSHARED_LEASE),
  }
}
