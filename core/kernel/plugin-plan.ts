// Which plugins run, with which options, on which routes, in which order: decided before any of them is set up.
import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { resolve as resolvePackage } from 'import-meta-resolve'
import { describeFault } from '../config/check-definition.ts'
import type { Config, PluginsSettings } from '../config/define-config.ts'
import { PLUGIN_SCHEMA } from '../config/definition-schema.ts'
import { importModule } from '../config/import-module.ts'
import { nearest } from '../config/nearest.ts'
import { trimSecrets } from '../config/secret-keys.ts'
import { validateValue } from '../config/validate-value.ts'
import { isConfiguredPlugin, type Plugin, type PluginFactory } from './define-plugin.ts'
import { errorText, StartError } from './errors.ts'
import type { Route } from './route.ts'

/** Name -> plugin, for every plugin that a config names. */
export type PluginTable = Readonly<Record<string, { readonly plugin: unknown }>>

/** One set-up of a plugin: for all routes that do not say otherwise, or for one that does. */
export interface PluginInstance {
  readonly name: string
  readonly plugin: Plugin<object>
  readonly options: object
  readonly routes: readonly Route[]
}

/** A misspelt `needs` would be set up too early, and a misspelt `provides` would be asked in vain. */
function checkPlugin(plugin: Plugin<object>, where: string): Plugin<object> {
  const given = Object.fromEntries(Object.entries(plugin).filter(([, value]) => value !== undefined))
  const [fault] = validateValue(given, PLUGIN_SCHEMA, [])
  if (fault) throw new StartError(`${where}: what definePlugin was given: ${describeFault(fault)}`, { exitCode: 2 })
  return plugin
}

const pluginIn = (value: unknown): Plugin<object> | undefined =>
  typeof value === 'function' && 'plugin' in value ? (value as PluginFactory<object>).plugin : undefined

async function importPlugin(name: string, directory: string): Promise<Plugin<object>> {
  const where = `plugins['${name}']`
  const isPath = name.startsWith('.') || isAbsolute(name)
  let file: string
  try {
    file = isPath ? resolve(directory, name) : fileURLToPath(resolvePackage(name, pathToFileURL(`${directory}/`).href))
  } catch (cause) {
    throw new StartError(`${where}: there is no such plugin, and no package of that name in ${directory}`, {
      cause,
      exitCode: 2,
    })
  }
  let exported: Record<string, unknown>
  try {
    exported = await importModule(file)
  } catch (cause) {
    throw new StartError(`${where}: ${file} cannot be loaded: ${errorText(cause)}`, { cause, exitCode: 2 })
  }
  const plugins = [...new Set(Object.values(exported))].flatMap(value => pluginIn(value) ?? [])
  const [plugin, second] = [pluginIn(exported['default']) ?? plugins[0], plugins[1]]
  if (!plugin || (second && !pluginIn(exported['default']))) {
    throw new StartError(`${where}: ${file} must export one plugin, made with definePlugin`, { exitCode: 2 })
  }
  return plugin
}

/** Every name under `plugins`, of the config and of its routes, with what it was given. */
function* namedPlugins({ plugins = {}, routes }: Config): Generator<[string, PluginsSettings[string]]> {
  yield* Object.entries(plugins)
  for (const { plugins = {} } of Object.values(routes ?? {})) yield* Object.entries(plugins)
}

/**
 * What a misspelt `false` was meant to switch off would stay on, and nobody be told. A name like no other may be a plugin
 * of the operator's own, off by a condition.
 */
function checkSwitchedOff(config: Config, found: ReadonlyMap<string, unknown>) {
  for (const [name, value] of namedPlugins(config)) {
    if (value !== false || found.has(name) || name.startsWith('.') || isAbsolute(name)) continue
    const near = nearest(name, found.keys())
    if (near === undefined) continue
    const why = `there is no such plugin to switch off; did you mean "${near}"?`
    throw new StartError(`plugins['${name}']: ${why}`, { exitCode: 2 })
  }
}

/**
 * Finds each plugin that the config names: a configured value, a built-in, a local file, a package.
 * Throws a StartError for a name that is none of these, and for one that is switched off and is nearly another's.
 */
export async function findPlugins(
  config: Config,
  builtIns: PluginTable,
  directory: string,
): Promise<Map<string, Plugin<object>>> {
  const found = new Map(Object.entries(builtIns).map(([name, { plugin }]) => [name, plugin as Plugin<object>]))
  for (const [name, value] of namedPlugins(config)) {
    if (isConfiguredPlugin(value)) found.set(name, checkPlugin(value.plugin, `plugins['${name}']`))
    else if (value !== false && value !== undefined && !found.has(name)) {
      const near = nearest(name, Object.keys(builtIns))
      if (near !== undefined && !name.startsWith('.')) {
        throw new StartError(`plugins['${name}']: there is no such plugin; did you mean "${near}"?`, { exitCode: 2 })
      }
      found.set(name, checkPlugin(await importPlugin(name, directory), `plugins['${name}']`))
    }
  }
  checkSwitchedOff(config, found)
  return found
}

