// Interfaces of access decisions, which lists, calls, reads and subscriptions share. Defaults are in core/access.
import type { IncomingHttpHeaders } from 'node:http'
import type { AuthorizeRule, Route } from '../../kernel/route.ts'
import type { User } from '../../kernel/user.ts'
import type { CatalogItem } from '../definitions/catalog.ts'

/** The reason for a denied call. */
export interface Denial {
  /** One sentence for the log and for `explain`, without data of other users. */
  readonly reason: string
  /** All required scopes, including those of the caller; empty if scopes do not help. */
  readonly scopes: readonly string[]
  readonly listed: boolean
}

/** A class of callers. All callers of one `key` have the same access. */
export interface Audience {
  readonly key: string
  /** Undefined: allowed. */
  denialOf(item: CatalogItem): Denial | undefined
}

export interface DeniedCall {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
  readonly offer: { readonly route: Route }
}

/** The slot `access`, which a policy plugin fills. */
export interface AccessDecider {
  readonly by?: string
  audienceOf(user: User | undefined, route: Route): Audience
  /** Checks a route's `authorize`; undefined: allowed. Anonymous callers are always denied. */
  authorize(rule: AuthorizeRule, user: User | undefined, route: Route): Denial | undefined
  scopesToEnter?(rule: AuthorizeRule, user: User, route: Route): readonly string[]
  /** True if denied calls get a JSON-RPC error on this route instead of an HTTP challenge. */
  deniesInBody(route: Route): boolean
  denied?(call: DeniedCall, item: CatalogItem, denial: Denial): void
  /** Requirements as text, for `mcp-host lock`. Callers must meet all of them. */
  needs?(of: { readonly rule: AuthorizeRule } | { readonly item: CatalogItem }, route: Route): readonly string[]
  /** Explains a decision for `mcp-host explain`, one line per step. */
  explain?(item: CatalogItem, user: User | undefined, route: Route): readonly string[]
}

/** The slot `protectedResource`: a route's metadata as a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The resource identifier of a URL, used as token audience. */
  resourceOf(route: Route, params: Readonly<Record<string, string>>): string
  metadataUrlOf(route: Route, params: Readonly<Record<string, string>>): string | undefined
  /** The `scopes_supported` of a route, for policy lint. */
  scopesOf(route: Route): readonly string[] | undefined
  serversOf?(route: Route): readonly string[] | undefined
}

/** The slot `tokenBinding`: requirements for key-bound tokens (DPoP, RFC 9449). */
export interface TokenBinding {
  /** Accepted proof algorithms. Available once services are built. */
  algorithms(): readonly string[]
  /** True if unbound tokens are rejected. */
  required(): boolean
  announced(): boolean
}

/** Returns the minimum useful scopes at a URL; can be empty. */
export type LeastScopes = (route: Route, params: Readonly<Record<string, string>>) => readonly string[]

export interface AccessServices {
  slot(name: 'access', route: Route): AccessDecider
  slot(name: 'protectedResource', route: Route): ProtectedResource
  slot(name: 'tokenBinding', route: Route): TokenBinding
  readonly leastScopes: LeastScopes
  /** The challenges of a route's authenticators, in order; undefined for bearer tokens. */
  challengesOn(route: Route): ReadonlyArray<string | undefined>
}
