// Keys of a route that are short for a plugin with these options there, such as `search`. Between the check of a config's
// shape and its plan, which finds the plugin among the others.
import { type Report, StartError } from '../http/errors.ts'
import type { FilledConfig } from './define-config.ts'

/** The plugin that a key is short for, by the key. */
export type ShortForms = Readonly<Record<'search', string>>

/** The config with the long forms beside the short ones. Reports a route that says both. */
export function withLongForms(config: FilledConfig, { search: name }: ShortForms, report: Report): FilledConfig {
  const routes = Object.entries(config.routes).map(([path, route]) => {
    const { search, plugins = {} } = route
    if (search === undefined) return [path, route] as const
    if (Object.hasOwn(plugins, name)) {
      const what = `\`search\` is short for plugins['${name}'] of the route, which is there as well; remove one of them`
      const also = [{ at: ['routes', path, 'plugins', name] }]
      report(new StartError(what, { at: ['routes', path, 'search'], also }))
    }
    return [path, { ...route, plugins: { ...plugins, [name]: search } }] as const
  })
  return { ...config, routes: Object.fromEntries(routes) }
}
