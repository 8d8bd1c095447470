// The plan of a host's plugins: who is set up before whom, who provides what, and whether a route's wishes are met.
// core/config/plan-options.ts makes the instances; core/kernel/set-up.ts sets them up.

import { type Path, StartError, stopAtFirst } from '../http/errors.ts'
import type { Plugin } from './define-plugin.ts'
import type { Route } from './route.ts'

/** One set-up of a plugin: for all routes that do not say otherwise, or for one that does. */
export interface PluginInstance {
  readonly name: string
  readonly plugin: Plugin<object>
  readonly options: object
  readonly routes: readonly Route[]
  /** Set up for all routes but those with options of their own: acts on what belongs to no route, too. */
  readonly general: boolean
  /** The keys that lead to its options. */
  readonly at: Path
}

/** Providers before those who need them; otherwise the order of the config. Reports a need that is not met. */
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
      const circle = [...visiting].map(({ name }) => name).join(', ')
      return report(new StartError(`the plugins ${circle} need each other in a circle`, { at: instance.at }))
    }
    visiting.add(instance)
    for (const need of instance.plugin.needs ?? []) {
      const providers = instances.filter(({ plugin }) => plugin.provides?.includes(need))
      if (providers.length === 0) {
        const why = `it needs "${need}", which no plugin of this config provides`
        report(new StartError(`${why}; switch on ${suggest(need)}`, { at: instance.at }))
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
export interface Provides {
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

/** Names of plugins that provide all of these capabilities, in words that go on "switch on". */
export type SuggestPlugin = (...capabilities: string[]) => string
