// All that a plugin is given: the kernel's part, what MCP adds for authors, and in the second phase the services, which
// transports are made of. Each is one interface on one screen; here they come together.
import type { CallerWatch } from './access/caller-watch.ts'
import type { UnderTest } from './access/claims.ts'
import type { Examination, PluginFinding } from './config/examination.ts'
import {
  type Plugin as AnyPlugin,
  definePlugin as defineAnyPlugin,
  type PluginDeclaration,
  type PluginFactory,
} from './kernel/define-plugin.ts'
import type { KernelHost } from './kernel/kernel-host.ts'
import type { Route } from './kernel/route.ts'
import type { AccessServices } from './mcp/access-decider.ts'
import type { AuthorHost } from './mcp/author-host.ts'
import type { AdmitCaller, Call, CallRequest, Offer, RequestFacts } from './mcp/call.ts'
import type { RefusedRequest } from './mcp/call-record.ts'
import type { CatalogItem } from './mcp/catalog.ts'
import type { RuntimeHost } from './mcp/define.ts'
import type { RouteExtensions } from './mcp/extension.ts'
import type { FromJsonSchema } from './mcp/infer.ts'
import type { JsonSchema } from './mcp/protocol.ts'
import type { McpRoute } from './mcp/routes.ts'
import type { ChangeFeed } from './sessions/change-feed.ts'
import type { SessionRegistry } from './sessions/registry.ts'
import type { SessionStreams } from './sessions/session-streams.ts'
import type { Slots } from './slots.ts'

/** What the host builds of the filled slots: for `serving` tasks, and what they define. */
export interface Services extends AccessServices {
  /** The service of a slot on a route: what a plugin filled in there, else the default. */
  slot<Name extends keyof Slots>(name: Name, route: Route): Slots[Name]
  /** Adds and removes definitions while the host runs. */
  readonly runtime: RuntimeHost
  /** What the addresses of a route can serve by the config, each item once. */
  itemsOf(route: Route): readonly CatalogItem[]
  /** The same with the items that `configureSession` can add. For checks of names and for preparation at startup. */
  reachableItemsOf(route: Route): readonly CatalogItem[]
  /** The items of a toolset; empty for an unknown name. */
  itemsIn(toolset: string): readonly CatalogItem[]
  /**
   * For URLs that other parties choose, such as clients. It resolves the host name once and connects to that address only if it is
   * public. The caller limits size, time and rate.
   */
  readonly guardedFetch: typeof fetch
  /** The sessions of this node. */
  readonly sessions: SessionRegistry
  /** The streams of sessions, which a client can come back to. */
  readonly streams: SessionStreams
  /** What tells the clients of a route of changes; for `subscriptions/listen`. */
  changesOn(route: McpRoute): ChangeFeed
  /**
   * Whether a caller may enter a route, by its `authorize`; throws `unauthorized` or `forbidden`. For transports whose callers
   * do not come through `admit`: `makeOffer`, `sessions.open` and `sessions.find` ask it of whoever is not `admitted`.
   */
  readonly admit: AdmitCaller
  /**
   * For long-lived streams: calls `end` once, when the caller's token expires or a reload denies the caller the route. Returns a
   * function that stops the watch.
   */
  readonly watchCaller: CallerWatch['watchCaller']
  /** What a request's caller is offered, after `configureSession`. Throws `notFound` where the address names nothing. */
  makeOffer(request: RequestFacts): Offer | Promise<Offer>
  /** What the extensions of a route add; complete once every plugin is set up. */
  extensionsOn(route: Route): RouteExtensions
  /** A Call for one JSON-RPC message. */
  createCall(request: CallRequest): Call
  /** Runs a Call through every `around` to its answer. */
  answer(call: Call): Promise<object>
  /**
   * Tells observers of a request that was refused before it was `answer`ed as a Call. Not where it came alone in an HTTP request
   * whose own answer is the refusal: that one has a record.
   */
  tellRefused(refused: RefusedRequest & { readonly route: Route }): void
  /**
   * Counts a request in flight until the returned function is called. `cancel` is called when the host closes and its grace
   * period is over: answer the request with `nodeLost()`, then abort it. Throws `unavailable` from then on; until then a
   * host that drains answers what comes.
   */
  inFlight(cancel: (reason: Error) => void): () => void
}

/** What the functions of a transport work with: the services, and what is the plugin's own. */
export interface Transport extends Services, Pick<PluginHost, 'name' | 'log' | 'clock' | 'http'> {}

/** What the functions of a transport work with, of its host. */
export const transportOf = ({ name, log, clock, http }: PluginHost, services: Services): Transport => ({
  ...services,
  name,
  log,
  clock,
  http,
})

/** What `setup` is given. */
export interface PluginHost extends KernelHost<Slots, Services, McpRoute>, AuthorHost {}

/** How a plugin that says who calls is tested. */
interface Testable<Options> {
  /** For `testHost`, of a plugin that provides `user`: the same options, as written, with an issuer that makes up users. */
  underTest?(options: Options): Promise<UnderTest<Options>>
}

/** How a plugin looks at what it depends on, where no host runs. */
interface Examinable<Filled> {
  /**
   * For `mcp-host doctor --config`: asks what the options lead to, such as an identity provider, and says what is as it must be
   * and how to mend what is not. Changes nothing there. `options` as `setup` gets them.
   */
  examine?(options: Filled, about: Examination): Promise<readonly PluginFinding[]>
}

/** A plugin of this host. `Filled` are its options as `setup` gets them: those that have a default are there. */
export type Plugin<
  Options extends object,
  Filled extends Options = Options,
  Sections extends object = object,
> = AnyPlugin<Options, PluginHost, Filled, Sections> & Testable<Options> & Examinable<Filled>

/** The JSON Schema of a plugin's options, from which their types are inferred. */
interface ObjectSchema {
  readonly type: 'object'
  readonly additionalProperties: false
  readonly properties: Readonly<Record<string, JsonSchema>>
}

/** The options that a schema written `as const` describes; with `Filled`, as `setup` receives them: with their defaults. */
export type OptionsOf<Schema, Filled = false> = FromJsonSchema<Schema, Filled> & object

interface DefinePlugin {
  <const Schema extends ObjectSchema, Sections extends object = object>(
    plugin: { readonly options: Schema } & Omit<
      Plugin<OptionsOf<Schema>, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections>,
      'options'
    >,
  ): PluginFactory<OptionsOf<Schema>, PluginHost, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections>
  <Options extends object, Filled extends Options = Options, Sections extends object = object>(
    plugin: PluginDeclaration<Options, PluginHost, Filled, Sections> & Testable<Options> & Examinable<Filled>,
  ): PluginFactory<Options, PluginHost, Filled, Sections>
}

/**
 * Makes a plugin of the schema of its options and its set-up. The types of the options are inferred from the schema; where
 * JSON Schema cannot say them, declare them: `definePlugin<Options>`.
 */
export const definePlugin = defineAnyPlugin as DefinePlugin
