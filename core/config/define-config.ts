// The config in types, inferred from config-schema.ts.
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import type { ConfigureSession, RunSession, ServerSettings } from '../mcp/configure-session.ts'
import { type Definition, kindOf } from '../mcp/define.ts'
import type { FromJsonSchema } from '../mcp/infer.ts'
import { isObject } from '../mcp/is-object.ts'
import type { http, route, sessions, tools } from './config-schema.ts'

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

/** Plugins and their options by name. The package's built-in plugins add theirs. */
export interface BuiltInOptions extends Record<never, never> {}

/** Top-level keys of the config that built-in plugins declare. */
export interface BuiltInSections extends Record<never, never> {}

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

/** Where and how this host listens. */
export interface HttpSettings extends FromJsonSchema<typeof http> {}
export interface FilledHttpSettings extends FromJsonSchema<typeof http, true> {}
export type FilledHttpTls = NonNullable<FilledHttpSettings['tls']>

/** Limits for every tool. */
export interface ToolLimits extends FromJsonSchema<typeof tools> {}
export interface FilledToolLimits extends FromJsonSchema<typeof tools, true> {}

/** Sessions of clients that open them: legacy protocol versions. */
export interface SessionLimits extends FromJsonSchema<typeof sessions> {}
export interface FilledSessionLimits extends FromJsonSchema<typeof sessions, true> {}

/** What is served at one path. */
export interface RouteSettings extends FromJsonSchema<typeof route> {
  /** Plugins switched off, or options changed, for this route alone. */
  plugins?: RoutePluginsSettings
}
interface FilledRouteSettings extends FromJsonSchema<typeof route, true> {
  plugins?: RoutePluginsSettings
}

/** The config: what an operator writes. */
export interface Config extends BuiltInSections {
  /** Who this server says it is. */
  server: ServerSettings
  /** Where and how this host listens. */
  http?: HttpSettings
  /** Every route serves request by request, without sessions. Default `false`. */
  stateless?: boolean
  /** The first signs, all verify. Default: one made at start, for this process. */
  secrets?: Secrets
  /** Limits for every tool. */
  tools?: ToolLimits
  /** Sessions of clients that open them: legacy protocol versions. */
  sessions?: SessionLimits
  /** Named groups of tools, resources and prompts; routes say which they serve. */
  toolsets: Record<string, ToolsetSource>
  /** Paths, and what is served there. ':name?' is an optional parameter. */
  routes: Record<string, RouteSettings>
  /** Plugins by name, each with its options; false: off. */
  plugins?: PluginsSettings
  /** Changes what one caller sees. */
  configureSession?: ConfigureSession
  /** Acts before and after a session. */
  runSession?: RunSession
}

/** The config with its defaults. */
export interface FilledConfig extends Config {
  http: FilledHttpSettings
  stateless: boolean
  tools: FilledToolLimits
  sessions: FilledSessionLimits
  routes: Record<string, FilledRouteSettings>
}

/**
 * Returns its argument: it is there for the types, which complete and check the config in an editor. `Sections` are the
 * top-level keys that plugins of your own declare.
 */
export const defineConfig = <Sections extends object = object>(config: Config & NoInfer<Sections>): Config & Sections =>
  config

/** A toolset with settings. A definition is an object, too. */
export const hasSettings = (toolset: unknown): toolset is Readonly<Record<string, unknown>> =>
  isObject(toolset) && isPlain(toolset) && kindOf(toolset) === undefined && 'from' in toolset

/** What a toolset is loaded from. */
export const sourceOf = (toolset: unknown): unknown => (hasSettings(toolset) ? toolset['from'] : toolset)

// Values as JSON would hold them: for whoever checks what was written in code, where a key may be there and undefined.

/** An object that is written out, not an instance of a class. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // A config that was made in another realm, as by a CommonJS loader, has another Object.prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
