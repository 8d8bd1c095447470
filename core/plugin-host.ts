// The plugin API: the kernel's part, the part for MCP authors, and the services for transports.
import type { CallerWatch } from './access/caller-watch.ts'
import type { UnderTest } from './access/claims.ts'
import type { Config, RouteSettings } from './config/define-config.ts'
import type { Examination, PluginFinding } from './config/examination.ts'
import {
  type Plugin as AnyPlugin,
  definePlugin as defineAnyPlugin,
  type PluginDeclaration,
  type PluginFactory,
} from './kernel/define-plugin.ts'
import type { KernelHost } from './kernel/kernel-host.ts'
import type { WithOldNames } from './kernel/old-names.ts'
import type { Route } from './kernel/route.ts'
import type { AccessServices } from './mcp/access-decider.ts'
import type { AuthorHost } from './mcp/author-host.ts'
import type { AdmitCaller, Call, CallRequest, Offer, RequestFacts } from './mcp/call.ts'
import type { RefusedRequest } from './mcp/call-record.ts'
import type { CatalogItem } from './mcp/catalog.ts'
import { type CallContext, type DefineTool, defineTool, type RuntimeHost } from './mcp/define.ts'
import type { RouteExtensions } from './mcp/extension.ts'
import type { FromJsonSchema } from './mcp/infer.ts'
import type { JsonSchema } from './mcp/protocol.ts'
import type { McpRoute } from './mcp/routes.ts'
import type { ChangeFeed } from './sessions/change-feed.ts'
import type { SessionRegistry } from './sessions/registry.ts'
import type { SessionStreams } from './sessions/session-streams.ts'
import type { Slots } from './slots.ts'

/** Services built from the filled slots, for `serving` tasks. */
export interface Services extends AccessServices {
  slot<Name extends keyof Slots>(name: Name, route: Route): Slots[Name]
  /** Adds and removes definitions at run time. */
  readonly runtime: RuntimeHost
  /** The configured items of a route, without duplicates. */
  itemsOf(route: Route): readonly CatalogItem[]
  /** Like `itemsOf`, plus items that `configureSession` can add. For name checks and preparation at startup. */
  reachableItemsOf(route: Route): readonly CatalogItem[]
  /** The items of a toolset; empty for an unknown name. */
  itemsIn(toolset: string): readonly CatalogItem[]
  /**
   * A fetch for URLs from clients and other parties: it resolves the host once and connects only to public addresses. The caller
   * limits size, time and rate.
   */
  readonly guardedFetch: typeof fetch
  readonly sessions: SessionRegistry
  readonly streams: SessionStreams
  /** Change notifications for clients of a route; for `subscriptions/listen`. */
  changesOn(route: McpRoute): ChangeFeed
  /**
   * Throws `unauthorized` or `forbidden` if a caller cannot use a route. For transports that bypass the `authorize` step;
   * `makeOffer`, `sessions.open` and `sessions.find` call it for callers without `admitted`.
   */
  readonly admit: AdmitCaller
  /** For long-lived streams: calls `end` once, on token expiry or denial by a reload. Returns a function that stops the watch. */
  readonly watchCaller: CallerWatch['watchCaller']
  /** The items that a caller can use, after `configureSession`. Throws `notFound` for an unknown path. */
  makeOffer(request: RequestFacts): Offer | Promise<Offer>
  /** The extensions of a route; complete after all plugins are set up. */
  extensionsOn(route: Route): RouteExtensions
  /** Creates a Call for one JSON-RPC message. */
  createCall(request: CallRequest): Call
  /** Runs a Call through all `onCall` hooks and returns its response. */
  answer(call: Call): Promise<object>
  /**
   * Reports a request that was refused before it became a Call to observers. Not for a refused HTTP request with a single
   * message, which already has a record.
   */
  tellRefused(refused: RefusedRequest & { readonly route: Route }): void
  inFlight(cancel: (reason: Error) => void): () => void
}

/** The services and plugin members that transport functions use. */
export interface Transport extends Services, Pick<PluginHost, 'clock' | 'config' | 'log' | 'name'> {}

/** Builds a `Transport` from the host and its services. */
export const transportOf = ({ clock, config, log, name }: PluginHost, services: Services): Transport => ({
  ...services,
  clock,
  config,
  log,
  name,
})

/** The argument of `setup`. */
export interface PluginHost extends KernelHost<Slots, Services, McpRoute>, AuthorHost {}

