// Finds the plugins that a config names: configured values, built-in plugins, local files, packages.
import { existsSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Path, StartError } from '../http/errors.ts'
import { isConfiguredPlugin, isPluginFactory, type Plugin } from '../kernel/define-plugin.ts'
import { PLUGIN_SCHEMA } from '../mcp/definitions/definition-schema.ts'
import { nearest } from '../mcp/nearest.ts'
import { isObject } from '../mcp/wire/message.ts'
import { formatFinding } from './check-definition.ts'
import { importModule } from './import-module.ts'
import { ConfigError, type Problems, shortName } from './problems.ts'
import { validateValue } from './validate-value.ts'

export type PluginTable = Readonly<Record<string, { readonly plugin: unknown }>>

function checkPlugin(plugin: Plugin<object>, at: Path): Plugin<object> {
  const declared = Object.fromEntries(Object.entries(plugin).filter(([, value]) => value !== undefined))
  const [issue] = validateValue(declared, PLUGIN_SCHEMA, [])
  if (issue) throw new StartError('MH1024', `the argument of definePlugin is invalid: ${formatFinding(issue)}`, { at })
  return plugin
}

const pluginIn = (value: unknown): Plugin<object> | undefined => (isPluginFactory(value) ? value.plugin : undefined)

const isPath = (name: string) => name.startsWith('.') || isAbsolute(name)

interface Lookup {
  readonly directory: string
  readonly known: readonly string[]
}

/** Returns the file of a package. Rejects for an unknown package. */
export async function resolvePackage(name: string, directory: string): Promise<string> {
  const { resolve: resolveFrom } = await import('import-meta-resolve')
  return fileURLToPath(resolveFrom(name, pathToFileURL(`${directory}/`).href))
}

async function fileOf(name: string, at: Path, { directory, known }: Lookup): Promise<string> {
  if (isPath(name)) return resolve(directory, name)
  try {
    return await resolvePackage(name, directory)
  } catch (cause) {
    const fix = `run: npm install ${name}; or correct the name; built-in plugins: ${known.join(', ')}`
    throw new StartError('MH1021', `there is no such plugin, and no package of that name in ${directory}; ${fix}`, {
      cause,
      at,
    })
  }
}

async function importPlugin(name: string, at: Path, lookup: Lookup): Promise<Plugin<object>> {
  const file = await fileOf(name, at, lookup)
  let exported: Record<string, unknown>
  try {
    exported = await importModule(file)
  } catch (cause) {
    const { explainImport, nearestFile } = await import('./explain-import.ts')
    if (isPath(name) && !existsSync(file)) {
      throw new StartError('MH1022', `the file does not exist: ${shortName(file)}${nearestFile(file, name)}`, {
        cause,
        at,
      })
    }
    throw new ConfigError([explainImport(file, cause, at)])
  }
  const plugins = [...new Set(Object.values(exported))].flatMap(value => pluginIn(value) ?? [])
  const [plugin, second] = [pluginIn(exported['default']) ?? plugins[0], plugins[1]]
  if (!plugin || (second && !pluginIn(exported['default']))) {
    const found = second ? `it exports ${plugins.length} and none of them as its default` : 'it exports none'
    const fix = 'write export default definePlugin({ options, setup })'
    throw new StartError('MH1023', `${file} must export one plugin, made with definePlugin; ${found}: ${fix}`, { at })
  }
  return plugin
}

interface PluginValue {
  readonly at: Path
  readonly name: string
  readonly value: unknown
  readonly isOverride: boolean
}

export function pluginValues(config: unknown): PluginValue[] {
  if (!isObject(config)) return []
  const { plugins: general, routes } = config
  const places: Array<Pick<PluginValue, 'at' | 'isOverride'> & { settings: unknown }> = [
    { at: ['plugins'], settings: general, isOverride: false },
    ...Object.entries(isObject(routes) ? routes : {}).map(([path, route]) => {
      return { at: ['routes', path, 'plugins'], settings: isObject(route) && route['plugins'], isOverride: true }
    }),
  ]
  return places.flatMap(({ at, settings, isOverride }) =>
    Object.entries(isObject(settings) ? settings : {}).map(([name, value]) => ({
      at: [...at, name],
      name,
      value,
      isOverride,
    })),
  )
}

/** Reports `false` for a misspelled built-in name. Other unknown names can be custom plugins that are disabled. */
function checkSwitchedOff(values: readonly PluginValue[], found: ReadonlyMap<string, unknown>, { report }: Problems) {
  for (const { at, name, value } of values) {
    if (value !== false || found.has(name) || isPath(name)) continue
    const near = nearest(name, found.keys())
    if (near === undefined) continue
    report(new StartError('MH1021', `there is no plugin of this name to disable; did you mean "${near}"?`, { at }))
  }
}

export const areAllMisspelled = (
  config: unknown,
  found: ReadonlyMap<string, unknown>,
  builtIns: ReadonlyMap<string, unknown>,
): boolean =>
  pluginValues(config)
    .filter(({ name, value }) => isObject(value) && !found.has(name))
    .every(({ name }) => nearest(name, builtIns.keys()) !== undefined)

export async function findPlugins(
  config: unknown,
  builtIns: PluginTable,
  directory: string,
  problems: Problems,
): Promise<Map<string, Plugin<object>>> {
  const found = new Map(Object.entries(builtIns).map(([name, { plugin }]) => [name, plugin as Plugin<object>]))
  const lookup = { directory, known: Object.keys(builtIns) }
  const values = pluginValues(config)
  const missed = new Set<string>()
  for (const { at, name, value } of values) {
    if (!isConfiguredPlugin(value) && (!isObject(value) || found.has(name) || missed.has(name))) continue
    const plugin = await problems.attempt(async () => {
      if (isConfiguredPlugin(value)) return checkPlugin(value.plugin, at)
      const near = isPath(name) ? undefined : nearest(name, lookup.known)
      if (near !== undefined) throw new StartError('MH1021', `there is no such plugin; did you mean "${near}"?`, { at })
      return checkPlugin(await importPlugin(name, at, lookup), at)
    })
    if (plugin) found.set(name, plugin)
    else missed.add(name)
  }
  checkSwitchedOff(values, found, problems)
  return found
}
