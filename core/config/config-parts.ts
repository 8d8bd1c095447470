// What a config holds that JSON Schema cannot say: definitions, configured plugins, lists that code makes. The `tsType`s
// of host-schema.ts name these; config-types.ts, which is made from it, imports them.
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import type { Definition } from '../mcp/define.ts'
import type { BuiltInOptions } from './plugin-options.ts'

export type { ConfigureSession, RunSession, ServerSettings } from '../mcp/configure-session.ts'

type Sources = string | Definition | ReadonlyArray<string | Definition>

/** A module path or glob relative to the config, definitions, or a list of these; or these with settings. */
export type ToolsetSource =
  | Sources
  | {
      readonly from: Sources
      /** Routes with `toolsets: ':name'` do not reach it: only routes and `addToolset` that name it. Default `false`. */
      readonly internal?: boolean
    }

/** A list, of which undefined entries are skipped: what the environment does not hold. Or a file that has them. */
export type Secrets =
  | ReadonlyArray<string | undefined>
  | {
      /** One secret a line, relative to the config; a start makes it where it is missing. */
      readonly file: string
    }

type BuiltInPlugins = { [Name in keyof BuiltInOptions]?: BuiltInOptions[Name] | ConfiguredPlugin | false }

/** Built-in plugins by name; your own as configured values, or by package or file name with plain options. */
export interface PluginsSettings extends BuiltInPlugins {
  [name: string]: ConfiguredPlugin | false | object | undefined
}

type BuiltInOverrides = { [Name in keyof BuiltInOptions]?: Partial<BuiltInOptions[Name]> | ConfiguredPlugin | false }

/** The same for one route: options that are given replace the general ones, the others stay. */
export interface RoutePluginsSettings extends BuiltInOverrides {
  [name: string]: ConfiguredPlugin | false | object | undefined
}
