// For programs that embed a host, and for the CLI: from a config, checked whole, to a host that can listen.

import { dirname, join } from 'node:path'
import { builtInPlugins } from '../plugins/index.ts'
import { assertNoProblems, checkConfig } from './config/check-config.ts'
import { buildConfigSchema } from './config/host-schema.ts'
import { type LoadedConfig, loadConfig } from './config/load-config.ts'
import type { Config } from './define-config.ts'
import { buildHost, type Host } from './host.ts'
import { createLogger, type Logger } from './log.ts'
import { findPlugins, type PluginTable } from './plugin-plan.ts'

export { type LoadedConfig, loadConfig } from './config/load-config.ts'
export type { CloseReport, Host, RouteSummary } from './host.ts'
export { createLogger, type Logger } from './log.ts'

export interface CreateHostOptions {
  /** The config's relative paths start here. Default: the working directory. */
  directory?: string
  /** Default: JSON lines on stderr. */
  log?: Logger
}

/** The plugins of a table of factories, by name. */
export const pluginsOf = (table: PluginTable): Record<string, { options: object }> =>
  Object.fromEntries(Object.entries(table).map(([name, { plugin }]) => [name, plugin as { options: object }]))

/** A host of a config that was loaded from a file. Throws a StartError that lists every problem of the config. */
export async function hostOf(loaded: LoadedConfig, log: Logger = createLogger()): Promise<Host> {
  const directory = dirname(loaded.file)
  const config = loaded.config as Config
  // Whatever is wrong with the shape is told before plugins are looked for by the names in it.
  assertNoProblems(checkConfig(loaded, buildConfigSchema(pluginsOf(builtInPlugins))))
  const plugins = await findPlugins(config, builtInPlugins, directory)
  assertNoProblems(checkConfig(loaded, buildConfigSchema(Object.fromEntries(plugins))))
  return buildHost({ config, plugins, directory, log })
}

/** A host of a config in hand. It serves nothing until `listen()`. */
export function createHost(config: Config, { directory = process.cwd(), log }: CreateHostOptions = {}): Promise<Host> {
  return hostOf({ file: join(directory, 'config'), config, locate: () => undefined }, log)
}

/** Finds and loads the config as the CLI does, and makes its host. */
export async function loadHost(options: Parameters<typeof loadConfig>[0], log?: Logger): Promise<Host> {
  return hostOf(await loadConfig(options), log)
}
