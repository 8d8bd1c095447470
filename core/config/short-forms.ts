// Keys of a route that are short for a plugin with these options there, such as `search`. Between the check of a config's
// shape and its plan: whoever comes after finds the long form alone, and what is wrong is told where it is written.
import { type Path, type Report, StartError, type Written } from '../http/start-error.ts'
import { isObject } from '../mcp/is-object.ts'
import type { FilledConfig } from './define-config.ts'

/** The plugin that a key is short for, by the key. */
export type ShortForms = Readonly<Record<'search', string>>

/** The config in its long form. Reports a route that says both. */
export function inLongForm(config: FilledConfig, { search: name }: ShortForms, report: Report): FilledConfig {
  const routes = Object.entries(config.routes).map(([path, { search, ...route }]) => {
    if (search === undefined) return [path, route] as const
    const { plugins = {} } = route
    if (Object.hasOwn(plugins, name)) {
      const at: Path = ['routes', path, 'search']
      const what = `\`search\` is short for plugins['${name}'] of the route, which says something else; remove one of them`
      report(new StartError(what, { at, also: [{ at: ['routes', path, 'plugins', name] }] }))
    }
    return [path, { ...route, plugins: { ...plugins, [name]: search } }] as const
  })
  return { ...config, routes: Object.fromEntries(routes) }
}

/** Where a config says what its long form says there. */
export function writtenShort(written: Written, config: unknown, { search: name }: ShortForms): Written {
  const [first, path, third, plugin, ...rest] = written.at ?? []
  if (first !== 'routes' || third !== 'plugins' || plugin !== name) return written
  const routes = isObject(config) ? config['routes'] : undefined
  const route = isObject(routes) ? routes[String(path)] : undefined
  return isObject(route) && route['search'] !== undefined
    ? { ...written, at: ['routes', path as string, 'search', ...rest] }
    : written
}
