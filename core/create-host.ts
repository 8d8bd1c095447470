// For programs that embed a host, and for the CLI: from a config, checked whole, to a host that can listen.

import { dirname, join } from 'node:path'
import { builtInPlugins } from '../plugins/index.ts'
import { assertNoProblems, checkConfig, checkValue, inFileOrder, type Problem } from './config/check-config.ts'
import type { Config } from './config/define-config.ts'
import { buildConfigSchema, withoutRequired } from './config/host-schema.ts'
import { type LoadedConfig, loadConfig } from './config/load-config.ts'
import { trimSecrets } from './config/secret-keys.ts'
import { buildHost, type Host } from './host.ts'
import { isConfiguredPlugin } from './kernel/define-plugin.ts'
import { createLogger, type Logger } from './kernel/log.ts'
import { findPlugins, type PluginTable } from './kernel/plugin-plan.ts'
import { isObject } from './mcp/call.ts'

export type { InspectedAddress } from './access/inspect-access.ts'
export { type LoadedConfig, loadConfig } from './config/load-config.ts'
export type { Host } from './host.ts'
export { describeThrown, originOf } from './kernel/describe-thrown.ts'
export type { CloseReport } from './kernel/in-flight.ts'
export { createLogger, type Logger, type ProcessLog } from './kernel/log.ts'
export type { RouteSummary } from './mcp/route-summary.ts'

export interface CreateHostOptions {
  /** The config's relative paths start here. Default: the working directory. */
  directory?: string
  /** Default: JSON lines on stderr. */
  log?: Logger
  /**
   * How many processes serve this config behind one address. Default 1. With more, what each would keep to itself (sessions
   * in memory, keys that it made) is a StartError.
   */
  processes?: number
}

/** The plugins of a table of factories, by name. */
export const pluginsOf = (table: PluginTable): Record<string, { options: object }> =>
  Object.fromEntries(Object.entries(table).map(([name, { plugin }]) => [name, plugin as { options: object }]))

/** The same for every config: made once, and compiled once. Plugins' options are checked by their own schemas. */
const hostSchema = buildConfigSchema({})

/** What is wrong with the options of these plugins, wherever the config gives them. */
function checkOptions(loaded: LoadedConfig, plugins: ReadonlyMap<string, { options: object }>): Problem[] {
  if (!isObject(loaded.config)) return []
  const { plugins: general, routes } = loaded.config
  const places = [
    { at: ['plugins'], settings: general, isOverride: false },
    ...Object.entries(isObject(routes) ? routes : {}).map(([path, route]) => {
      return { at: ['routes', path, 'plugins'], settings: isObject(route) && route['plugins'], isOverride: true }
    }),
  ]
  return places.flatMap(({ at, settings, isOverride }) =>
    Object.entries(isObject(settings) ? settings : {}).flatMap(([name, value]) => {
      const plugin = plugins.get(name)
      if (!plugin || !isObject(value) || isConfiguredPlugin(value)) return []
      const schema = isOverride ? withoutRequired(plugin.options) : plugin.options
      return checkValue(loaded, [...at, name], value, schema)
    }),
  )
}

const builtIns = new Map(Object.entries(pluginsOf(builtInPlugins)))

/** A host of a config that was loaded from a file. Throws a StartError that lists every problem of the config. */
export async function hostOf(loaded: LoadedConfig, log: Logger = createLogger(), processes = 1): Promise<Host> {
  const directory = dirname(loaded.file)
  const config = trimSecrets(loaded.config, hostSchema) as Config
  // Whatever is wrong with the shape is told before plugins are looked for by the names in it.
  assertNoProblems(inFileOrder([...checkConfig(loaded, hostSchema), ...checkOptions(loaded, builtIns)]))
  const plugins = await findPlugins(config, builtInPlugins, directory)
  const imported = new Map([...plugins].filter(([name]) => !builtIns.has(name)))
  assertNoProblems(checkOptions(loaded, imported))
  return buildHost({ config, plugins, directory, log, processes })
}

/** A host of a config in hand. It serves nothing until `listen()`. */
export function createHost(config: Config, options: CreateHostOptions = {}): Promise<Host> {
  const { directory = process.cwd(), log, processes } = options
  return hostOf({ file: join(directory, 'config'), config, locate: () => undefined }, log, processes)
}

/** Finds and loads the config as the CLI does, and makes its host. */
export async function loadHost(
  { processes, ...options }: Parameters<typeof loadConfig>[0] & Pick<CreateHostOptions, 'processes'>,
  log?: Logger,
): Promise<Host> {
  return hostOf(await loadConfig(options), log, processes)
}
