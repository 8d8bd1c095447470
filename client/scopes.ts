// Which scopes to request (MCP authorization, "Scope Selection Strategy"; SEP-2350), and which step-ups were tried.
import type { ServerInfo } from './parties.ts'
import type { ResolvedOptions } from './resolve-options.ts'

export const OFFLINE_ACCESS = 'offline_access'

/** A `scope` value as its scopes, each once and in their order. */
export const splitScope = (scope: string | null | undefined): string[] => [
  ...new Set((scope ?? '').split(' ').filter(Boolean)),
]

export const unite = (...lists: ReadonlyArray<readonly string[] | undefined>): string[] => [
  ...new Set(lists.flatMap(list => list ?? [])),
]

/** True where every one of `wanted` is in `granted`. */
export const covers = (granted: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every(scope => granted.includes(scope))

export interface ScopeFacts {
  /** Of the challenge that led here. */
  readonly challenged: readonly string[] | undefined
  /** Of the resource's metadata. */
  readonly supported: readonly string[] | undefined
  /** Asked for or granted before at this authorization server: never given up. */
  readonly earlier: readonly string[]
  /** By name, whatever else is asked for. */
  readonly added?: readonly string[] | undefined
  /** True where a call needs more than the token has: what it needs is asked for, whatever the caller configured. */
  readonly stepUp: boolean
}

type ScopeOptions = Pick<
  ResolvedOptions,
  'scopes' | 'scopeMode' | 'scopeSelector' | 'offlineAccess' | 'grant' | 'dynamicClientRegistration' | 'clientId'
>

export interface ScopeChoice {
  /** The `scope` parameter; undefined: none is sent. */
  readonly scope: string | undefined
  /** What to remember as asked for: without the selector's doing, so that it can choose again. */
  readonly requested: string | undefined
}

const join = (scopes: readonly string[] | null | undefined) => (scopes?.length ? scopes.join(' ') : undefined)

/** What to ask for before anything is added: the caller's scopes, the challenge's, or the resource's. */
function suggested({ scopes, scopeMode }: ScopeOptions, { challenged, supported, stepUp }: ScopeFacts) {
  if (scopeMode === 'override' && scopes) return stepUp ? unite(scopes, challenged) : scopes
  return challenged ?? supported ?? scopes ?? []
}

const isOverridden = ({ scopes, scopeMode }: ScopeOptions) => scopes !== undefined && scopeMode === 'override'

/** False where the client is registered without the grant that `offline_access` is for. */
function mayRefresh({ grant, dynamicClientRegistration: { metadata }, clientId }: ScopeOptions): boolean {
  if (grant.type !== 'authorization_code' && grant.type !== 'device') return false
  const registered = clientId === undefined ? metadata?.['grant_types'] : undefined
  return !Array.isArray(registered) || registered.includes('refresh_token')
}

function wantsOffline(options: ScopeOptions, scopes: readonly string[], server: Pick<ServerInfo, 'scopesSupported'>) {
  if (options.offlineAccess !== 'auto') return options.offlineAccess
  const listed = server.scopesSupported?.includes(OFFLINE_ACCESS) ?? false
  return listed && scopes.length > 0 && !isOverridden(options) && mayRefresh(options)
}

/** Chooses what to ask for. */
export async function chooseScope(
  options: ScopeOptions,
  facts: ScopeFacts,
  server: Pick<ServerInfo, 'scopesSupported'>,
): Promise<ScopeChoice> {
  const { offlineAccess, scopeSelector } = options
  const wanted = unite(facts.earlier, suggested(options, facts), facts.added)
  const byName = unite(facts.challenged, facts.added)
  const asked = isOverridden(options) || offlineAccess === true || byName.includes(OFFLINE_ACCESS)
  // A resource that lists `offline_access` does not decide about it (MCP authorization, "Refresh Tokens").
  const base = asked ? wanted : wanted.filter(scope => scope !== OFFLINE_ACCESS)
  const scopes = wantsOffline(options, base, server) ? unite(base, [OFFLINE_ACCESS]) : base
  const chosen = scopeSelector ? await scopeSelector(scopes.length > 0 ? scopes : null) : scopes
  return { scope: join(chosen), requested: join(base) }
}

/** Operations that are remembered at most; the oldest go first. */
const MAX_OPERATIONS = 1_000

export interface StepUps {
  /** False where asking for these scopes led nowhere before. */
  mayTry(operation: string, scopes: readonly string[]): boolean
  tried(operation: string, scopes: readonly string[]): void
  succeeded(operation: string): void
}

export function createStepUps(): StepUps {
  const operations = new Map<string, readonly string[]>()
  return {
    mayTry(operation, scopes) {
      const before = operations.get(operation)
      return before === undefined || !covers(before, scopes)
    },
    tried(operation, scopes) {
      const before = operations.get(operation)
      operations.delete(operation)
      operations.set(operation, unite(before, scopes))
      if (operations.size > MAX_OPERATIONS) operations.delete(operations.keys().next().value as string)
    },
    succeeded(operation) {
      if (operations.size > 0) operations.delete(operation)
    },
  }
}

/** What a request does, as far as it says so: headers of 2026-07-28, else its method and path. */
export function operationOf({ method, url, headers }: { method: string; url: URL; headers: Headers }): string {
  const name = headers.get('mcp-method')
  return name ? JSON.stringify([name, headers.get('mcp-name')]) : `${method} ${url.pathname}`
}
