// Interfaces of access decisions, which lists, calls, reads and subscriptions share. Defaults are in core/access.
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { CatalogItem } from './catalog.ts'

/** Why a caller is denied. */
export interface Denial {
  /** One sentence for the log and for `explain`, without data of other users. */
  readonly reason: string
  /** All required scopes, including those of the caller; empty if scopes do not help. */
  readonly scopes: readonly string[]
  /** Whether lists still contain the item. */
  readonly listed: boolean
}

/** A class of callers. All callers of one `key` have the same access. */
export interface Audience {
  readonly key: string
  /** Undefined: allowed. */
  denialOf(item: CatalogItem): Denial | undefined
}

/** The part of a Call that `denied` receives. */
export interface DeniedCall {
  readonly method: string
  readonly user: User | undefined
  readonly offer: { readonly route: Route }
}

/** The slot `access`, which a policy plugin fills. */
export interface AccessDecider {
  /** The plugin that decides, for observers. */
  readonly by?: string
  audienceOf(user: User | undefined, route: Route): Audience
  /** Checks `authorize` of a route. Undefined: allowed. Anonymous callers are always denied. */
  authorize(rule: AuthorizeRule, user: User | undefined, route: Route): Denial | undefined
  /** All scopes that `authorize` of a route requires of an allowed caller. */
  scopesToEnter?(rule: AuthorizeRule, user: User, route: Route): readonly string[]
  /** Whether denied calls get a JSON-RPC error on this route instead of an HTTP challenge. */
  deniesInBody(route: Route): boolean
  /** Called for every denied call. */
  denied?(call: DeniedCall, item: CatalogItem, denial: Denial): void
  /** The requirements of a route's `authorize` or an item as text, for `mcp-host lock`: callers must meet all of them. */
  needs?(of: { readonly rule: AuthorizeRule } | { readonly item: CatalogItem }, route: Route): readonly string[]
  /** Explains the decision, one line for each step, for `mcp-host explain`. */
  explain?(item: CatalogItem, user: User | undefined, route: Route): readonly string[]
}

/** The slot `protectedResource`: metadata of a route as a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The resource identifier of a URL: the audience of tokens. */
  resourceOf(route: Route, params: Readonly<Record<string, string>>): string
  /** The URL of the metadata document. */
  metadataUrlOf(route: Route, params: Readonly<Record<string, string>>): string | undefined
  /** `scopes_supported`, for policy lint. */
  scopesOf(route: Route): readonly string[] | undefined
  /** The configured `authorization_servers` of a route, for warnings. */
  serversOf?(route: Route): readonly string[] | undefined
}

/** The slot `tokenBinding`: requirements for tokens that are bound to a key (DPoP, RFC 9449). */
export interface TokenBinding {
  /** Accepted proof algorithms. Call it after the services are built. */
  algorithms(): readonly string[]
  /** Whether unbound tokens are rejected. */
  required(): boolean
  /** Whether metadata documents announce it. */
  announced(): boolean
}

/** The minimum useful scopes at a URL; can be empty. */
export type LeastScopes = (route: Route, params: Readonly<Record<string, string>>) => readonly string[]

/** The services of access decisions, by route. */
export interface AccessServices {
  slot(name: 'access', route: Route): AccessDecider
  slot(name: 'protectedResource', route: Route): ProtectedResource
  slot(name: 'tokenBinding', route: Route): TokenBinding
  /** For `scope` of a challenge where nothing else names one. */
  readonly leastScopes: LeastScopes
}
