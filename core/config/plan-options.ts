// Plans which plugins run on which routes, and with which options.
import { formatPath, type Path, type Report, StartError } from '../http/errors.ts'
import { pluginIssuer } from '../kernel/authenticators.ts'
import { isConfiguredPlugin, type Plugin } from '../kernel/define-plugin.ts'
import { orderByNeeds, type PluginInstance, type SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import { isObject } from '../mcp/wire/message.ts'
import type { DeclaredKeys } from './declared-keys.ts'
import type { Config, FilledConfig, PluginsSettings, StoreSettings } from './define-config.ts'
import { pluginValues } from './find-plugins.ts'
import { fillDefaults, trimSecrets } from './walk-schema.ts'

export const optionsOf = (value: PluginsSettings[string]): object =>
  isConfiguredPlugin(value) ? value.options : value || {}

const withDefaults = (schema: Plugin<object>['options'], written: object): object =>
  fillDefaults(trimSecrets(written, schema), schema) as object

function pathOfOptions(settings: object, at: Path, name: string, options: unknown): Path {
  const { store } = settings as { readonly store?: StoreSettings }
  const holds = (under: object) => Object.entries(under).find(([, value]) => value === options)?.[0]
  const [key, storeKey] = [holds(settings), isObject(store) ? holds(store) : undefined]
  if (storeKey !== undefined) return [...at, 'store', storeKey]
  return key === undefined ? [...at, 'plugins', name] : [...at, key]
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
      const at = pathOfOptions(config, [], name, general)
      instances.push({ name, plugin, options, routes: covered, general: true, issuer, at, order })
    }
    for (const route of routes) {
      const special = own(route)
      if (special === undefined || special === false) continue
      const options = { ...(general ? optionsOf(general) : {}), ...optionsOf(special) }
      const filled = withDefaults(plugin.options, options)
      const at = pathOfOptions(config.routes[route.path] ?? {}, ['routes', route.path], name, special)
      instances.push({ name, plugin, options: filled, routes: [route], general: false, issuer, at, order })
    }
  }
  return orderByNeeds(instances, suggest, report)
}

interface Holder {
  readonly plugins?: Readonly<Record<string, object | false | undefined>>
  readonly store?: StoreSettings
}

/** Moves options under a plugin's route key, or in `store`, to `plugins`. Reports the use of both forms. */
export function withLongForms(
  config: FilledConfig,
  { routeKeys, storeKeys }: Pick<DeclaredKeys, 'routeKeys' | 'storeKeys'>,
  report: Report,
): FilledConfig {
  /** `short`: the options of plugins under their own keys, each with key and plugin. */
  function pluginsOf({ plugins = {} }: Holder, at: Path, short: ReadonlyArray<readonly [Path, string, object]>) {
    for (const [key, name] of short) {
      if (!Object.hasOwn(plugins, name)) continue
      const of = at.length > 0 ? ' of the route' : ''
      const what = `\`${formatPath(key)}\` and plugins['${name}']${of} set the same options; remove one of them`
      report(new StartError('MH1019', what, { at: [...at, ...key], also: [{ at: [...at, 'plugins', name] }] }))
    }
    return { ...plugins, ...Object.fromEntries(short.map(([, name, options]) => [name, options])) }
  }

  const storeOf = ({ store }: Holder) =>
    Object.entries(isObject(store) ? store : {}).flatMap(([key, options]) => {
      const name = storeKeys.get(key)?.plugin
      return name === undefined ? [] : [[['store', key], name, options as object] as const]
    })

  const routes = Object.entries(config.routes).map(([path, route]) => {
    const short = [...routeKeys].flatMap(([key, { plugin }]) => {
      const options = Reflect.get(route, key) as object | undefined
      return options === undefined ? [] : [[[key], plugin, options] as const]
    })
    const plugins = pluginsOf(route, ['routes', path], [...short, ...storeOf(route)])
    // The store of a route replaces the general one.
    const off = route.store === undefined ? [] : [...storeKeys.values()].map(({ plugin }) => [plugin, false] as const)
    return [path, { ...route, plugins: { ...Object.fromEntries(off), ...plugins } }] as const
  })
  return { ...config, plugins: pluginsOf(config, [], storeOf(config)), routes: Object.fromEntries(routes) }
}
