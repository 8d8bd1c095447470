// The types of the config, inferred from config-schema.ts.
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import { type Definition, kindOf } from '../mcp/definitions/define.ts'
import type { FromJsonSchema } from '../mcp/definitions/infer.ts'
import type { ConfigureSession, RunSession, ServerSettings } from '../mcp/routes/configure-session.ts'
import { isObject } from '../mcp/wire/message.ts'
import type { http, route, sessions, tools } from './config-schema.ts'

type Sources = string | Definition | ReadonlyArray<string | Definition>

/** A module path or glob relative to the config, definitions, or a list of these; optionally with settings. */
export type ToolsetSource =
  | Sources
  | {
      readonly from: Sources
      /** Excluded from `toolsets: ':name'`; only routes and `addToolset` that name the toolset reach it. Default `false`. */
      readonly internal?: boolean
    }

/** A list, whose undefined entries are skipped, or a file that contains the secrets. */
export type Secrets =
  | ReadonlyArray<string | undefined>
  | {
      /** One secret per line, relative to the config. Startup creates a missing file. */
      readonly file: string
    }

/** Plugin options by plugin name. Built-in plugins extend this type. */
export interface BuiltInOptions extends Record<never, never> {}

/** Keys of `store` that built-in plugins declare. */
export interface BuiltInStores extends Record<never, never> {}

/** `memory`: this process. Otherwise the options of one database. */
export type StoreSettings = 'memory' | { [Key in keyof BuiltInStores]: Pick<BuiltInStores, Key> }[keyof BuiltInStores]

/** Top-level config keys that built-in plugins declare. */
export interface BuiltInSections extends Record<never, never> {}

type BuiltInPlugins = { [Name in keyof BuiltInOptions]?: BuiltInOptions[Name] | ConfiguredPlugin | false }

/** Built-in plugins by name; custom plugins as configured values, or by package or file name with plain options. */
export interface PluginsSettings extends BuiltInPlugins {
  [name: string]: ConfiguredPlugin | false | object | undefined
}

type BuiltInOverrides = { [Name in keyof BuiltInOptions]?: Partial<BuiltInOptions[Name]> | ConfiguredPlugin | false }

/** Plugin options of one route. Given options replace the general ones; others are kept. */
export interface RoutePluginsSettings extends BuiltInOverrides {
  [name: string]: ConfiguredPlugin | false | object | undefined
}

/** Listen address, limits and timeouts of the HTTP server. */
export interface HttpSettings extends FromJsonSchema<typeof http> {}
export interface FilledHttpSettings extends FromJsonSchema<typeof http, true> {}
export type FilledHttpTls = NonNullable<FilledHttpSettings['tls']>

export interface ToolLimits extends FromJsonSchema<typeof tools> {}
export interface FilledToolLimits extends FromJsonSchema<typeof tools, true> {}

/** Session limits; sessions exist in legacy protocol versions only. */
export interface SessionLimits extends FromJsonSchema<typeof sessions> {}
export interface FilledSessionLimits extends FromJsonSchema<typeof sessions, true> {}

/** Route keys of built-in plugins, which extend this type. */
export interface BuiltInRouteKeys extends Record<never, never> {}

/** The settings of one route. */
export interface RouteSettings extends FromJsonSchema<typeof route>, BuiltInRouteKeys {
  /** The store of this route. Default: the config's. */
  store?: StoreSettings
  /** Overrides plugin options for this route; `false` disables a plugin. */
  plugins?: RoutePluginsSettings
}
type FilledRouteSettings = FromJsonSchema<typeof route, true> &
  BuiltInRouteKeys &
  Pick<RouteSettings, 'store' | 'plugins'>

/** The complete config. */
export interface Config extends BuiltInSections {
  /** Name and version that the server reports to clients. */
  server: ServerSettings
  http?: HttpSettings
  /** Handles all requests without sessions. Default `false`. */
  stateless?: boolean
  /** The first secret signs, all verify. Default: a temporary secret per process. */
  secrets?: Secrets
  /** Limits for every tool. */
  tools?: ToolLimits
  /** Session limits; sessions exist in legacy protocol versions only. */
  sessions?: SessionLimits
  /** The store of sessions, streams, tasks and logins. Default `memory`. */
  store?: StoreSettings
  /** Named groups of tools, resources and prompts, which routes serve. Plugins can provide others. */
  toolsets?: Record<string, ToolsetSource>
  /** Routes by path. ':name?' is an optional parameter. */
  routes: Record<string, RouteSettings>
  /** Plugin options by plugin name; `false` disables a plugin. */
  plugins?: PluginsSettings
  /** Changes the items of one caller. */
  configureSession?: ConfigureSession
  /** Runs code before and after a session. */
  runSession?: RunSession
}

/** The config with its defaults. */
export interface FilledConfig extends Config {
  http: FilledHttpSettings
  stateless: boolean
  tools: FilledToolLimits
  sessions: FilledSessionLimits
  toolsets: Record<string, ToolsetSource>
  routes: Record<string, FilledRouteSettings>
}

/** Returns its argument, with types for completion and checks in an editor. `Sections`: top-level keys of custom plugins. */
export const defineConfig = <Sections extends object = object>(config: Config & NoInfer<Sections>): Config & Sections =>
  config

/** True if a toolset has settings. A definition is also an object. */
export const hasSettings = (toolset: unknown): toolset is Readonly<Record<string, unknown>> =>
  isObject(toolset) && isPlain(toolset) && kindOf(toolset) === undefined && 'from' in toolset

export const sourceOf = (toolset: unknown): unknown => (hasSettings(toolset) ? toolset['from'] : toolset)

export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm, as from a CommonJS loader, have a different Object.prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