/** Test support of authentication plugins. */
interface Testable<Options> {
  /** For `testHost`, if the plugin provides `user`: the same options with a test issuer. */
  underTest?(options: Options): Promise<UnderTest<Options>>
}

/** Diagnostics of plugins, without a running host. */
interface Examinable<Filled> {
  /**
   * For `mcp-host doctor --config`: checks external dependencies, such as an identity provider, and returns findings with fixes.
   * Must be read-only. `options` as passed to `setup`.
   */
  examine?(options: Filled, about: Examination): Promise<readonly PluginFinding[]>
}

/** The argument of `setup`, with deprecated names for one more version. */
type SetupHost = WithOldNames<PluginHost>

/** A plugin of this host. `Filled`: its options with defaults, as passed to `setup`. */
export type Plugin<
  Options extends object,
  Filled extends Options = Options,
  Sections extends object = object,
> = AnyPlugin<Options, SetupHost, Filled, Sections> & Testable<Options> & Examinable<Filled>

interface ObjectSchema {
  readonly type: 'object'
  readonly additionalProperties: false
  readonly properties: Readonly<Record<string, JsonSchema>>
}

/** The options type of a schema written `as const`; with `Filled`, including defaults. */
export type OptionsOf<Schema, Filled = false> = FromJsonSchema<Schema, Filled> & object

/** What a plugin declares besides its options. */
interface Declared<ToolKeys, Context, RouteKey> {
  readonly toolKeys?: ToolKeys
  readonly context?: Context
  readonly routeKey?: RouteKey
}

interface DefinePlugin {
  <
    const Schema extends ObjectSchema,
    Sections extends object = object,
    const ToolKeys extends Readonly<Record<string, JsonSchema>> = Record<never, never>,
    Context extends object = Record<never, never>,
    const RouteKey extends string = never,
  >(
    plugin: { readonly options: Schema } & Declared<ToolKeys, Context, RouteKey> &
      Omit<
        Plugin<OptionsOf<Schema>, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections>,
        'options' | keyof Declared<unknown, unknown, unknown>
      >,
  ): PluginFactory<OptionsOf<Schema>, SetupHost, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections> &
    Extending<ToolKeys, Context, RouteKey, OptionsOf<Schema>>
  <Options extends object, Filled extends Options = Options, Sections extends object = object>(
    plugin: PluginDeclaration<Options, SetupHost, Filled, Sections> & Testable<Options> & Examinable<Filled>,
  ): PluginFactory<Options, SetupHost, Filled, Sections>
}

declare const ADDED: unique symbol

/** Carries the types that a plugin adds. */
interface Extending<ToolKeys, Context, RouteKey extends PropertyKey, Options> {
  readonly [ADDED]?: {
    readonly tool: (of: { [Name in keyof ToolKeys]?: FromJsonSchema<ToolKeys[Name]> }) => void
    readonly context: (of: Context) => void
    readonly route: (of: { [Name in RouteKey]?: Options }) => void
  }
}

/** The intersection of what the plugins add to `Part`. */
type AddedTo<Plugins, Part extends 'tool' | 'context' | 'route'> = Plugins extends { readonly [ADDED]?: infer Added }
  ? NonNullable<Added> extends Record<Part, infer Take>
    ? Take
    : never
  : never
type Intersection<Take> = [Take] extends [never] ? unknown : [Take] extends [(of: infer All) => void] ? All : unknown

type ExtendedConfig<RouteKeys> = Omit<Config, 'routes'> & { routes: Record<string, RouteSettings & RouteKeys> }

/** `defineTool` and `defineConfig` with the types of these plugins: tool keys, members of `ctx`, route keys. */
export const withPlugins = <Factories extends ReadonlyArray<Extending<never, never, never, never>>>(
  ..._plugins: Factories
): {
  defineTool: DefineTool<
    Intersection<AddedTo<Factories[number], 'tool'>>,
    CallContext & Intersection<AddedTo<Factories[number], 'context'>>
  >
  defineConfig: (config: ExtendedConfig<Intersection<AddedTo<Factories[number], 'route'>>>) => Config
} => ({ defineTool: defineTool as never, defineConfig: config => config })

/**
 * Creates a plugin from its options schema and `setup`. Option types are inferred; use `definePlugin<Options>` for types that
 * JSON Schema cannot express.
 */
export const definePlugin = defineAnyPlugin as DefinePlugin
