// The plan of a host's plugins: who is set up before whom, who provides what, and whether a route's wishes are met.
// core/config/plan-options.ts makes the instances; core/kernel/set-up.ts sets them up.

import { StartError } from '../http/errors.ts'
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
}

/** Providers before those who need them; otherwise the order of the config. Throws where a need is not met. */
export function orderByNeeds(instances: readonly PluginInstance[]): PluginInstance[] {
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

/** Names of plugins that provide all of these capabilities, in words that go on "switch on". */
export type SuggestPlugin = (...capabilities: string[]) => string

/** Fails closed: what a route asks for, some plugin that acts there must decide; who calls, only one. */
export function checkConventions(routes: readonly Route[], provides: Provides, suggest: SuggestPlugin) {
  const stop = (why: string) => new StartError(why, { exitCode: 2 })
  for (const route of routes) {
    const { path, authorize, cors } = route
    const [first, second] = provides.by('user', route)
    if (second !== undefined) {
      const fix = 'switch one of them off on this route; for several issuers, one plugin may have an option'
      throw stop(`routes['${path}']: both ${first} and ${second} find out who calls; ${fix}`)
    }
    if (authorize !== undefined && !provides('authorize', route)) {
      throw stop(
        `routes['${path}'].authorize: no plugin of this route can decide it; switch on ${suggest('authorize')}`,
      )
    }
    if (typeof authorize === 'string' && !provides('policy', route)) {
      throw stop(
        `routes['${path}'].authorize: no plugin of this route knows the policy "${authorize}"; switch on ` +
          `${suggest('policy')}, or for a scope or a role write { scope: '${authorize}' } or { role: '${authorize}' }`,
      )
    }
    if (cors !== undefined && !provides('cors', route)) {
      throw stop(`routes['${path}'].cors: no plugin of this route knows "${cors}"; switch on ${suggest('cors')}`)
    }
  }
}
