// Who may use what: the interface of the one decision that lists, calls, reads, gets, completions and subscriptions share,
// and of what a route says of itself as a protected resource. Defaults and challenges are in core/access.
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { CatalogItem } from './catalog.ts'

/** Why somebody may not: what would change it. */
export interface Denial {
  /** One sentence for the log and for `explain`; nothing of another user. */
  readonly reason: string
  /** Every scope that this needs, those that the caller has among them; empty where scopes cannot help. */
  readonly scopes: readonly string[]
  /** Shown in lists all the same. */
  readonly listed: boolean
}

/** What one class of callers may use: everybody of one `key`, on whatever route, may use the same, for one reason. */
export interface Audience {
  readonly key: string
  /** Undefined: allowed. */
  denialOf(item: CatalogItem): Denial | undefined
}

/** What of a Call it hears. */
export interface DeniedCall {
  readonly method: string
  readonly user: User | undefined
  readonly offer: { readonly route: Route }
}

/** The slot `access`: what a policy plugin fills. */
export interface AccessDecider {
  /** The plugin that decides, for observers. */
  readonly by?: string
  /** The class that a caller belongs to on a route. */
  audienceOf(user: User | undefined, route: Route): Audience
  /** Whether a caller meets a route's `authorize`. Undefined: allowed. An anonymous caller meets none. */
  authorize(rule: AuthorizeRule, user: User | undefined, route: Route): Denial | undefined
  /** Every scope that a route's `authorize` takes of a caller who meets it; absent: none. */
  scopesToEnter?(rule: AuthorizeRule, user: User, route: Route): readonly string[]
  /** Whether a denied call is answered as a JSON-RPC error on this route, and never as an HTTP challenge. */
  deniesInBody(route: Route): boolean
  /** Hears of every call that is denied. */
  denied?(call: DeniedCall, item: CatalogItem, denial: Denial): void
  /**
   * What a route's `authorize`, or an item there, asks of every caller, in words that do not depend on who calls: all of these
   * must hold, and no anonymous caller meets any. For `mcp-host lock`; absent: the rule or `access` as written.
   */
  needs?(of: { readonly rule: AuthorizeRule } | { readonly item: CatalogItem }, route: Route): readonly string[]
  /** How a caller's right to an item is decided, a line for each step: for `mcp-host explain`. */
  explain?(item: CatalogItem, user: User | undefined, route: Route): readonly string[]
}

/** The slot `protectedResource`: what a route says of itself as a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The resource identifier of an address; tokens are for it. */
  resourceOf(route: Route, params: Readonly<Record<string, string>>): string
  /** Where the metadata document of an address is; undefined where there is none. */
  metadataUrlOf(route: Route, params: Readonly<Record<string, string>>): string | undefined
  /** `scopes_supported` of an address, for policy lint; undefined where it says nothing. */
  scopesOf(route: Route): readonly string[] | undefined
  /** The configured `authorization_servers` of a route, for warnings. */
  serversOf?(route: Route): readonly string[] | undefined
}

/** The slot `tokenBinding`: what the plugin that verifies tokens asks of those that are bound to a key (DPoP, RFC 9449). */
export interface TokenBinding {
  /** Algorithms of the proofs that are checked; empty where none are. Call it once the services are built. */
  algorithms(): readonly string[]
  /** Whether tokens that are bound to no key are refused. */
  required(): boolean
  /** Whether the config asks for it, so that documents tell clients. */
  announced(): boolean
}

/** The scopes to ask for at an address where nothing else names one: the least that is of use there; may be empty. */
export type LeastScopes = (route: Route, params: Readonly<Record<string, string>>) => readonly string[]

/** What deciding about a request takes, by route. */
export interface AccessServices {
  slot(name: 'access', route: Route): AccessDecider
  slot(name: 'protectedResource', route: Route): ProtectedResource
  slot(name: 'tokenBinding', route: Route): TokenBinding
  /** For `scope` of a challenge where nothing else names one. */
  readonly leastScopes: LeastScopes
}