const optionsOf = (value: PluginsSettings[string]): object => (isConfiguredPlugin(value) ? value.options : value || {})

/** Options with the defaults of their schema filled in, and secrets as they were meant. */
function withDefaults(schema: Plugin<object>['options'], written: object): object {
  const { properties } = schema
  const options = trimSecrets(written, schema)
  const schemas = Object.entries(properties as Record<string, { default?: unknown }>)
  const defaults = schemas.filter(([, schema]) => schema.default !== undefined)
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries([...defaults.map(([name, schema]) => [name, schema.default]), ...given])
}

/** What runs where. A route's own value replaces single options, or with `false` the plugin, for that route alone. */
export function planPlugins(
  config: Config,
  plugins: ReadonlyMap<string, Plugin<object>>,
  routes: readonly Route[],
): PluginInstance[] {
  const names = new Set([...namedPlugins(config)].map(([name]) => name))
  const instances: PluginInstance[] = []
  for (const name of names) {
    const plugin = plugins.get(name)
    const general = config.plugins?.[name]
    if (!plugin) continue
    const own = (route: Route) => config.routes[route.path]?.plugins?.[name]
    if (general !== undefined && general !== false) {
      const covered = routes.filter(route => own(route) === undefined)
      instances.push({ name, plugin, options: withDefaults(plugin.options, optionsOf(general)), routes: covered })
    }
    for (const route of routes) {
      const special = own(route)
      if (special === undefined || special === false) continue
      const options = { ...(general ? optionsOf(general) : {}), ...optionsOf(special) }
      instances.push({ name, plugin, options: withDefaults(plugin.options, options), routes: [route] })
    }
  }
  return orderByNeeds(instances)
}

/** Providers before those who need them; otherwise the order of the config. Throws where a need is not met. */
function orderByNeeds(instances: readonly PluginInstance[]): PluginInstance[] {
  const ordered: PluginInstance[] = []
  const visiting = new Set<PluginInstance>()
  function visit(instance: PluginInstance) {
    if (ordered.includes(instance)) return
    if (visiting.has(instance)) {
      const circle = [...visiting].map(({ name }) => name).join(', ')
      throw new StartError(`the plugins ${circle} need each other in a circle`, { exitCode: 2 })
    }
    visiting.add(instance)
    for (const need of instance.plugin.needs ?? []) {
      const providers = instances.filter(({ plugin }) => plugin.provides?.includes(need))
      if (providers.length === 0) {
        throw new StartError(`plugins.${instance.name} needs "${need}", which no plugin of this config provides`, {
          exitCode: 2,
        })
      }
      providers.forEach(visit)
    }
    visiting.delete(instance)
    ordered.push(instance)
  }
  instances.forEach(visit)
  return ordered
}

/** Whether a plugin that acts on the route, or on any, provides a capability. */
interface Provides {
  (capability: string, route?: Route): boolean
  /** The names of those that do. */
  by(capability: string, route?: Route): string[]
}

export function providersAmong(instances: readonly PluginInstance[]): Provides {
  const by = (capability: string, route?: Route) =>
    instances
      .filter(({ plugin, routes }) => (!route || routes.includes(route)) && plugin.provides?.includes(capability))
      .map(({ name }) => name)
  return Object.assign((capability: string, route?: Route) => by(capability, route).length > 0, { by })
}

/** Fails closed: what a route asks for, some plugin that acts there must decide; who calls, only one. */
export function checkConventions(routes: readonly Route[], provides: Provides) {
  for (const route of routes) {
    const { path, authorize, cors } = route
    const [first, second] = provides.by('user', route)
    if (second !== undefined) {
      const fix = "switch one of them off on this route; several issuers are auth-jwt's `issuers`"
      throw new StartError(`routes['${path}']: both ${first} and ${second} find out who calls; ${fix}`, { exitCode: 2 })
    }
    if (authorize !== undefined && !provides('authorize', route)) {
      throw new StartError(`routes['${path}'].authorize: no plugin of this route can decide it; switch on auth-jwt`, {
        exitCode: 2,
      })
    }
    if (typeof authorize === 'string' && !provides('policy', route)) {
      throw new StartError(
        `routes['${path}'].authorize: no plugin of this route knows the policy "${authorize}"; switch on tool-policy, ` +
          `or for a scope or a role write { scope: '${authorize}' } or { role: '${authorize}' }`,
        { exitCode: 2 },
      )
    }
    if (cors !== undefined && !provides('cors', route)) {
      throw new StartError(`routes['${path}'].cors: no plugin of this route knows "${cors}"; switch on cors`, {
        exitCode: 2,
      })
    }
  }
}
