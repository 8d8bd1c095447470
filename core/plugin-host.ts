// The plugin API: the argument of `setup`, and `definePlugin`.
import type { UnderTest } from './access/claims.ts'
import type { Examination, PluginFinding } from './config/examination.ts'
import type { Services } from './internal-host.ts'
import {
  type Plugin as AnyPlugin,
  definePlugin as defineAnyPlugin,
  type PluginDeclaration,
  type PluginFactory,
} from './kernel/define-plugin.ts'
import type { InternalKernelHost, KernelHost } from './kernel/kernel-host.ts'
import type { WithOldNames } from './kernel/old-names.ts'
import type { AuthorHost, InternalAuthorHost } from './mcp/author-host.ts'
import type { FromJsonSchema } from './mcp/infer.ts'
import type { JsonSchema } from './mcp/protocol.ts'
import type { McpRoute } from './mcp/routes.ts'
import type { Connector } from './sessions/connect-client.ts'
import type { PublishedSlots, Slots } from './slots.ts'

/** The argument of `setup`. */
export interface PluginHost extends KernelHost<PublishedSlots, McpRoute>, AuthorHost, Connector {}

/** The argument of `setup` with deprecated names, for one more version. */
type SetupHost = WithOldNames<PluginHost, InternalKernelHost<Slots, Services, McpRoute> & InternalAuthorHost>

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

/** A plugin of this host. `Filled`: its options with defaults, as passed to `setup`. */
export type Plugin<
  Options extends object,
  Filled extends Options = Options,
  Sections extends object = object,
  Host = SetupHost,
> = AnyPlugin<Options, Host, Filled, Sections> & Testable<Options> & Examinable<Filled>

interface ObjectSchema {
  readonly type: 'object'
  readonly additionalProperties: false
  readonly properties: Readonly<Record<string, JsonSchema>>
}

/** The options type of a schema written `as const`; with `Filled`, including defaults. */
export type OptionsOf<Schema, Filled = false> = FromJsonSchema<Schema, Filled> & object

export interface DefinePlugin<Host> {
  <const Schema extends ObjectSchema, Sections extends object = object>(
    plugin: { readonly options: Schema } & Omit<
      Plugin<OptionsOf<Schema>, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections, Host>,
      'options'
    >,
  ): PluginFactory<OptionsOf<Schema>, Host, Extract<OptionsOf<Schema, true>, OptionsOf<Schema>>, Sections>
  <Options extends object, Filled extends Options = Options, Sections extends object = object>(
    plugin: PluginDeclaration<Options, Host, Filled, Sections> & Testable<Options> & Examinable<Filled>,
  ): PluginFactory<Options, Host, Filled, Sections>
}

/**
 * Creates a plugin from its options schema and `setup`. Option types are inferred; use `definePlugin<Options>` for types that
 * JSON Schema cannot express.
 */
export const definePlugin = defineAnyPlugin as DefinePlugin<SetupHost>
