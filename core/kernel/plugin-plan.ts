// Determines the set-up order of plugins and the capabilities that they provide.

import { type Path, StartError, stopAtFirst } from '../http/errors.ts'
import type { Plugin } from './define-plugin.ts'
import type { Route } from './route.ts'

export interface PluginInstance {
  readonly name: string
  readonly plugin: Plugin<object>
  readonly options: object
  readonly routes: readonly Route[]
  readonly general: boolean
  /** The issuer of users that the plugin authenticates without an issuer. */
  readonly issuer: string
  readonly at: Path
  /** Position of the plugin's name in the config. */
  readonly order: number
}

const IMPLIED: Readonly<Record<string, readonly string[]>> = {
  store: ['sessionStore', 'eventStore', 'changeBus', 'peers'],
}

export const providesTo = ({ provides = [] }: Pick<Plugin<object>, 'provides'>, need: string): boolean =>
  provides.some(capability => capability === need || IMPLIED[capability]?.includes(need))

/** Sorts providers before dependents and otherwise keeps the config order. Reports missing capabilities. */
export function orderByNeeds(
  instances: readonly PluginInstance[],
  suggest: SuggestPlugin,
  report = stopAtFirst,
): PluginInstance[] {
  const ordered: PluginInstance[] = []
  const visiting = new Set<PluginInstance>()
  function visit(instance: PluginInstance) {
    if (ordered.includes(instance)) return
    if (visiting.has(instance)) {
      const cycle = [...visiting].map(({ name }) => name).join(', ')
      return report(new StartError('MH1501', `circular dependency between plugins: ${cycle}`, { at: instance.at }))
    }
    visiting.add(instance)
    for (const need of instance.plugin.needs ?? []) {
      const providers = instances.filter(({ plugin }) => providesTo(plugin, need))
      if (providers.length === 0) {
        const why = `it needs "${need}", which no plugin of this config provides`
        report(new StartError('MH1502', `${why}; enable ${suggest(need)}`, { at: instance.at }))
      }
      providers.forEach(visit)
    }
    visiting.delete(instance)
    ordered.push(instance)
  }
  instances.forEach(visit)
  return ordered
}

export type Provides = ReturnType<typeof createProviderLookup>

export function createProviderLookup(instances: readonly PluginInstance[]) {
  const by = (capability: string, route?: Route) =>
    instances
      .filter(({ plugin, routes }) => (!route || routes.includes(route)) && providesTo(plugin, capability))
      .map(({ name }) => name)
  return Object.assign((capability: string, route?: Route) => by(capability, route).length > 0, { by })
}

export type SuggestPlugin = (...capabilities: string[]) => string
