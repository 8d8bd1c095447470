// Selects requested scopes (MCP authorization, "Scope Selection Strategy"; SEP-2350) and tracks failed step-ups.
import { LRUCache } from 'lru-cache'
import type { ResolvedOptions } from './resolve-options.ts'
import type { ServerInfo } from './stores.ts'

const OFFLINE_ACCESS = 'offline_access'

export const splitScope = (scope: string | null | undefined): string[] => [
  ...new Set((scope ?? '').split(' ').filter(Boolean)),
]

export const union = (...lists: ReadonlyArray<readonly string[] | undefined>): string[] => [
  ...new Set(lists.flatMap(list => list ?? [])),
]

export const covers = (granted: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every(scope => granted.includes(scope))

/** The scopes that a token is requested for. */
export interface WantedScopes {
  readonly challenged: readonly string[] | undefined
  readonly added?: readonly string[] | undefined
  readonly stepUp: boolean
}

interface ScopeSources extends WantedScopes {
  readonly supported: readonly string[] | undefined
  readonly earlier: readonly string[]
}

type ScopeOptions = Pick<
  ResolvedOptions,
  'scopes' | 'scopeMode' | 'scopeSelector' | 'offlineAccess' | 'grant' | 'dynamicClientRegistration' | 'clientId'
>

export interface ScopeChoice {
  readonly scope: string | undefined
  /** Stored scopes before the selector, which runs again next time. */
  readonly requested: string | undefined
}

const joinScopes = (scopes: readonly string[] | null | undefined) => (scopes?.length ? scopes.join(' ') : undefined)

function suggestScopes({ scopes, scopeMode }: ScopeOptions, { challenged, supported, stepUp }: ScopeSources) {
  if (scopeMode === 'override' && scopes) return stepUp ? union(scopes, challenged) : scopes
  return challenged ?? supported ?? scopes ?? []
}

const isOverridden = ({ scopes, scopeMode }: ScopeOptions) => scopes !== undefined && scopeMode === 'override'

function mayRefresh({ grant, dynamicClientRegistration: { metadata }, clientId }: ScopeOptions): boolean {
  if (grant.type !== 'authorization_code' && grant.type !== 'device') return false
  const registered = clientId === undefined ? metadata?.['grant_types'] : undefined
  return !Array.isArray(registered) || registered.includes('refresh_token')
}

function needsOffline(options: ScopeOptions, scopes: readonly string[], server: Pick<ServerInfo, 'scopesSupported'>) {
  if (options.offlineAccess !== 'auto') return options.offlineAccess
  const listed = server.scopesSupported?.includes(OFFLINE_ACCESS) ?? false
  return listed && scopes.length > 0 && !isOverridden(options) && mayRefresh(options)
}

export async function chooseScope(
  options: ScopeOptions,
  sources: ScopeSources,
  server: Pick<ServerInfo, 'scopesSupported'>,
): Promise<ScopeChoice> {
  const { offlineAccess, scopeSelector } = options
  const wanted = union(sources.earlier, suggestScopes(options, sources), sources.added)
  const explicit = union(sources.challenged, sources.added)
  const isExplicit = isOverridden(options) || offlineAccess === true || explicit.includes(OFFLINE_ACCESS)
  // Ignores `offline_access` of a resource (MCP authorization, "Refresh Tokens").
  const base = isExplicit ? wanted : wanted.filter(scope => scope !== OFFLINE_ACCESS)
  const scopes = needsOffline(options, base, server) ? union(base, [OFFLINE_ACCESS]) : base
  const chosen = scopeSelector ? await scopeSelector(scopes.length > 0 ? scopes : null) : scopes
  return { scope: joinScopes(chosen), requested: joinScopes(base) }
}

const MAX_OPERATIONS = 1_000

export function createStepUps() {
  const operations = new LRUCache<string, readonly string[]>({ max: MAX_OPERATIONS })
  return {
    mayTry(operation: string, scopes: readonly string[]): boolean {
      const before = operations.get(operation)
      return before === undefined || !covers(before, scopes)
    },
    record(operation: string, scopes: readonly string[]): void {
      operations.set(operation, union(operations.get(operation), scopes))
    },
    forget(operation: string): void {
      if (operations.size > 0) operations.delete(operation)
    },
  }
}

export function operationOf({ method, url, headers }: { method: string; url: URL; headers: Headers }): string {
  const name = headers.get('mcp-method')
  return name ? JSON.stringify([name, headers.get('mcp-name')]) : `${method} ${url.pathname}`
}
