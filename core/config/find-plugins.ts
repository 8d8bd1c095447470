// From the names under the config's `plugins` to plugins: configured values, built-in ones, local files, packages.
// Between the check of the config's shape and the plan (plan-options.ts); nothing of a plugin has run yet.
import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { resolve as resolvePackage } from 'import-meta-resolve'
import { errorText, StartError } from '../http/errors.ts'
import { isConfiguredPlugin, isPluginFactory, type Plugin } from '../kernel/define-plugin.ts'
import { nearest } from '../mcp/nearest.ts'
import { describeFault } from './check-definition.ts'
import type { Config, PluginsSettings } from './define-config.ts'
import { PLUGIN_SCHEMA } from './definition-schema.ts'
import { importModule } from './import-module.ts'
import { validateValue } from './validate-value.ts'

/** Name -> plugin, for every plugin that a config names. */
export type PluginTable = Readonly<Record<string, { readonly plugin: unknown }>>

/** A misspelt `needs` would be set up too early, and a misspelt `provides` would be asked in vain. */
function checkPlugin(plugin: Plugin<object>, where: string): Plugin<object> {
  const given = Object.fromEntries(Object.entries(plugin).filter(([, value]) => value !== undefined))
  const [fault] = validateValue(given, PLUGIN_SCHEMA, [])
  if (fault) throw new StartError(`${where}: what definePlugin was given: ${describeFault(fault)}`, { exitCode: 2 })
  return plugin
}

const pluginIn = (value: unknown): Plugin<object> | undefined => (isPluginFactory(value) ? value.plugin : undefined)

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
export function* namedPlugins({ plugins = {}, routes }: Config): Generator<[string, PluginsSettings[string]]> {
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
