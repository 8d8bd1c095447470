// The plugin host of built-in plugins: the published members, the internal members, and the services of the host.

import type { LoginClient, LoginClientOptions } from '../client/login-client.ts'
import type { openConnections } from '../client/node/fetch.ts'
import type { TokenClient, TokenClientOptions } from '../client/token-client.ts'
import type { CallerWatch } from './access/caller-watch.ts'
import type { Examination } from './config/examination.ts'
import type { InternalKernelHost } from './kernel/kernel-host.ts'
import type { Route } from './kernel/route.ts'
import type { AuthorizeCaller, Call, CallRequest, Offer, RequestInfo } from './mcp/calls/call.ts'
import type { RefusedRequest } from './mcp/calls/call-record.ts'
import type { CatalogItem } from './mcp/definitions/catalog.ts'
import type { RuntimeHost } from './mcp/definitions/define.ts'
import type { ProvidedSource } from './mcp/definitions/provided-toolsets.ts'
import type { InternalMcpPluginHost } from './mcp/mcp-plugin-host.ts'
import type { AccessServices } from './mcp/routes/access-decider.ts'
import type { RouteExtensions } from './mcp/routes/extensions.ts'
import type { McpRoute } from './mcp/routes/routes.ts'
import type { Operator } from './operator.ts'
import type { ChangeFeed } from './sessions/change-feed.ts'
import type { Connector } from './sessions/connect-client.ts'
import type { SessionRegistry } from './sessions/registry.ts'
import type { SessionStreams } from './sessions/session-streams.ts'
import type { Slots } from './slots.ts'

/** Outgoing connections and OAuth tokens. `create-host.ts` fills it from `client/`, which loads at the first use. */
export interface Outbound {
  /**
   * A fetch for URLs from clients and other parties: it resolves the host once and connects only to public addresses. The caller
   * limits size, time and rate.
   */
  readonly guardedFetch: typeof fetch
  /** Opens reused connections that are limited to https and public addresses, and to `allowHosts`. */
  readonly openConnections: typeof openConnections
  /** Rejects for invalid options. */
  createTokenClient(options: TokenClientOptions): Promise<TokenClient>
  createLoginClient(options: LoginClientOptions): Promise<LoginClient>
}

/** Services of a host, built once all plugins are set up. */
export interface Services extends AccessServices, Outbound {
  slot<Name extends keyof Slots>(name: Name, route: Route): Slots[Name]
  readonly runtime: RuntimeHost
  itemsOf(route: Route): readonly CatalogItem[]
  /** Like `itemsOf`, plus items that `configureSession` can add. For name checks and preparation at startup. */
  reachableItemsOf(route: Route): readonly CatalogItem[]
  /** False if items can be unknown at startup: of `configureSession`, or of plugins that load them later. */
  hasStaticItems(): boolean
  itemsIn(toolset: string): readonly CatalogItem[]
  /** The config path and the state of an upstream server or document, by its toolset. Undefined for other toolsets. */
  sourceOf(toolset: string): Pick<ProvidedSource, 'at' | 'describe' | 'isLate'> | undefined
  readonly sessions: SessionRegistry
  readonly streams: SessionStreams
  /** Change notifications for clients of a route; for `subscriptions/listen`. */
  changesOn(route: McpRoute): ChangeFeed
  /** `listener` receives the first and the last watcher of a resource URI on this node. */
  onWatch(listener: (uri: string, isWatched: boolean) => void): void
  /**
   * Throws `unauthorized` or `forbidden` if a caller cannot use a route. For transports that bypass the `authorize` step;
   * `makeOffer`, `sessions.open` and `sessions.find` call it for callers without `authorized`.
   */
  readonly authorize: AuthorizeCaller
  /** For long-lived streams: calls `end` once, on token expiry or denial by a reload. Returns a function that stops the watch. */
  readonly watchCaller: CallerWatch['watchCaller']
  /** The items that a caller can use, after `configureSession`. Throws `notFound` for an unknown path. */
  makeOffer(request: RequestInfo): Offer | Promise<Offer>
  /** The extensions of a route; complete after all plugins are set up. */
  extensionsOn(route: Route): RouteExtensions
  createCall(request: CallRequest): Call
  /** Runs a Call through all `onCall` hooks and returns its response. */
  dispatch(call: Call): Promise<object>
  /**
   * Reports a request that was refused before it became a Call to observers. Not for a refused HTTP request with a single
   * message, which already has a record.
   */
  reportRefused(refused: RefusedRequest): void
  trackRequest(cancel: (reason: Error) => void): () => void
}

/** The argument of `setup` of a built-in plugin. */
export interface InternalHost extends InternalKernelHost<Slots, Services, McpRoute>, InternalMcpPluginHost, Connector {
  /** Undefined before the host is built. */
  readonly operator: Operator | undefined
}

/** The second argument of `examine` of a built-in plugin. `config`: with defaults. */
export type InternalExamination = Examination & { readonly services: Outbound; readonly config: object }

/** The services and plugin members that transport functions use. */
export interface Transport extends Services, Pick<InternalHost, 'clock' | 'config' | 'log' | 'name'> {}

export const transportOf = ({ clock, config, log, name, services }: InternalHost): Transport => ({
  ...services,
  clock,
  config,
  log,
  name,
})
