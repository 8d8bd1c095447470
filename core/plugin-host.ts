// The plugin API: the argument of `setup`, and `definePlugin`.
import type { UnderTest } from './access/claims.ts'
import type { Config, RouteSettings } from './config/define-config.ts'
import type { Examination, PluginFinding } from './config/examination.ts'
import type { Services } from './internal-host.ts'
import {
  type Plugin as AnyPlugin,
  type PluginFactory as AnyPluginFactory,
  createPluginFactory,
  type PluginDeclaration,
} from './kernel/define-plugin.ts'
import type { InternalKernelHost, KernelHost } from './kernel/kernel-host.ts'
import type { WithOldNames } from './kernel/old-names.ts'
import { type CallContext, type DefineTool, defineTool } from './mcp/definitions/define.ts'
import type { FromJsonSchema } from './mcp/definitions/infer.ts'
import './mcp/wire/error-kinds.ts'
import type { InternalMcpPluginHost, McpPluginHost } from './mcp/mcp-plugin-host.ts'
import type { McpRoute } from './mcp/routes/routes.ts'
import type { JsonSchema } from './mcp/wire/protocol.ts'
import type { Connector } from './sessions/connect-client.ts'
import './sessions/session-errors.ts'
import type { DeclaredSlots, PublishedSlots, Slots } from './slots.ts'

/** The argument of `setup`. */
export interface PluginHost extends KernelHost<PublishedSlots, McpRoute>, McpPluginHost, Connector {}

/** The argument of `setup` with deprecated names, for one more version. */
type SetupHost = WithOldNames<PluginHost, InternalKernelHost<Slots, Services, McpRoute> & InternalMcpPluginHost>

interface HostDeclarations<Options, Filled> {
  /** For `testHost`, if the plugin provides `user`: the same options with a test issuer. */
  underTest?(options: Options): Promise<UnderTest<Options>>
  /**
   * For `mcp-host doctor --config`: checks external dependencies, such as an identity provider, and returns findings with fixes.
   * Must be read-only. `options` as passed to `setup`.
   */
  examine?(options: Filled, about: Examination): Promise<readonly PluginFinding[]>
  /** Slots of built-in plugins, which other plugins can provide. */
  readonly slots?: DeclaredSlots
}

/** A plugin of this host. `Filled`: its options with defaults, as passed to `setup`. */
export type Plugin<
  Options extends object,
  Filled extends Options = Options,
  Sections extends object = object,
  Host = SetupHost,
> = AnyPlugin<Options, Host, Filled, Sections> & HostDeclarations<Options, Filled>

interface ObjectSchema {
  readonly type: 'object'
  readonly additionalProperties: false
  readonly properties: Readonly<Record<string, JsonSchema>>
}

/** The options type of a schema written `as const`; with `Filled`, including defaults. */
export type OptionsOf<Schema, Filled = false> = FromJsonSchema<Schema, Filled> & object

/** The declarations of a plugin besides its options. */
interface PluginAdditions<ToolKeys, Context, RouteKey> {
  readonly toolKeys?: ToolKeys
  readonly context?: Context
  readonly routeKey?: RouteKey
}

/**
 * A result of `definePlugin`: call it with options to configure the plugin. `plugin` is its declaration. `Added`: the types that
 * `withPlugins` reads.
 */
export interface PluginFactory<
  Options extends object,
  Filled extends Options = Options,
  Added = unknown,
  Host = never,
  Sections extends object = object,
> extends AnyPluginFactory<Options, Host, Filled, Sections> {
  readonly [ADDED]?: Added
}

/**
 * `Given`: the host as named in the factory's type. Third parties cannot use it, because their declarations cannot name
 * its parts.
 */
export interface DefinePlugin<Host, Given = Host> {
  <
    const Schema extends ObjectSchema,
    Sections extends object = object,
    const ToolKeys extends Readonly<Record<string, JsonSchema>> = Record<never, never>,
    Context extends object = Record<never, never>,
    const RouteKey extends string = never,
  >(
    plugin: { readonly options: Schema } & PluginAdditions<ToolKeys, Context, RouteKey> &
      Omit<
        Plugin<OptionsOf<Schema>, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections, Host>,
        'options' | keyof PluginAdditions<unknown, unknown, unknown>
      >,
  ): PluginFactory<
    OptionsOf<Schema>,
    Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>,
    AddsTypes<ToolKeys, Context, RouteKey, OptionsOf<Schema>>,
    Given,
    Sections
  >
  <Options extends object, Filled extends Options = Options, Sections extends object = object>(
    plugin: PluginDeclaration<Options, Host, Filled, Sections> & HostDeclarations<Options, Filled>,
  ): PluginFactory<Options, Filled, unknown, Given, Sections>
}

declare const ADDED: unique symbol

/** The types that a plugin adds, as parameters, so that those of several plugins can be intersected. */
type AddsTypes<ToolKeys, Context, RouteKey extends PropertyKey, Options> = {
  readonly tool: (of: { [Name in keyof ToolKeys]?: FromJsonSchema<ToolKeys[Name]> }) => void
  readonly context: (of: Context) => void
  readonly route: (of: { [Name in RouteKey]?: Options }) => void
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
export const withPlugins = <Factories extends ReadonlyArray<{ readonly [ADDED]?: unknown }>>(
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
export const definePlugin = createPluginFactory as DefinePlugin<SetupHost, never>
