// Plans which plugins run on which routes, and with which options.
import { type Path, type Report, StartError } from '../http/errors.ts'
import { pluginIssuer } from '../kernel/authenticators.ts'
import { isConfiguredPlugin, type Plugin } from '../kernel/define-plugin.ts'
import { orderByNeeds, type PluginInstance, type SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import type { DeclaredKeys } from './declared-keys.ts'
import type { Config, FilledConfig, PluginsSettings } from './define-config.ts'
import { pluginValues } from './find-plugins.ts'
import { fillDefaults, trimSecrets } from './walk-schema.ts'

const optionsOf = (value: PluginsSettings[string]): object => (isConfiguredPlugin(value) ? value.options : value || {})

/** Applies schema defaults and trims secrets. */
const withDefaults = (schema: Plugin<object>['options'], written: object): object =>
  fillDefaults(trimSecrets(written, schema), schema) as object

function placeOf({ routes }: Config, { path }: Route, name: string, options: unknown): Path {
  const [routeKey] = Object.entries(routes[path] ?? {}).find(([, value]) => value === options) ?? []
  return routeKey === undefined ? ['routes', path, 'plugins', name] : ['routes', path, routeKey]
}

/** A route's value replaces single options, or disables the plugin with `false`, for that route. */
export function planPlugins(
  config: Config,
  plugins: ReadonlyMap<string, Plugin<object>>,
  routes: readonly Route[],
  { suggest, report }: { readonly suggest: SuggestPlugin; readonly report: Report },
): PluginInstance[] {
  const names = new Set(pluginValues(config).map(({ name }) => name))
  const instances: PluginInstance[] = []
  for (const [order, name] of [...names].entries()) {
    const plugin = plugins.get(name)
    const general = config.plugins?.[name]
    if (!plugin) continue
    const issuer = pluginIssuer(name, names)
    const own = (route: Route) => config.routes[route.path]?.plugins?.[name]
    if (general !== undefined && general !== false) {
      const covered = routes.filter(route => own(route) === undefined)
      const options = withDefaults(plugin.options, optionsOf(general))
      instances.push({ name, plugin, options, routes: covered, general: true, issuer, at: ['plugins', name], order })
    }
    for (const route of routes) {
      const special = own(route)
      if (special === undefined || special === false) continue
      const options = { ...(general ? optionsOf(general) : {}), ...optionsOf(special) }
      const filled = withDefaults(plugin.options, options)
      const at = placeOf(config, route, name, special)
      instances.push({ name, plugin, options: filled, routes: [route], general: false, issuer, at, order })
    }
  }
  return orderByNeeds(instances, suggest, report)
}

/** Moves options under a plugin's route key to `plugins`. Reports a route that uses both forms. */
export function withLongForms(
  config: FilledConfig,
  routeKeys: DeclaredKeys['routeKeys'],
  report: Report,
): FilledConfig {
  const routes = Object.entries(config.routes).map(([path, route]) => {
    let { plugins = {} } = route
    for (const [key, { plugin: name }] of routeKeys) {
      const options = Reflect.get(route, key) as object | undefined
      if (options === undefined) continue
      if (Object.hasOwn(plugins, name)) {
        const what = `\`${key}\` is short for plugins['${name}'] of the route, which is there as well; remove one of them`
        const also = [{ at: ['routes', path, 'plugins', name] }]
        report(new StartError('MH1019', what, { at: ['routes', path, key], also }))
      }
      plugins = { ...plugins, [name]: options }
    }
    return [path, { ...route, plugins }] as const
  })
  return { ...config, routes: Object.fromEntries(routes) }
}
