// `mcp-host start --role`: what this process does with tasks, whatever the config says: one config for processes that answer
// clients, and for those that run what was asked for.

import type { LoadedConfig } from '../core/create-host.ts'
import { isObject, StartError } from '../core/index.ts'
import { isConfiguredPlugin } from '../core/kernel/define-plugin.ts'

const ROLES = ['worker', 'front', 'both'] as const

const PLUGIN = 'tasks'

/** The value of a plugin, with this option. */
function withOption(value: unknown, role: string): unknown {
  if (isConfiguredPlugin(value)) return { ...value, options: { ...value.options, role } }
  return isObject(value) ? { ...value, role } : value
}

/** What has `plugins`, and the plugin among them where that is on. */
const inPlugins = (owner: Readonly<Record<string, unknown>>, role: string) => {
  const { plugins } = owner
  if (!isObject(plugins) || !isObject(plugins[PLUGIN])) return owner
  return { ...owner, plugins: { ...plugins, [PLUGIN]: withOption(plugins[PLUGIN], role) } }
}

const inRoutes = (routes: unknown, role: string) =>
  isObject(routes)
    ? Object.fromEntries(Object.entries(routes).map(([path, at]) => [path, isObject(at) ? inPlugins(at, role) : at]))
    : routes

const isOn = (owner: unknown) => isObject(owner) && isObject(owner['plugins']) && isObject(owner['plugins'][PLUGIN])

/**
 * What gives a config's plugin `tasks` this role, in the config and on its routes. Throws a StartError for a role that there
 * is not, and what it gives does so for a config without the plugin.
 */
export function roleOf(text: string): (loaded: LoadedConfig) => LoadedConfig {
  const role = ROLES.find(name => name === text)
  if (!role) throw new StartError(`--role ${text}: give one of ${ROLES.join(', ')}`, { exitCode: 2 })
  return loaded => {
    const { config } = loaded
    if (!isObject(config)) return loaded
    const { routes } = config
    if (![config, ...Object.values(isObject(routes) ? routes : {})].some(isOn)) {
      const fix = `add plugins: { ${PLUGIN}: {} }, or start without --role`
      throw new StartError(`--role ${role}: the config has no plugin "${PLUGIN}", which runs tasks; ${fix}`, {
        exitCode: 2,
      })
    }
    return {
      ...loaded,
      config: { ...inPlugins(config, role), ...(routes !== undefined && { routes: inRoutes(routes, role) }) },
    }
  }
}
